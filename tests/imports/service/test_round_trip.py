"""An exported log, imported into an empty home, gives the same export."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chorus_cli.attachments.files import attachments
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.service import Exports, ImportReport, Wanted
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.attachments import Attachment
from chorus_cli.log.rules.messages import MessageContent, Role, Thought
from tests.fakes import FakeClock, ScriptedModel
from tests.imports.service.foreign_talk import ITALY, LATIUM, ROME, WHERE, taken_in
from tests.storage.database import QuickStore
from tests.world import World, built

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PHOTO = b"the bytes of a photo"
PARTS = '{"form": "demo",  "parts": [{"type": "thinking", "thinking": "h\\u006d", "signature": "c2ln", "at": 1.0e2}]}'


@dataclass(frozen=True)
class Home:
    """A world, and the folder that its exports go to."""

    world: World
    out: Path

    async def exported(self, ending: str) -> dict[str, bytes]:
        """Export everything, and return the files by their names."""
        folder = self.out / ending
        exports = Exports(self.world.store, self.world.clock, self.world.folder / "attachments")
        await exports.export_all(folder, ending, None, lambda _line: None)
        return {f"{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    async def takes_in(self, path: Path) -> ImportReport:
        report = ImportReport(is_dry=False)
        await self.world.services.imports.take_in(Wanted([path], "chorus"), report, lambda _line: None)
        return report


@pytest.fixture
async def other(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Home]:
    """An empty home."""
    folder = tmp_path / "other"
    folder.mkdir()
    store = QuickStore(folder / "chorus.db")
    await store.open()
    yield Home(await built(folder, store, clock, ScriptedModel(), 100_000), tmp_path / "out-other")
    await store.close()


@pytest.fixture
async def lived(world: World, tmp_path: Path) -> Home:
    """A home with undone and repeated turns, an edit, tools, an attachment, another persona and an import."""
    await world.persona_admin.create("Sam")
    for text in ("Hello", "How are you?", "Never mind"):
        world.model.say(f"Reply to {text}")
        await world.say(text)
    await world.carry_out("/undo")
    await world.carry_out("/new")
    await world.store.write(_photographed)
    await taken_in(world, ROME, WHERE, ITALY, LATIUM)
    await world.carry_out("/thread rome")
    world.model.say("It is")
    await world.say("Is it old?")
    return Home(world, tmp_path / "out")


def _photographed(connection: sqlite3.Connection) -> None:
    photo = Attachment("my photo.png", "image/png", len(PHOTO), hashlib.sha256(PHOTO).hexdigest())
    at = FakeClock().now()
    said = message_rows.insert_row(connection, "sam", MessageContent(9, Role.USER, "Look", at, attachments=(photo,)))
    calls = '[{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]'
    for content in (
        MessageContent(9, Role.TOOL_USE, "", at, said, tool_calls=calls, model="gpt"),
        MessageContent(9, Role.TOOL_RESULT, "a photo", at, said, tool_call_id="1"),
        MessageContent(
            9, Role.ASSISTANT, "Nice", at, said, model="gpt", reasoning="hm\n> no\n\n<!-- message {} -->",
            thought_parts=PARTS, thought=Thought(1.5, 7),
        ),
    ):  # fmt: skip
        message_rows.insert_row(connection, "sam", content)


@pytest.mark.parametrize("ending", ["md", "jsonl"])
async def test_an_exported_log_gives_the_same_export_in_an_empty_home(lived: Home, other: Home, ending: str) -> None:
    attachments.store(lived.world.folder / "attachments", PHOTO)
    before = await lived.exported(ending)
    report = await other.takes_in(lived.out / ending)
    assert (report.added.conversations, report.skipped) == (3, {})
    assert await other.exported(ending) == before
    assert PHOTO in before.values()


@pytest.mark.parametrize(("ending", "parts"), [("md", None), ("jsonl", PARTS), ("db", PARTS)])
async def test_thoughts_come_back_word_for_word_but_for_the_parts_in_markdown(
    lived: Home, other: Home, ending: str, parts: str | None
) -> None:
    if ending == "db":
        await other.takes_in(next(lived.world.folder.glob("*.db")))
    else:
        await lived.exported(ending)
        await other.takes_in(lived.out / ending)
    columns = "SELECT reasoning, thought_parts, thought_seconds, thought_tokens FROM messages WHERE content = 'Nice'"
    found = await other.world.store.read(lambda connection: connection.execute(columns).fetchall())
    assert found == [("hm\n> no\n\n<!-- message {} -->", parts, 1.5, 7)]


async def test_the_database_of_another_chorus_gives_the_same_export(lived: Home, other: Home) -> None:
    attachments.store(lived.world.folder / "attachments", PHOTO)
    before = await lived.exported("md")
    await other.takes_in(next(lived.world.folder.glob("*.db")))
    assert await other.exported("md") == before
    assert "sam" in other.world.personas.slugs()


async def test_a_log_that_comes_back_adds_nothing_but_what_was_said_elsewhere(lived: Home, other: Home) -> None:
    await lived.exported("md")
    assert (await lived.takes_in(lived.out / "md")).added.messages == 0
    await other.takes_in(lived.out / "md")
    other.world.model.say("Very")
    await other.world.carry_out("/thread rome")
    await other.world.say("How old?")
    await other.exported("md")
    report = await lived.takes_in(other.out / "md")
    assert (report.added.conversations, report.added.continued, report.added.messages) == (0, 1, 2)
    assert [row.content for row in (await lived.world.log())[-2:]] == ["How old?", "Very"]


async def test_missing_bytes_are_named_in_the_message(lived: Home, other: Home) -> None:
    await lived.exported("md")
    await other.takes_in(lived.out / "md")
    found = await other.world.store.read(message_rows.history, "sam", None, None, 0)
    assert found[0].content == "Look\n\n[attachment: my photo.png, not in the export]"


async def test_a_database_of_another_program_is_of_no_known_format(world: World) -> None:
    path = world.folder / "notes.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes(words)")
    with pytest.raises(ImportFormatError, match="is of no known format"):
        await world.services.imports.preview(Wanted([path], "chorus"))
