"""``/thread fork``: a new thread whose context is that of another one."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.context.service.transcript import Selection, operations_of, transcript
from chorus_cli.core.errors import JournalError
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.acts import Subject, Undo
from chorus_cli.log.rules.journal import log_marks
from chorus_cli.log.rules.messages import Message
from chorus_cli.log.rules.operations import NewOperation
from tests.log.rules.keeping import Keep, registered
from tests.world import World

TALK = ["A1", "B1", "A2", "B2", "A3", "B3"]


async def view_ids(world: World) -> list[int]:
    return [row.id for row in (await world.view()).messages]


async def test_a_fork_has_the_context_of_its_origin_as_the_same_rows_by_one_operation(turns: World) -> None:
    before, rows = await view_ids(turns), len(await turns.log())
    answer = await turns.told("/thread fork")
    assert answer.split("\n\n") == [
        "Thread #2: A1 (fork)",
        "It begins as a fork of thread #1, 6 messages. /undo closes it and goes back.",
    ]
    assert (turns.current.target().thread_id, await view_ids(turns)) == (2, before)
    assert len(await turns.log()) == rows
    assert await turns.store.read(lambda log: log.execute("SELECT kind, thread_id FROM operations").fetchall()) == [
        ("fork", 2)
    ]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("/thread fork", "There is nothing to fork: nothing is in context here. /thread new opens an empty thread."),
        ("/thread fork 7", "Message #7 is not in context here, so nothing was forked. /search shows the numbers of "),
    ],
)
async def test_what_cannot_be_forked_is_a_sentence(world: World, line: str, sentence: str) -> None:
    assert (await world.told(line)).startswith(sentence)
    assert len(await world.threads.open_threads()) == 1


async def test_undo_closes_the_fork_and_goes_back_and_redo_opens_it(turns: World) -> None:
    await turns.told("/thread fork")
    await turns.say("Said in the fork")
    closed = "Thread #2 is closed; you are in thread #1."
    assert (await turns.told("/context undo 1")).splitlines()[1] == closed
    assert (turns.current.target().thread_id, await turns.seen()) == (1, TALK)
    assert "#2" not in await turns.told("/thread")
    assert "Said in the fork" in [row.content for row in await turns.log()]
    assert (await turns.told("/redo")).splitlines()[1] == "Thread #2 is open again, and you are in it."
    assert await turns.seen() == [*TALK, "Said in the fork", "ok"]
    await turns.told("/thread 1")
    assert (await turns.told("/context undo 1")).splitlines()[1] == closed
    assert (await turns.told("/context redo 1")).splitlines()[1] == "Thread #2 is open again, and you are in it."


async def test_the_past_of_a_fork_is_that_of_its_origin(turns: World) -> None:
    turns.clock.advance(timedelta(hours=1))
    await turns.told("/thread fork")
    turns.clock.advance(timedelta(minutes=1))
    past = await turns.told("/context at 30m")
    assert "a window of 8h: 6 messages" in past
    assert "This thread was forked later; this is the context of thread #1." in past
    assert "This thread was forked later" not in await turns.told("/context at 10s")


async def test_an_edit_in_a_fork_keeps_unchanged_rows_and_puts_new_wordings_into_the_fork(turns: World) -> None:
    await turns.told("/thread fork")
    editing = turns.services.context_editing
    opened = await editing.open(turns.current.target())
    text = opened.sheet.text.replace("B2", "Reworded")
    await editing.save(opened, text)
    rows = (await turns.view()).messages
    assert [row.content for row in rows] == ["A1", "B1", "A2", "Reworded", "A3", "B3"]
    assert [(row.id, row.thread_id, row.turn_id) for row in rows] == [
        (1, 1, 1), (2, 1, 1), (3, 1, 3), (7, 2, 3), (5, 1, 5), (6, 1, 5)
    ]  # fmt: skip
    opened = await editing.open(turns.current.target())
    dropped = opened.sheet.text.replace("Reworded", "Again reworded")
    await editing.save(opened, dropped)
    assert [row.id for row in (await editing.open(turns.current.target())).scope.before] == []
    await turns.told("/thread 1")
    assert await turns.seen() == TALK


async def test_what_an_edit_left_out_of_a_fork_stands_in_its_history(turns: World) -> None:
    await turns.told("/thread fork")
    await turns.told("/new")
    opened = await turns.services.context_editing.open(turns.current.target())
    assert [row.content for row in opened.scope.before] == TALK


async def test_a_message_of_the_origin_can_be_named_by_an_act_in_the_fork(turns: World) -> None:
    await turns.told("/thread new")
    with registered():
        with pytest.raises(JournalError):
            await turns.journal.introduce(turns.current.target(), Keep((1,)))
        await turns.told("/thread 1")
        await turns.told("/thread fork")
        await turns.journal.introduce(turns.current.target(), Keep((1,)))
        assert await turns.seen() == TALK


async def test_the_transcript_of_a_fork_begins_with_what_was_forked(turns: World, tmp_path: Path) -> None:
    await turns.told("/thread fork")
    await turns.say("More")
    file = tmp_path / "fork.md"
    await turns.told(f"/export {file} all")
    written = file.read_text()
    assert written.index("B3") < written.index("[PRIOR_CONTEXT_PROVIDED]") < written.index("More")
    assert "undone" not in written


async def test_only_the_thread_in_which_a_turn_was_taken_back_has_it_marked(turns: World) -> None:
    await turns.told("/thread fork 6")
    target = turns.current.target()
    await turns.store.write(
        operation_rows.introduce, NewOperation("chorus", Undo(Subject(turn_id=5)), turns.clock.now(), target.thread_id)
    )
    assert await turns.seen() == TALK[:4]
    for selection, expected in (
        (Selection("chorus"), []),
        (Selection("chorus", 1), []),
        (Selection("chorus", 2), [5, 6]),
    ):
        operations = await operations_of(turns.store, selection)
        marks = log_marks(operations, selection.thread_id)
        entries = [each async for each in transcript(turns.store, selection, operations)]
        messages = [each for each in entries if isinstance(each, Message)]
        assert [each.id for each in messages if marks.is_undone(each)] == expected


async def test_threads_and_operations_of_a_fork_are_told_by_their_numbers(turns: World) -> None:
    await turns.told("/persona new Frodo")
    await turns.say("Hello")
    assert (await turns.told("/thread fork")).startswith("Thread #2: Hello (fork)")
    undone = await turns.told("/context undo 1")
    assert undone == "Undone: fork of thread #1, 2 messages.\nThread #2 is closed; you are in thread #1."
    await turns.told("/context redo 1")
    assert turns.current.target().thread_number == 2
