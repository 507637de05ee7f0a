"""What is exported comes back the same, into an empty home or its own; the log of another Chorus comes in too."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from pathlib import Path

import pytest

from chorus_cli.attachments.files import attachments
from chorus_cli.context.rows import greetings
from chorus_cli.core.errors import DatabaseDamagedError, ImportFormatError, ModelError
from chorus_cli.imports.files.own_files import CHORUS
from chorus_cli.imports.files.reading import batches
from chorus_cli.imports.files.source import Opening
from chorus_cli.imports.rules.conversation import ForeignConversation
from chorus_cli.imports.service import ENDINGS, ImportReport, Wanted
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.attachments import Attachment
from chorus_cli.log.rules.messages import MessageContent, Role, Thought
from chorus_cli.models import rows as usage_rows
from chorus_cli.models.rules.costs import OtherRequest
from chorus_cli.storage.migrations import STEPS, migrate
from chorus_cli.storage.port import Connection
from tests.fakes import FakeClock
from tests.imports.service.foreign_talk import (
    ITALY,
    LATIUM,
    OFTEN,
    OSLO,
    ROME,
    WHERE,
    exported,
    previewed,
    taken_in,
    took_in,
    written,
)
from tests.storage.database import of_sqlite, quick
from tests.world import World, world_on

PHOTO = b"the bytes of a photo"
PARTS = '{"form": "demo",  "parts": [{"type": "thinking", "thinking": "h\\u006d", "signature": "c2ln", "at": 1.0e2}]}'


@dataclass(frozen=True)
class Home:
    world: World
    out: Path

    async def exported(self, ending: str) -> dict[str, bytes]:
        return await exported(self.world, self.out / ending, ending)


def home(folder: Path, clock: FakeClock) -> AbstractAsyncContextManager[World]:
    """A world in a folder of its own, with the log that is there."""
    return world_on(quick(folder / "chorus.db"), folder, clock)


@pytest.fixture
async def other(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Home]:
    (tmp_path / "other").mkdir()
    async with home(tmp_path / "other", clock) as world:
        yield Home(world, tmp_path / "out-other")


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


def _photographed(connection: Connection) -> None:
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


of_a_file = of_sqlite("a file to import")


@pytest.mark.parametrize(
    ("ending", "by_its_database"), [("md", False), ("jsonl", False), pytest.param("md", True, marks=of_a_file)]
)
async def test_a_log_gives_the_same_export_in_an_empty_home(
    lived: Home, other: Home, ending: str, *, by_its_database: bool
) -> None:
    attachments.AttachmentFolder(lived.world.folder / "attachments").store(PHOTO)
    before = await lived.exported(ending)
    report = await took_in(other.world, database(lived.world) if by_its_database else lived.out / ending)
    assert (report.added.conversations, report.skipped) == (3, {})
    assert await other.exported(ending) == before
    assert PHOTO in before.values()
    assert "sam" in other.world.personas.slugs()


@pytest.mark.parametrize(
    ("ending", "parts"), [("md", None), ("jsonl", PARTS), pytest.param("db", PARTS, marks=of_a_file)]
)
async def test_thoughts_come_back_word_for_word_but_for_the_parts_in_markdown(
    lived: Home, other: Home, ending: str, parts: str | None
) -> None:
    if ending == "db":
        await took_in(other.world, next(lived.world.folder.glob("*.db")))
    else:
        await lived.exported(ending)
        await took_in(other.world, lived.out / ending)
    columns = "SELECT reasoning, thought_parts, thought_seconds, thought_tokens FROM messages WHERE content = 'Nice'"
    found = await other.world.store.read(lambda connection: connection.execute(columns).fetchall())
    assert found == [("hm\n> no\n\n<!-- message {} -->", parts, 1.5, 7)]


async def test_a_log_that_comes_back_adds_nothing_but_what_was_said_elsewhere(lived: Home, other: Home) -> None:
    await lived.exported("md")
    links = [link for path in lived.out.rglob("*.md") for link in LINK.findall(path.read_text())]
    assert links == [f"../attachments/{hashlib.sha256(PHOTO).hexdigest()}"]
    assert (await took_in(lived.world, lived.out / "md")).added.messages == 0
    await took_in(other.world, lived.out / "md")
    other.world.model.say("Very")
    await other.world.carry_out("/thread rome")
    await other.world.say("How old?")
    await other.exported("md")
    report = await took_in(lived.world, other.out / "md")
    assert (report.added.conversations, report.added.continued, report.added.messages) == (0, 1, 2)
    assert [row.content for row in (await lived.world.log())[-2:]] == ["How old?", "Very"]


async def test_a_greeting_is_sent_elsewhere_too_but_not_the_one_that_it_replaced(
    world: World, other: Home, tmp_path: Path
) -> None:
    for words in ("Welcome.", "Hello."):
        await world.store.write(greetings.greet, "chorus", world.current.target().thread_id, words, world.clock.now())
    await exported(world, tmp_path / "out", "md")
    await took_in(other.world, tmp_path / "out")
    assert [(row.content, row.superseded) for row in await other.world.log()] == [("Welcome.", True), ("Hello.", False)]


async def test_a_reply_joins_the_turn_of_its_questions_wording_and_no_turn_if_its_question_was_purged(
    world: World, other: Home, tmp_path: Path
) -> None:
    for text in ("One", "Two"):
        await say(world, text)
    await (await world.asked_back("/purge message 3")).confirmed()
    world.model.enqueue(ModelError("It is down."))
    await world.say("Three")
    world.editor.enqueue("Four")
    await world.carry_out("/edit 5")
    world.model.say("Reply to Four")
    _ = [event async for event in world.conversation.retry(world.current.target())]
    await exported(world, tmp_path / "out", "md")
    await took_in(other.world, tmp_path / "out")
    by_turn = sorted(await other.world.log(), key=lambda row: (row.turn_id, row.id))
    turns = [[row.content for row in rows] for _, rows in groupby(by_turn, lambda row: row.turn_id)]
    assert turns == [["One", "Reply to One"], ["Reply to Two"], ["Three", ""], ["Four", "Reply to Four"]]


LINK = re.compile(r"\]\((.*?)\)")
MORE_THAN_64_MEGABYTES = "x" * ((1 << 26) + 1)


def titles(folder: Path, ending: str) -> list[str]:
    return sorted(path.name.split("_")[1] for path in folder.rglob(f"*.{ending}"))


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_thread_that_was_renamed_takes_the_place_of_its_older_file(
    world: World, tmp_path: Path, ending: str
) -> None:
    await taken_in(world, ROME, WHERE, LATIUM, OSLO, OFTEN)
    await exported(world, tmp_path / "out", ending)
    assert titles(tmp_path / "out", ending) == ["oslo", "rome"]
    await world.carry_out("/thread rome")
    await world.carry_out("/thread rename Roma")
    await exported(world, tmp_path / "out", ending)
    assert titles(tmp_path / "out", ending) == ["oslo", "roma"]


def test_a_line_of_more_than_64_megabytes_is_read_back(tmp_path: Path) -> None:
    path = written(tmp_path, ROME, {**WHERE, "padding": MORE_THAN_64_MEGABYTES})
    read = [each for batch in batches([path], None) for each in batch.read]
    assert [message.content for each in read for message in each.conversation.messages] == ["Where is Rome?"]


SHARED = ["Before the copy", "Reply to Before the copy"]
LAPTOP = ["On the laptop", "Reply to On the laptop"]
WENT_ON_APART = "conversation that the log already has with different messages"
DESKTOP = ["On the desktop", "Reply to On the desktop"]


async def say(world: World, text: str) -> None:
    world.model.say(f"Reply to {text}")
    await world.say(text)


async def new_of(world: World, path: Path) -> int:
    """Return the number of messages that a dry run announces."""
    report = await previewed(world, path)
    return report.messages - report.known


async def contents(world: World) -> list[str]:
    return [each.content for each in await world.log()]


@pytest.fixture
async def laptop(world: World, tmp_path: Path, clock: FakeClock) -> AsyncIterator[World]:
    """A copy of the home of ``world``, made after a first turn."""
    await say(world, "Before the copy")
    folder = tmp_path / "laptop"
    folder.mkdir()
    with (
        closing(sqlite3.connect(next(world.folder.glob("*.db")))) as source,
        closing(sqlite3.connect(folder / "chorus.db")) as copy,
    ):
        source.backup(copy)
    async with home(folder, clock) as copied:
        yield copied


def database(world: World) -> Path:
    return next(world.folder.glob("*.db"))


@of_a_file
async def test_what_the_copy_alone_went_on_with_comes_in_once(world: World, laptop: World) -> None:
    assert await new_of(world, database(laptop)) == 0
    await say(laptop, "On the laptop")
    assert await new_of(world, database(laptop)) == 2
    assert (await took_in(world, database(laptop))).added.messages == 2
    assert await contents(world) == [*SHARED, *LAPTOP]
    assert (await took_in(world, database(laptop))).added.messages == 0
    assert (await took_in(laptop, database(world))).added.messages == 0


@of_a_file
@pytest.mark.parametrize("command", ["", "/thread new"])
async def test_what_both_went_on_with_is_left_out_and_counted(world: World, laptop: World, command: str) -> None:
    if command:
        await laptop.carry_out(command)
    await say(laptop, "On the laptop")
    world.clock.advance(timedelta(minutes=1))
    await say(world, "On the desktop")
    foreseen = await previewed(world, database(laptop))
    assert (foreseen.messages - foreseen.known, foreseen.skipped) == (0, {WENT_ON_APART: 1})
    report = await took_in(world, database(laptop))
    assert (report.added.messages, report.skipped[WENT_ON_APART]) == (0, 1)
    assert report.text().endswith(f"{WENT_ON_APART} (1).\nNothing was added.")
    assert await contents(world) == [*SHARED, *DESKTOP]


OPENED = "INSERT INTO threads(persona, title, created_at) VALUES ('chorus', ?, '2025-01-01T00:00:00.000000Z')"
SAID = (
    "INSERT INTO messages(persona, thread_id, turn_id, role, content, timestamp) "
    "VALUES ('chorus', ?, ?, 'user', ?, '2025-01-01T00:00:00.000000Z')"
)
DAMAGED = {
    "time": "UPDATE messages SET timestamp = '2025-13-41T99:00:00Z'",
    "attachments": "UPDATE messages SET attachments = 'garbage'",
    "fields of attachments": "UPDATE messages SET attachments = '[{\"name\": 5}]'",
    "usage": "UPDATE messages SET usage = '{'",
}
HARMLESS = {
    "no origin": "UPDATE messages SET origin = NULL, origin_seq = NULL",
    "time of a thread": "UPDATE threads SET created_at = '2025-13-41T99:00:00Z'",
    "time of thoughts": "UPDATE messages SET reasoning = 'hm', thought_seconds = 9e999",
    "operation": (
        "INSERT INTO operations(persona, thread_id, kind, after_message_id, detail, created_at) "
        "VALUES ('chorus', 1, 'martian', 0, '{}', '2025-01-01T00:00:00.000000Z')"
    ),
}


@pytest.fixture
def older(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database that another Chorus of an earlier version has begun."""
    with closing(sqlite3.connect(tmp_path / "other.db", isolation_level=None)) as connection:
        migrate(connection, STEPS[:4])
        connection.execute(OPENED, ("Old",))
        connection.executemany(SAID, [(1, 1, "Hello"), (1, 2, "Are you there?")])
        yield connection


async def test_an_older_log_stays_known_when_its_chorus_is_upgraded(
    world: World, tmp_path: Path, older: sqlite3.Connection
) -> None:
    assert (await took_in(world, tmp_path / "other.db")).added.messages == 2
    migrate(older)
    assert (await took_in(world, tmp_path / "other.db")).added.messages == 0


async def test_the_costs_of_another_log_stay_there(world: World, tmp_path: Path, older: sqlite3.Connection) -> None:
    migrate(older)
    tokens = {"prompt_tokens": 7}
    older.execute("UPDATE messages SET usage = ? WHERE id = 2", (json.dumps(tokens),))
    usage_rows.store(older, [OtherRequest("chorus", 1, "summary", "m", world.clock.now(), tokens)])
    assert [(use.replies, use.summaries) for use in usage_rows.uses(older)] == [(1, 0), (0, 1)]
    assert (await took_in(world, tmp_path / "other.db")).added.messages == 2
    assert await world.store.read(usage_rows.uses) == []


async def test_the_triggers_and_views_of_another_log_are_not_run(
    world: World, tmp_path: Path, older: sqlite3.Connection
) -> None:
    endless = "WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) SELECT"
    older.execute(f"CREATE TRIGGER endless BEFORE UPDATE ON messages BEGIN {endless} COUNT(*) FROM more; END")
    older.execute(f"CREATE VIEW imported_messages AS {endless} n FROM more")
    assert (await took_in(world, tmp_path / "other.db")).added.messages == 2


@of_a_file
async def test_an_export_of_a_log_that_another_installation_began_adds_nothing_to_it(
    world: World, tmp_path: Path
) -> None:
    await say(world, "Hello")
    await world.store.write(lambda log: log.execute("UPDATE installation SET origin = 'fedcba9876543210'"))
    await say(world, "How are you?")
    await exported(world, tmp_path / "out", "md")
    assert (await took_in(world, tmp_path / "out")).added.messages == 0


def test_new_logs_have_names_of_their_own() -> None:
    found = set()
    for _ in range(2):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            migrate(connection)
            found |= {*connection.execute("SELECT origin FROM installation")}
    assert len(found) == 2


@pytest.mark.parametrize("statement", DAMAGED.values(), ids=DAMAGED)
async def test_a_log_with_a_damaged_row_is_told_after_the_threads_before_it(
    world: World, tmp_path: Path, older: sqlite3.Connection, statement: str
) -> None:
    migrate(older)
    older.execute(OPENED, ("Damaged",))
    older.execute(SAID, (2, 3, "Lost"))
    older.execute(f"{statement} WHERE id = 3")
    report = ImportReport(is_dry=False)
    with pytest.raises(ImportFormatError, match=r"other\.db cannot be read: Message 3 of chorus.* chorus doctor"):
        await world.services.imports.take_in(Wanted([tmp_path / "other.db"], "chorus"), report, lambda _line: None)
    assert report.added.messages == 2


@pytest.mark.parametrize("statement", HARMLESS.values(), ids=HARMLESS)
async def test_other_damage_loses_no_message(
    world: World, tmp_path: Path, older: sqlite3.Connection, statement: str
) -> None:
    migrate(older)
    older.execute(statement)
    assert (await took_in(world, tmp_path / "other.db")).added.messages == 2
    assert (await took_in(world, tmp_path / "other.db")).added.messages == 0
    assert len(await exported(world, tmp_path / "out", "md")) == 1


async def test_an_export_tells_what_it_cannot_read(world: World, tmp_path: Path) -> None:
    world.model.say("Hi")
    await world.say("Hello")
    await world.store.write(lambda connection: connection.execute(DAMAGED["attachments"]))
    with pytest.raises(
        DatabaseDamagedError,
        match=r"cannot be read.* 0 conversations had been written\. Remove the cause \(chorus doctor repairs ",
    ):
        await exported(world, tmp_path / "out", "md")


def test_a_process_that_is_killed_leaves_no_copy_of_the_log(
    tmp_path: Path, older: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(older)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", f"{temporary}")
    source = CHORUS.opened(Opening(tmp_path / "other.db", (tmp_path / "other.db").read_bytes()))
    assert source is not None
    conversation = next(source.conversations())
    assert isinstance(conversation, ForeignConversation)
    assert [*temporary.iterdir()] == []
    source.close()
