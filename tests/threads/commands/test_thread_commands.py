"""/thread: several conversations with one persona, what is done in all of them, forks, and who else has one open."""

from __future__ import annotations

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path, PosixPath
from typing import cast

import pytest

from chorus_cli.context.files.open_threads import OpenThreads
from chorus_cli.context.service.transcript import Selection, operations_of, transcript
from chorus_cli.core.errors import JournalError, ModelError
from chorus_cli.framework.command_line import completions
from chorus_cli.framework.replies import Output, plain
from chorus_cli.log.rows import operation_rows, thread_rows
from chorus_cli.log.rules.acts import Subject, Undo, Way
from chorus_cli.log.rules.journal import log_marks
from chorus_cli.log.rules.messages import Message
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.storage.file_lock import hold
from tests.log.rules.keeping import Keep, registered
from tests.world import World


async def test_the_list_marks_where_you_are_and_says_what_each_is_about(world: World) -> None:
    await world.say("Hello")
    await world.told("/thread new Rome")
    lines = (await world.told("/thread")).splitlines()
    assert lines[1].split()[:3] == ["#1", "Hello", "2"]
    assert lines[2].split()[:4] == ["●", "#2", "Rome", "0"]
    assert lines[1].endswith("idle")
    assert lines[2].endswith("empty")


async def test_the_list_counts_no_reply_that_failed_before_its_first_word(world: World) -> None:
    world.model.enqueue(ModelError("It is down."))
    await world.say("Hello")
    assert (await world.told("/thread")).splitlines()[1].split()[:4] == ["●", "#1", "Hello", "1"]


async def test_each_persona_counts_its_own_threads(world: World) -> None:
    await world.told("/thread new")
    await world.told("/persona new Ada")
    assert await world.told("/thread new Rome\udce9") == "Thread #2: Rome\ufffd"
    assert (await world.told("/t 1")).startswith("Thread #1")
    assert world.current.target().thread_number == 1
    assert world.current.target().thread_id == 3


async def test_another_chat_in_the_same_thread_is_told_once_until_it_leaves_or_the_thread_changes(world: World) -> None:
    shared = "Another Chorus is open in this thread."
    runs = world.folder / "run"
    OpenThreads(runs, "other").announce("chorus", 1)
    with hold(runs / "other"):
        assert await world.current.notices() == (shared,)
        assert await world.current.notices() == ()
        assert shared not in await world.told("/thread new")
        assert OpenThreads(runs, "other").is_shared("chorus", 2) is False
        assert shared in await world.told("/thread 1")
    assert world.current.sharing_notices() == ()
    with hold(runs / "other"):
        assert world.current.sharing_notices() == (shared,)


NOWHERE = "/thread lists them, /thread new opens one."


@pytest.fixture
async def rome(world: World) -> World:
    """Three threads: #1 by its first message, #2 Rome, #3 Rotterdam, which is in focus."""
    await world.say("Ravioli for\n  supper")
    await world.told("/thread new Rome")
    await world.say("When in Rome")
    await world.told("/thread new Rotterdam")
    return world


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("2", "Thread #2: Rome"),
        ("#2", "Thread #2: Rome"),
        ("rom", "Thread #2: Rome"),
        ("ROME", "Thread #2: Rome"),
        ("ravioli for  sup", "Thread #1: Ravioli for supper"),
        ("ro", "'ro' is ambiguous: #2 (Rome) or #3 (Rotterdam). Give the number or more letters."),
        ("7", f"There is no thread #7 here. {NOWHERE}"),
        ("rime", f"There is no thread called 'rime' here. Did you mean /thread 2 (Rome)? {NOWHERE}"),
        ("his", f"There is no thread called 'his' here. Did you mean /thread history? {NOWHERE}"),
        ("#x", f"There is no thread called '#x' here. {NOWHERE}"),
    ],
)
async def test_a_thread_is_found_by_number_or_by_the_unique_beginning_of_its_title(
    rome: World, typed: str, answer: str
) -> None:
    assert await rome.told(f"/thread {typed}") == answer


async def test_a_title_itself_goes_before_its_beginning_and_an_open_thread_before_a_closed_one(rome: World) -> None:
    await rome.told("/thread new 2")
    assert await rome.told("/thread 2") == "Thread #2: Rome"
    await rome.told("/thread new Rom")
    assert await rome.told("/thread rom") == "Thread #5: Rom"
    await rome.told("/thread kill 5")
    await rome.told("/thread kill 2")
    await rome.told("/thread new Rome again")
    assert await rome.told("/thread rom") == "Thread #6: Rome again"


TITLED = "If the title begins with that number, type /thread rename 3"


@pytest.mark.parametrize(
    ("typed", "answer", "title"),
    [
        ("rename Utrecht", "Thread #3 is now called Utrecht; its title was Rotterdam.", "3 Utrecht"),
        ("rename 1 Pasta", "Thread #1 is now called Pasta; it had no title.", "1 Pasta"),
        ("rename #2 Roma", "Thread #2 is now called Roma; its title was Rome.", "2 Roma"),
        ("rename 2", "Thread #3 is now called 2; its title was Rotterdam.", "3 2"),
        ("rename 3 12 monkeys", "Thread #3 is now called 12 monkeys; its title was Rotterdam.", "3 12 monkeys"),
        ("rename 12 monkeys", f"There is no thread #12 here. {TITLED} 12 monkeys. {NOWHERE}", "3 Rotterdam"),
        ("rename #12 monkeys", f"There is no thread #12 here. {TITLED} #12 monkeys. {NOWHERE}", "3 Rotterdam"),
        ("rename", "Thread #3 is named after its first message again; its title was Rotterdam.", "3 "),
    ],
)
async def test_a_rename_says_the_old_title(rome: World, typed: str, answer: str, title: str) -> None:
    assert await rome.told(f"/thread {typed}") == answer
    assert title in [f"{thread.number} {thread.title}" for thread in await rome.services.threads.all()]


async def test_a_killed_thread_is_no_longer_listed_and_can_be_opened_again(rome: World) -> None:
    answer = await rome.told("/thread kill rome")
    assert answer == "Closed thread #2. /thread 2 opens it again."
    assert rome.current.thread_id == 3
    assert "Rome" not in await rome.told("/thread")
    (listed,) = [line for line in (await rome.told("/thread list all")).splitlines() if "Rome" in line]
    assert listed.endswith("closed")
    assert await rome.told("/thread kill 2") == "Thread #2 is closed already. /thread 2 opens it again."
    assert await rome.told("/thread rome") == "Thread #2 is open again.\n\nThread #2: Rome"
    assert await rome.seen() == ["When in Rome", "ok"]


async def test_all_are_killed_after_a_question(rome: World) -> None:
    question = await rome.asked_back("/thread kill all")
    assert question.text == "Close 3 threads of chorus? This stops their replies; it deletes no message."
    assert question.declined.text == "No thread was closed."
    told = plain(await question.confirmed())
    assert told == "Closed 3 threads. /thread N opens one again.\n\nThread #4"
    assert len(await rome.log()) == 4
    await rome.store.write(thread_rows.close, [rome.current.thread_id], rome.clock.now())
    assert await rome.told("/thread kill all") == "No thread is open."


async def test_the_history_of_a_thread_is_printed_whole_also_of_a_closed_one(rome: World) -> None:
    assert await rome.told("/thread history") == "Nothing was said in thread #3 yet."
    await rome.told("/new")
    await rome.told("/thread kill 2")
    lines = [line.partition("] ")[2] for line in (await rome.told("/thread history 2")).split("\n\n")]
    assert lines == ["Human: When in Rome", "chorus: ok", "[CONTEXT_CLEARED]"]
    await rome.told("/thread 1")
    assert "Ravioli for\n  supper" in await rome.told("/thread history")


async def test_a_new_persona_of_an_old_folder_has_no_old_threads_not_even_closed_ones(world: World) -> None:
    await world.told("/persona new Ada")
    await world.told("/thread new Secrets")
    await world.told("/persona archive")
    await world.persona_admin.delete("ada")
    await world.told("/persona new Ada")
    assert "Secrets" not in await world.told("/thread list all")
    assert "no thread called" in await world.told("/thread secrets")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("/thread ", ["1 Ravioli for supper", "2 Rome", "3 Rotterdam"]),
        ("/thread #", ["#1 Ravioli for supper", "#2 Rome", "#3 Rotterdam"]),
        ("/thread rO", ["Rome #2", "Rotterdam #3"]),
        ("/thread history 2", ["2 Rome"]),
        ("/thread kill a", ["all every thread"]),
    ],
)
async def test_each_thread_is_offered_once_by_its_number_or_its_title(
    rome: World, typed: str, offered: list[str]
) -> None:
    await rome.services.threads.all()
    found = completions(rome.services.registry, rome.services, typed).candidates
    names = {name for name in rome.services.registry.words["thread"].words if name}  # type: ignore[union-attr]
    assert [f"{each.text} {each.description}" for each in found if each.text not in names] == offered
    await rome.told("/thread kill 3")
    await rome.services.threads.all()
    found = completions(rome.services.registry, rome.services, "/thread ").candidates
    assert [each.text for each in found][:2] == ["1", "2"]
    assert "3" not in {each.text for each in found}
    found = completions(rome.services.registry, rome.services, "/thread rot").candidates
    assert [each.text for each in found] == ["Rotterdam"]


@pytest.fixture
async def three(world: World) -> World:
    """Something said in each of three threads, of which the third is in focus."""
    await world.say("In the first")
    for said in ("In the second", "In the third"):
        await world.told("/thread new")
        await world.say(said)
    return world


async def seen_in_each(world: World) -> list[list[str]]:
    """Return what is in context in the three threads."""
    seen = []
    for number in (1, 2, 3):
        await world.told(f"/thread {number}")
        seen.append(await world.seen())
    return seen


EACH = [["In the first", "ok"], ["In the second", "ok"], ["In the third", "ok"]]
NOTHING: list[list[str]] = [[], [], []]


async def test_a_clear_and_its_undo_say_how_many_threads_they_concern(three: World) -> None:
    for line, seen in (("/new", NOTHING), ("/undo", EACH), ("/redo", NOTHING)):
        assert (await three.told(line)).endswith(" in all 3 threads of chorus")
        assert await seen_in_each(three) == seen
    assert await three.told("/context undo") == "Undone: new conversation in all 3 threads of chorus"
    assert await three.told("/context redo") == "Redone: new conversation in all 3 threads of chorus"


async def test_with_one_thread_nothing_of_that_is_said(world: World) -> None:
    await world.say("Hello")
    assert await world.told("/new") == "--- New conversation ---"
    assert await world.told("/undo") == "Undone: new conversation"
    assert "thread" not in (await world.told("/context save")).splitlines()[0]
    assert "in thread" not in await world.told("/why")


async def test_a_saved_session_says_from_how_many_threads_and_a_restore_brings_each_back(three: World) -> None:
    saved, *_ = (await three.told("/context save Tests")).splitlines()
    assert saved.startswith("Saved session ")
    assert ": 6 messages, ~" in saved
    await three.told("/new")
    name = saved.split()[2].rstrip(":")
    restored = await three.told(f"/context restore {name}")
    assert restored.startswith(f"Restored session {name}: 6 messages in place of the old context.")
    assert three.current.thread_number == 3
    assert await seen_in_each(three) == EACH


async def test_why_says_which_thread_it_explains(three: World) -> None:
    await three.told("/thread 2")
    assert "\nThread #2 of chorus; " in await three.told("/why")


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


async def test_the_mark_of_a_fork_comes_first_in_the_list_so_that_a_long_title_does_not_hide_it(turns: World) -> None:
    await turns.told("/thread rename Rome (fork)")
    await turns.told("/thread fork")
    lines = (await turns.told("/thread")).splitlines()
    assert all("(fork) Rome" in line for line in lines[1:3])
    assert (await turns.threads.current()).title == "Rome (fork)"


async def test_what_cannot_be_forked_is_a_sentence(world: World) -> None:
    assert (await world.told("/thread fork")).startswith("There is nothing to fork: nothing is in context here.")
    assert (await world.told("/thread fork 7")).startswith("Message #7 is not in context here. /search shows")
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
    assert "Thread #1 had this context; this thread was forked from it later." in past
    assert "this thread was forked" not in await turns.told("/context at 10s")


async def test_the_history_of_a_fork_says_which_reply_was_replaced_there(turns: World) -> None:
    await turns.told("/thread fork")
    _ = [event async for event in turns.conversation.retry(turns.current.target(), Way.AGAIN)]
    history = await turns.told("/thread history")
    assert [line.partition("] ")[2] for line in history.splitlines() if "replaced" in line] == ["chorus: B3 [replaced]"]
    await turns.told("/thread 1")
    assert "replaced" not in await turns.told("/thread history")


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
    history = await turns.carry_out("/thread history")
    assert isinstance(history, Output)
    assert history.data is not None
    assert {entry["thread"] for entry in cast("list[dict[str, object]]", await history.data())} == {1, 2}
    undone = await turns.told("/context undo 1")
    assert undone == "Undone: fork of thread #1, 2 messages.\nThread #2 is closed; you are in thread #1."
    await turns.told("/context redo 1")
    assert turns.current.target().thread_number == 2


def test_the_thread_that_a_running_chat_announced_last_is_shared_with_it(tmp_path: Path) -> None:
    own, other = OpenThreads(tmp_path, "own"), OpenThreads(tmp_path, "other")
    other.announce("frodo", 4)
    other.announce("frodo", 3)
    alive = hold(tmp_path / "other")
    with alive:
        shared = [own.is_shared(*thread) for thread in (("frodo", 3), ("frodo", 33), ("frodo", 4), ("sam", 3))]
        assert shared == [True, False, False, False]
        assert not other.is_shared("frodo", 3)
    assert not own.is_shared("frodo", 3)


class Sorted(PosixPath):
    """A folder that lists its files by name."""

    def iterdir(self) -> Generator[Sorted, None, None]:
        yield from sorted(super().iterdir())


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "damaged").symlink_to("/proc/self/mem")
    OpenThreads(tmp_path, "other").announce("frodo", 3)
    with hold(tmp_path / "other"):
        assert OpenThreads(Sorted(tmp_path), "own").is_shared("frodo", 3)


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    lost = OpenThreads(tmp_path / "lost", "own")
    lost.announce("frodo", 3)
    assert not lost.is_shared("frodo", 3)
