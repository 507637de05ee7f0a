"""``/import`` as it is typed, and an import that is stopped in the middle."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from chorus_cli.imports.commands import FILES
from chorus_cli.imports.files import reading
from chorus_cli.imports.service import ImportReport, Wanted
from tests.imports.rules.sessions import qwen_line
from tests.imports.service.foreign_talk import ITALY, LATIUM, OFTEN, OSLO, ROME, WHERE, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.world import World


def many(folder: Path, number: int) -> Path:
    """Write conversations of a thousand messages, each of which is a batch of its own."""
    said = [{**WHERE, "key": f"m{position}", "content": f"word {position}"} for position in range(1_000)]
    path = folder / "many.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for each in range(number):
            for line in ({**ROME, "key": f"c{each}", "title": f"Talk {each}"}, *said):
                file.write(json.dumps(line) + "\n")
    return path


async def test_import_says_what_came_in(world: World) -> None:
    path = written(world.folder, ROME, WHERE, ITALY, LATIUM, OSLO, OFTEN)
    assert await world.told(f"/import {path}") == (
        "Found 2 conversations, 4 messages, 2025-01-01 to 2025-01-01 (demo).\n"
        "1 conversation with branches: the log keeps 1 message of branches that were left; they stay out of context.\n"
        "Imported 4 new messages in 2 new threads, for chorus. /search finds them, /thread TITLE opens one, "
        "/context undo takes the import back."
    )
    assert (await world.told(f"/import {path}")).endswith("Everything is in the log already; nothing was changed.")


@pytest.mark.parametrize("line", ["{} --dry-run", "--dry-run {}"])
async def test_a_dry_run_says_what_would_come_in(world: World, line: str) -> None:
    told = await world.told(f"/import {line.format(written(world.folder, ROME, WHERE))}")
    assert told.endswith("Of the messages 0 are in the log already and 1 are new. Nothing was changed.")
    assert await world.log() == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/import", "/import needs <file…>. Usage: /import <file…> [--dry-run]"),
        ("/import --dry-run", "/import needs <file…>. Usage: /import <file…> [--dry-run]"),
        ("/import /nowhere/a.zip", "/nowhere/a.zip cannot be read: No such file or directory."),
    ],
)
async def test_an_import_without_a_file_is_refused(world: World, line: str, told: str) -> None:
    assert (await world.told(line)).startswith(told)


@pytest.mark.parametrize("line", ["/import {}", "/import {} --dry-run", "/import {} {}"])
async def test_an_import_without_a_message_is_refused(world: World, line: str) -> None:
    path = world.folder / "s1.jsonl"
    path.write_text(f"{json.dumps(qwen_line('n1', None, 'system', subtype='ui_telemetry'))}\n")
    paths = "These 2 paths hold" if line.count("{}") == 2 else f"{path} holds"
    assert await world.told(line.format(path, path)) == (
        f"{paths} no message that can be imported: conversation without messages ({line.count('{}')}); "
        "docs/moving.md tells what is taken."
    )


async def test_a_path_with_blanks_needs_no_quotes_and_is_completed(world: World) -> None:
    folder = world.folder / "my talks"
    folder.mkdir()
    path = written(folder, ROME, WHERE)
    assert "Imported 1 new message" in await world.told(f"/import {path}")
    offered = FILES.candidates(world.services, (), f"{folder}/")
    assert [each.text for each in offered] == [str(path)]


@pytest.mark.parametrize(
    "typed",
    ['"{}/my talks/talks.jsonl"', "'{}/my talks/talks.jsonl'", "{}/my\\ talks/talks.jsonl", "file://{}/my%20talks"],
)
async def test_a_path_may_be_quoted_escaped_or_an_address(world: World, typed: str) -> None:
    folder = world.folder / "my talks"
    folder.mkdir()
    written(folder, ROME, WHERE).rename(folder / "talks.jsonl")
    assert "Imported 1 new message" in await world.told(f"/import {typed.format(world.folder)}")


async def test_several_paths_may_be_quoted_each(world: World) -> None:
    (first := world.folder / "a b").mkdir()
    (second := world.folder / "c d").mkdir()
    line = f'"{written(first, ROME, WHERE)}" {written(second, OSLO, OFTEN)}'
    assert "Found 2 conversations" in await world.told(f"/import {line.replace('c d', 'c' + chr(92) + ' d')} --dry-run")


async def test_a_stopped_import_leaves_whole_conversations_and_the_next_one_goes_on(world: World) -> None:
    path, report, told = many(world.folder, 12), ImportReport(is_dry=False), list[str]()
    running = asyncio.ensure_future(world.services.imports.take_in(Wanted([path], "chorus"), report, told.append))
    for _ in range(5_000):
        if report.added.messages >= 3_000:
            break
        await asyncio.sleep(0.001)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    came = [thread.messages for thread in await world.threads.all() if thread.title]
    assert len(came) < 12
    assert set(came) == {1_000}
    assert report.added.messages == 1_000 * len(came)
    again = ImportReport(is_dry=False)
    await world.services.imports.take_in(Wanted([path], "chorus"), again, told.append)
    assert (again.added.conversations, again.known) == (12 - len(came), 1_000 * len(came))


async def test_a_file_is_read_batch_by_batch(world: World) -> None:
    batches = reading.batches([many(world.folder, 5)], None)
    assert [len(batch.read) for batch in batches] == [1, 1, 1, 1, 1, 0]
