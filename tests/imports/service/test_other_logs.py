"""The log of another Chorus: an older one, one with damaged rows, and the copy that it is read from."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import DatabaseDamagedError, ImportFormatError
from chorus_cli.imports.files.own_files import CHORUS
from chorus_cli.imports.files.source import Opening
from chorus_cli.imports.rules.conversation import ForeignConversation
from chorus_cli.imports.service import ImportReport, Wanted
from chorus_cli.models import rows as usage_rows
from chorus_cli.models.rules.costs import OtherRequest
from chorus_cli.storage.migrations import STEPS, migrate
from tests.imports.service.foreign_talk import exported, took_in

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
    "time": "UPDATE messages SET timestamp = '2025-13-41T99:00:00Z'",
    "attachments": "UPDATE messages SET attachments = 'garbage'",
    "fields of attachments": "UPDATE messages SET attachments = '[{\"name\": 5}]'",
    "usage": "UPDATE messages SET usage = '{'",
}
HARMLESS = {
    "no origin": "UPDATE messages SET origin = NULL, origin_seq = NULL",
    "time of a thread": "UPDATE threads SET created_at = '2025-13-41T99:00:00Z'",
    "operation": (
        "INSERT INTO operations(persona, thread_id, kind, after_message_id, detail, created_at) "
        "VALUES ('chorus', 1, 'martian', 0, '{}', '2025-01-01T00:00:00.000000Z')"
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


async def test_an_older_log_stays_known_when_its_chorus_is_upgraded(
    world: World, tmp_path: Path, other: sqlite3.Connection
) -> None:
    assert (await took_in(world, tmp_path / "other.db")).added.messages == 2
    migrate(other)
    assert (await took_in(world, tmp_path / "other.db")).added.messages == 0


async def test_the_costs_of_another_log_stay_there(world: World, tmp_path: Path, other: sqlite3.Connection) -> None:
    migrate(other)
    tokens = {"prompt_tokens": 7}
    other.execute("UPDATE messages SET usage = ? WHERE id = 2", (json.dumps(tokens),))
    usage_rows.store(other, [OtherRequest("chorus", 1, "summary", "m", world.clock.now(), tokens)])
    assert [(use.replies, use.summaries) for use in usage_rows.uses(other)] == [(1, 0), (0, 1)]
    assert (await took_in(world, tmp_path / "other.db")).added.messages == 2
    assert await world.store.read(usage_rows.uses) == []


async def test_the_triggers_and_views_of_another_log_are_not_run(
    world: World, tmp_path: Path, other: sqlite3.Connection
) -> None:
    endless = "WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) SELECT"
    other.execute(f"CREATE TRIGGER endless BEFORE UPDATE ON messages BEGIN {endless} COUNT(*) FROM more; END")
    other.execute(f"CREATE VIEW imported_messages AS {endless} n FROM more")
    assert (await took_in(world, tmp_path / "other.db")).added.messages == 2


def test_new_logs_have_names_of_their_own() -> None:
    found = set()
    for _ in range(2):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            migrate(connection)
            found |= {*connection.execute("SELECT origin FROM installation")}
    assert len(found) == 2


@pytest.mark.parametrize("statement", DAMAGED.values(), ids=DAMAGED)
async def test_a_log_with_a_damaged_row_is_told_after_the_threads_before_it(
    world: World, tmp_path: Path, other: sqlite3.Connection, statement: str
) -> None:
    migrate(other)
    other.execute(OPENED, ("Damaged",))
    other.execute(SAID, (2, 3, "Lost"))
    other.execute(f"{statement} WHERE id = 3")
    report = ImportReport(is_dry=False)
    with pytest.raises(ImportFormatError, match=r"other\.db cannot be read: Message 3 of chorus.* chorus doctor"):
        await world.services.imports.take_in(Wanted([tmp_path / "other.db"], "chorus"), report, lambda _line: None)
    assert report.added.messages == 2


@pytest.mark.parametrize("statement", HARMLESS.values(), ids=HARMLESS)
async def test_other_damage_loses_no_message(
    world: World, tmp_path: Path, other: sqlite3.Connection, statement: str
) -> None:
    migrate(other)
    other.execute(statement)
    assert (await took_in(world, tmp_path / "other.db")).added.messages == 2
    assert (await took_in(world, tmp_path / "other.db")).added.messages == 0


async def test_an_export_ends_at_a_damaged_row(world: World, tmp_path: Path) -> None:
    world.model.say("Hi")
    await world.say("Hello")
    await world.store.write(lambda connection: connection.execute(DAMAGED["attachments"]))
    with pytest.raises(DatabaseDamagedError, match=r"chorus doctor repairs the log\. Nothing was written\."):
        await exported(world, tmp_path / "out", "md")


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
