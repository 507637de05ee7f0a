"""A purge that was decided reaches its end, wherever it stopped; all other messages and views are as before."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.context.rows import snapshot_rows
from chorus_cli.context.rules.view import Summary
from chorus_cli.core.errors import PurgeError, StorageError
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.acts import Clear, Edit, Fold, Fork, Pin, Redo, Subject, Undo
from chorus_cli.log.rules.log_acts import Act
from chorus_cli.log.rules.messages import MessageContent, Role, runs
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.storage import file_lock
from chorus_cli.stores.backup.archive import LOCK
from chorus_cli.stores.purge import carrying_out
from chorus_cli.stores.purge.carrying_out import overwrite
from chorus_cli.stores.purge.concerned import concerned
from chorus_cli.stores.rules.purging import WantedPurge
from chorus_cli.stores.salvage import examination
from chorus_cli.stores.service.checks import check_log
from chorus_cli.stores.service.purging import Found, Purging
from tests.amount import examples
from tests.attachments.attached_talk import say
from tests.fakes import START, FakeClock, ScriptedModel
from tests.log.rows.views import view_in
from tests.storage.database import database, new_database, opened
from tests.stores.service.canary_talk import CANARY, holding
from tests.world import World, built

PERSONA = "frodo"
THREADS = (1, 2)


class Step(NamedTuple):
    """A message, or an operation on some of the messages so far: those whose position a bit of ``chosen`` names."""

    kind: str
    thread: int
    chosen: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["say"] * 6 + ["clear", "edit", "reword", "pin", "fold", "undo", "redo"]),
        st.sampled_from(THREADS),
        st.integers(0, 2**12),
    ),
    min_size=1,
    max_size=25,
)


class Log:
    """A log that grows step by step, a minute each."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.now = START
        self.done: list[int] = []

    def do(self, step: Step) -> None:
        self.now += timedelta(minutes=1)
        if step.kind == "say":
            self._say(step)
        elif step.kind in {"undo", "redo"}:
            if self.done:
                subject = Subject(operation_id=self.done[step.chosen % len(self.done)])
                self._introduce(
                    NewOperation(PERSONA, (Undo if step.kind == "undo" else Redo)(subject), self.now, step.thread)
                )
        else:
            self._operate(step)

    def _say(self, step: Step) -> None:
        asked = message_rows.insert_row(self.connection, PERSONA, self._content(step.thread, Role.USER))
        self.connection.execute("UPDATE messages SET turn_id = id WHERE id = ?", (asked,))
        answer = self._content(step.thread, Role.ASSISTANT)._replace(turn_id=asked)
        message_rows.insert_row(self.connection, PERSONA, answer)

    def _content(self, thread: int, role: Role) -> MessageContent:
        (number,) = self.connection.execute("SELECT COUNT(*) FROM messages").fetchone()
        return MessageContent(thread, role, f"word{number}x word{number}y word{number}z", self.now, token_count=3)

    def _operate(self, step: Step) -> None:
        seen = view_in(self.connection, PERSONA, step.thread, START).messages
        chosen = [row for place, row in enumerate(seen) if step.chosen >> (place % 12) & 1]
        new = NewOperation(PERSONA, Clear(), self.now, step.thread)
        match step.kind:
            case "clear":
                self.done.append(self._introduce(new))
            case "edit" | "reword" if chosen:
                kept = [row.id for row in chosen]
                reworded = MessageContent(
                    step.thread, chosen[0].role, f"{chosen[0].content} anew", chosen[0].timestamp, revises=chosen[0].id
                )
                members: tuple[int | MessageContent, ...] = tuple(kept)
                members = (reworded, *members[1:]) if step.kind == "reword" else members
                self.done.append(self._introduce(new._replace(act=Edit(), members=members)))
            case "pin" if chosen:
                self.done.append(self._introduce(new._replace(act=Pin(), members=(chosen[0].id,))))
            case "fold" if seen:
                self._fold(step, [row.id for row in seen[: 1 + step.chosen % len(seen)]])

    def _fold(self, step: Step, ids: list[int]) -> None:
        boundary = view_in(self.connection, PERSONA, step.thread, START).boundary_id
        folded = runs(ids)
        operation = self._introduce(NewOperation(PERSONA, Fold(folded), self.now, step.thread))
        summary = Summary(operation, boundary, folded, f"summary of {ids}", 3, "m", self.now)
        snapshot_rows.store(self.connection, PERSONA, step.thread, summary)

    def _introduce(self, new: NewOperation) -> int:
        return operation_rows.introduce(self.connection, new).id


def rows(connection: sqlite3.Connection) -> dict[int, tuple[object, ...]]:
    return {row[0]: row for row in connection.execute("SELECT * FROM messages ORDER BY id")}


@examples(120)
@given(STEPS, st.sets(st.integers(1, 50)))
def test_all_else_is_as_before_and_ids_and_order_hold(steps: list[Step], chosen: set[int]) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.deserialize(new_database())
        log = Log(connection)
        for step in steps:
            log.do(step)
        before = rows(connection)
        views = {thread: view_in(connection, PERSONA, thread, START).messages for thread in THREADS}
        operations = operation_rows.all_of(connection, PERSONA, None)
        found = concerned(connection, WantedPurge(frozenset(chosen & before.keys())))
        overwrite(connection, found.ids, log.now)
        purged = found.ids.messages
        after = rows(connection)
        assert chosen & before.keys() <= purged
        assert [*after] == [*before]
        assert {id_: row for id_, row in after.items() if id_ not in purged} == {
            id_: row for id_, row in before.items() if id_ not in purged
        }
        for thread in THREADS:
            seen = view_in(connection, PERSONA, thread, START)
            assert list(seen.messages) == [row for row in views[thread] if row.id not in purged]
            assert seen.summary is None or purged.isdisjoint(row.id for row in seen.folded)
        assert operation_rows.all_of(connection, PERSONA, None)[: len(operations)] == operations
        assert_nothing_is_left(connection, before, purged)


def assert_nothing_is_left(
    connection: sqlite3.Connection, before: dict[int, tuple[object, ...]], purged: frozenset[int]
) -> None:
    """No text of a purged message is in a dump of the database, and the doctor finds nothing wrong with it."""
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(messages)")]
    texts = [str(before[id_][columns.index("content")]) for id_ in purged]
    dump = "\n".join(connection.iterdump())
    assert not [text for text in texts if text in dump]
    assert examination.changed(connection) == ()
    assert [*examination.faults(connection), *examination.unreadable(connection)] == []
    assert examination.dangling_references(connection) == ""


def summarise(connection: sqlite3.Connection, act: Act, thread: int, base: int | None, text: str) -> None:
    """Store an operation with its summary; the first of them have the ids 1, 2 and so on."""
    operation = operation_rows.introduce(connection, NewOperation("frodo", act, START, thread))
    snapshot_rows.store(connection, "frodo", thread, Summary(operation.id, base, runs([1]), text, 3, "m", START))


@pytest.mark.parametrize(
    ("wanted", "gone"),
    [
        (WantedPurge(frozenset({1})), {1, 2, 4}),
        (WantedPurge(frozenset({2})), {2}),
        (WantedPurge(words="mill"), {1, 2, 4}),
        (WantedPurge(words="wind"), {2}),
        (WantedPurge(frozenset({3})), {3}),
        (WantedPurge(frozenset({4})), set()),
    ],
)
def test_a_purged_summary_takes_later_ones_and_copies_with_it(wanted: WantedPurge, gone: set[int]) -> None:
    with closing(database()) as connection:
        for number, thread in enumerate((1, 1, 2, 2)):
            said = MessageContent(thread, Role.USER, f"said {number}", START + timedelta(minutes=number), token_count=3)
            message_rows.insert_row(connection, "frodo", said)
        summarise(connection, Fold(runs([1])), 1, None, "About a mill.")
        summarise(connection, Fold(runs([2])), 1, None, "About the wind.")
        summarise(connection, Fold(runs([3])), 2, None, "About the sea.")
        summarise(connection, Fork((), 1, 1, 0), 3, 4, "About a mill.")
        assert concerned(connection, wanted).ids.summaries == gone


SAID = [f"The word for the gate is {CANARY}.", "Is the weather fine?"]


async def found(world: World) -> Found:
    """Say something, and return the purge of the first message."""
    for text in SAID:
        await world.say(text)
    await world.told("/context save")
    return await purging(world).find(WantedPurge(words=CANARY), "chorus")


def purging(world: World) -> Purging:
    return world.services.purging


async def operations(world: World) -> list[str]:
    return [each.act.kind for each in await world.store.read(operation_rows.all_of, "chorus", 1)]


async def decided(world: World, steps: int, *, with_backups: bool | None = None) -> None:
    """Do some steps of a purge as if it was killed then, beside a backup unless none is spoken of."""
    purge, home = await found(world), purging(world).home
    if with_backups is not None:
        await world.told("/backup")
    if steps > 0:
        now = world.clock.now()
        await world.store.write(carrying_out.decide, home, purge.wanted, now, with_backups=bool(with_backups))
    if steps > 1:
        await world.store.write(carrying_out.change_files, home)
    if steps > 2:
        await world.store.compact()
    if steps > 3:
        await world.store.write(carrying_out.complete_log)


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
async def test_each_step_is_done_once_whichever_was_the_last(world: World, steps: int) -> None:
    await decided(world, steps)
    told = [each.sentence for each in check_log(purging(world).home.paths) if each.subject == "purge"]
    assert told == (["A purge is not complete. The next start of Chorus completes it."] if steps else [])
    assert await purging(world).finish() is (steps > 0)
    assert await purging(world).finish() is False
    assert holding(world.folder) == ([] if steps else holding(world.folder))
    assert await operations(world) == (["purge"] if steps else [])
    assert [row.content for row in await world.log()][-2:] == [SAID[1], "ok"]


@pytest.mark.parametrize(("steps", "with_backups"), [(1, True), (2, True), (4, True), (1, False), (2, False)])
async def test_a_purge_that_is_carried_on_rewrites_the_backups_if_it_was_to_and_else_names_them(
    world: World, steps: int, *, with_backups: bool
) -> None:
    await decided(world, steps, with_backups=with_backups)
    (backup,) = [path.name for path in (world.folder / "backups").glob("*.zip")]
    told: list[str] = []
    assert await purging(world).finish(told.append) is True
    named = f"The backup {backup} still has the texts. chorus purge backups rewrites it."
    assert told == ["Rewrote 1 backup." if with_backups else named]
    assert holding(world.folder) == ([] if with_backups else [f"backups/{backup}"])
    assert await purging(world).finish(told.append) is False


async def test_a_home_that_is_moved_meanwhile_is_purged_where_it_is(
    world: World, clock: FakeClock, model: ScriptedModel
) -> None:
    await decided(world, 1, with_backups=True)
    before = holding(world.folder)
    copy = Path(shutil.copytree(world.folder, world.folder.parent / f"{world.folder.name}-moved"))
    async with opened(copy / "chorus.db") as store:
        assert await purging(await built(copy, store, clock, model, 10_000)).finish() is True
    assert holding(copy) == []
    assert holding(world.folder) == before


async def test_a_purge_with_backups_that_hold_nothing_is_complete(world: World) -> None:
    purge = await found(world)
    assert (await purging(world).carry_out(purge, with_backups=True)).backups == ()
    assert await purging(world).finish() is False
    assert holding(world.folder) == []


async def test_a_file_that_cannot_be_deleted_goes_once_the_purge_is_carried_on(world: World) -> None:
    note = world.folder / "note.txt"
    note.write_text("a note", encoding="utf-8")
    await say(world, f"Here is {CANARY}: @{note}")
    purge = await found(world)
    stored = next((world.folder / "attachments").glob("*/*"))
    stored.unlink()
    stored.mkdir()
    with pytest.raises(
        PurgeError, match=r"not complete\. .* cannot be deleted: .* The next start of Chorus completes it"
    ):
        await purging(world).carry_out(purge)
    assert stored.exists()
    stored.rmdir()
    assert await purging(world).finish() is True
    assert holding(world.folder) == []


async def test_another_program_that_purges_is_waited_for_and_then_told(world: World) -> None:
    purge = await found(world)
    hurried = replace(purging(world), patience_seconds=0)
    (world.folder / "backups").mkdir()
    with (
        file_lock.hold(world.folder / "backups" / LOCK),
        pytest.raises(PurgeError, match=r"Another Chorus is purging or making a backup\. Try again"),
    ):
        await hurried.carry_out(purge)
    assert len(await world.log()) == 4


async def test_a_program_that_has_the_log_open_for_reading_only_delays_it(
    tmp_path: Path, clock: FakeClock, model: ScriptedModel
) -> None:
    async with opened(tmp_path / "chorus.db", busy_timeout_seconds=0.05) as store:
        world = await built(tmp_path, store, clock, model, 10_000)
        purge = await found(world)
        with closing(sqlite3.connect(tmp_path / "chorus.db", isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT COUNT(*) FROM messages").fetchone()
            with pytest.raises(StorageError, match="did not finish in time"):
                await purging(world).carry_out(purge)
        assert len(await world.log()) == 4
        assert (await purging(world).carry_out(purge)).sentence == "1 message is purged, for good."
        assert holding(tmp_path) == []


@pytest.mark.parametrize(("steps", "with_backups"), [(1, False), (4, True)])
async def test_another_purge_carries_on_the_one_that_was_interrupted(
    world: World, steps: int, *, with_backups: bool
) -> None:
    await decided(world, steps, with_backups=with_backups)
    other = WantedPurge(words="weather fine")
    await purging(world).carry_out(await purging(world).find(other, "chorus"))
    assert await world.store.read(carrying_out.is_pending) is False
    assert [name for name in holding(world.folder) if with_backups or not name.startswith("backups/")] == []


async def test_a_purge_deletes_the_copies_that_killed_processes_left(world: World) -> None:
    purge = await found(world)
    backups = world.folder / "backups"
    backups.mkdir()
    (world.folder / ".restoring-abcd_123").mkdir()
    left = (
        world.folder / ".restoring-abcd_123" / "chorus.db",
        backups / ".chorus-abcd_123.tmp",
        backups / ".chorus-abcd_124.tmp-journal",
    )
    for path in left:
        path.write_text(CANARY)
    await purging(world).carry_out(purge)
    assert holding(world.folder) == []
