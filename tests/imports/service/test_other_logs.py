"""The log of another Chorus: an older one, one with damaged rows, and the copy that it is read from."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.imports.files.other_logs import CHORUS
from chorus_cli.imports.files.source import Opening
from chorus_cli.imports.rules.conversation import ForeignConversation
from chorus_cli.imports.service.exports import Exported, Exports
from chorus_cli.imports.service.imports import ImportReport, Wanted
from chorus_cli.models import rows as usage_rows
from chorus_cli.models.rules.costs import OtherRequest
from chorus_cli.storage.migrations import STEPS, migrate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.world import World

OPENED = "INSERT INTO threads(persona, title, created_at) VALUES ('chorus', ?, '2025-01-01T00:00:00.000000Z')"
SAID = (
    "INSERT INTO messages(persona, thread_id, turn_id, role, content, timestamp) "
    "VALUES ('chorus', ?, ?, 'user', ?, '2025-01-01T00:00:00.000000Z')"
)
DAMAGED = {
    "time": "UPDATE messages SET timestamp = '2025-13-41T99:00:00Z' WHERE id = 2",
    "attachments": "UPDATE messages SET attachments = 'garbage' WHERE id = 2",
    "fields of attachments": "UPDATE messages SET attachments = '[{\"name\": 5}]' WHERE id = 2",
    "usage": "UPDATE messages SET usage = '{' WHERE id = 2",
}
HARMLESS = {
    "no origin": "UPDATE messages SET origin = NULL, origin_seq = NULL",
    "time of a thread": "UPDATE threads SET created_at = '2025-13-41T99:00:00Z'",
    "operation": (
        "INSERT INTO operations(persona, thread_id, kind, after_message_id, detail, created_at) "
        "VALUES ('chorus', 1, 'martian', 0, '{}', '2025-01-01T00:00:00.000000Z')"
    ),
    "import": (
        "INSERT INTO operations(persona, kind, after_message_id, detail, created_at) "
        "VALUES ('chorus', 'import', 0, '[]', '2025-01-01T00:00:00.000000Z')"
    ),
}


@pytest.fixture
def other(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database that another Chorus of an earlier version has begun."""
    with closing(sqlite3.connect(tmp_path / "other.db", isolation_level=None)) as connection:
        migrate(connection, STEPS[:4])
        connection.execute(OPENED, ("Old",))
        connection.executemany(SAID, [(1, 1, "Hello"), (1, 2, "Are you there?")])
        yield connection


async def taken_in(world: World, path: Path) -> ImportReport:
    report = ImportReport(is_dry=False)
    await world.services.imports.take_in(Wanted([path], "chorus"), report, lambda _line: None)
    return report


async def exported(world: World, folder: Path) -> Exported:
    exports = Exports(world.store, world.clock, world.folder / "attachments")
    return await exports.export_all(folder, "md", None, lambda _line: None)


async def test_an_older_log_stays_known_when_its_chorus_is_upgraded(
    world: World, tmp_path: Path, other: sqlite3.Connection
) -> None:
    assert (await taken_in(world, tmp_path / "other.db")).added.messages == 2
    migrate(other)
    assert (await taken_in(world, tmp_path / "other.db")).added.messages == 0


async def test_the_costs_of_another_log_stay_there(world: World, tmp_path: Path, other: sqlite3.Connection) -> None:
    migrate(other)
    tokens = {"prompt_tokens": 7}
    other.execute("UPDATE messages SET usage = ? WHERE id = 2", (json.dumps(tokens),))
    usage_rows.store(other, [OtherRequest("chorus", 1, "summary", "m", world.clock.now(), tokens)])
    assert [(use.replies, use.summaries) for use in usage_rows.uses(other)] == [(1, 0), (0, 1)]
    assert (await taken_in(world, tmp_path / "other.db")).added.messages == 2
    assert await world.store.read(usage_rows.uses) == []


async def test_the_triggers_and_views_of_another_log_are_not_run(
    world: World, tmp_path: Path, other: sqlite3.Connection
) -> None:
    endless = "WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) SELECT"
    other.execute(f"CREATE TRIGGER endless BEFORE UPDATE ON messages BEGIN {endless} COUNT(*) FROM more; END")
    other.execute(f"CREATE VIEW imported_messages AS {endless} n FROM more")
    assert (await taken_in(world, tmp_path / "other.db")).added.messages == 2


def test_new_logs_have_names_of_their_own() -> None:
    found = set()
    for _ in range(2):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            migrate(connection)
            found |= {*connection.execute("SELECT origin FROM installation")}
    assert len(found) == 2


@pytest.mark.parametrize("statement", DAMAGED.values(), ids=DAMAGED)
async def test_a_damaged_message_of_another_log_is_skipped_and_counted(
    world: World, tmp_path: Path, other: sqlite3.Connection, statement: str
) -> None:
    migrate(other)
    other.execute(statement)
    report = await taken_in(world, tmp_path / "other.db")
    assert (report.added.messages, report.skipped) == (1, {"message that cannot be read": 1})


async def test_a_conversation_of_another_log_without_a_readable_message_is_skipped_and_counted(
    world: World, tmp_path: Path, other: sqlite3.Connection
) -> None:
    migrate(other)
    other.execute(OPENED, ("Damaged",))
    other.execute(SAID, (2, 3, "Lost"))
    other.execute("UPDATE messages SET timestamp = '2025-13-41T99:00:00Z' WHERE id = 3")
    report = await taken_in(world, tmp_path / "other.db")
    assert (report.added.messages, report.skipped) == (2, {"conversation that cannot be read": 1})


@pytest.mark.parametrize("statement", HARMLESS.values(), ids=HARMLESS)
async def test_other_damage_loses_no_message(
    world: World, tmp_path: Path, other: sqlite3.Connection, statement: str
) -> None:
    migrate(other)
    other.execute(statement)
    assert (await taken_in(world, tmp_path / "other.db")).added.messages == 2
    assert (await taken_in(world, tmp_path / "other.db")).added.messages == 0


async def test_an_export_of_everything_skips_and_counts_damaged_rows(world: World, tmp_path: Path) -> None:
    world.model.say("Hi")
    await world.say("Hello")
    await world.store.write(_damage)
    found = await exported(world, tmp_path / "out")
    assert (found.conversations, found.messages, found.damaged, found.damaged_conversations) == (1, 2, 1, 1)
    assert len([*(tmp_path / "out").rglob("*.md")]) == 1


def _damage(connection: sqlite3.Connection) -> None:
    (thread,) = connection.execute("SELECT thread_id FROM messages LIMIT 1").fetchone()
    for id_, thread_id in ((8, thread), (9, 77)):
        connection.execute(SAID, (thread_id, id_, "Lost"))
    connection.execute("UPDATE messages SET attachments = 'garbage' WHERE content = 'Lost'")


def test_a_process_that_is_killed_leaves_no_copy_of_the_log(
    tmp_path: Path, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(other)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", f"{temporary}")
    source = CHORUS.opened(Opening(tmp_path / "other.db", (tmp_path / "other.db").read_bytes()))
    assert source is not None
    conversation = next(source.conversations())
    assert isinstance(conversation, ForeignConversation)
    assert [*temporary.iterdir()] == []
    source.close()
