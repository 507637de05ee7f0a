"""``/context edit``: the context after an edited text, on a real store, and the answers and questions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.core.errors import CommandError
from chorus_cli.editing.service.context import OvertakenError
from chorus_cli.framework.replies import plain
from chorus_cli.log.rules.messages import Status
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from tests.editing.commands.edited_texts import LINE, changing, replacing, without
from tests.world import World


async def test_the_history_and_the_context_are_laid_out_with_a_line_between(turns: World) -> None:
    await turns.told("/new")
    await turns.say("Fresh")
    await turns.told("/context edit")
    (text,) = turns.editor.shown
    above, below = text.split(LINE)
    spoken = [f"{speaker}: {word}{number}" for number in "123" for speaker, word in (("Human", "A"), ("chorus", "B"))]
    assert [line.partition("] ")[2] for line in above.splitlines() if line.startswith("[")] == spoken
    assert "Human: Fresh" in below


async def test_deleted_messages_leave_and_the_rest_keeps_its_rows_and_is_sent_with_nothing_else(turns: World) -> None:
    before = await turns.log()
    turns.editor.enqueue(without("B1", "A2"))
    assert await turns.told("/context edit") == "Context edited: 4 messages (2 left out). /undo reverts."
    assert await turns.seen() == ["A1", "B2", "A3", "B3"]
    assert await turns.log() == before
    await turns.say("Next")
    assert [content for _, content in turns.asked()] == ["A1", "B2", "A3", "B3", "Next"]
    for _ in range(2):
        await turns.told("/undo")
    assert await turns.seen() == ["A1", "B1", "A2", "B2", "A3", "B3"]


async def test_edited_members_leave_together_when_the_window_has_passed(turns: World) -> None:
    turns.clock.advance(timedelta(hours=7))
    turns.editor.enqueue(without("A2"))
    await turns.told("/context edit")
    turns.clock.advance(timedelta(hours=7, minutes=59))
    assert await turns.seen() == ["A1", "B1", "B2", "A3", "B3"]
    turns.clock.advance(timedelta(minutes=2))
    assert await turns.seen() == []
    gone = "The 5 messages of the edit have left the 8h window. /context 9h brings them back."
    (notice,) = await turns.current.notices()
    assert "the 8h window holds 0 of 5 messages. /context 9h brings them back." in notice
    assert await turns.notices("Hello?") == [gone]
    assert await turns.notices("Hello again?") == []
    await turns.told("/context 9h")
    assert (await turns.seen())[:5] == ["A1", "B1", "B2", "A3", "B3"]


async def test_a_reply_still_running_when_the_editor_opens_follows_too(turns: World) -> None:
    may_end = asyncio.Event()
    turns.model.enqueue(TextDelta("B"), may_end, TextDelta("4"), ReplyEnd("stop"))
    turn = asyncio.create_task(turns.say("A4"))
    await turns.log_row_with_status(7, Status.STREAMING)
    editing = turns.services.context_editing
    opened = await editing.open(turns.current.target())
    assert "A4" not in opened.sheet.text
    may_end.set()
    await turn
    assert await editing.save(opened, opened.sheet.text.replace("Human: A2", "Human: A two")) is not None
    assert await turns.seen() == ["A1", "B1", "A two", "B2", "A3", "B3", "A4", "B4"]


async def retry(turns: World) -> None:
    _ = [event async for event in turns.conversation.retry(turns.current.target())]


@pytest.mark.parametrize(("meanwhile", "seen"), [(retry, ["B3 again"]), (lambda turns: turns.told("/new"), [])])
async def test_what_was_done_meanwhile_is_not_overwritten(
    turns: World, meanwhile: Callable[[World], Awaitable[object]], seen: list[str]
) -> None:
    editing = turns.services.context_editing
    opened = await editing.open(turns.current.target())
    turns.model.say("B3 again")
    await meanwhile(turns)
    with pytest.raises(OvertakenError):
        await editing.save(opened, opened.sheet.text.replace("Human: A2", "Human: A two"))
    assert (await turns.seen())[-1:] == seen


async def give_to(turns: World, run: str) -> None:
    """Let the reply in progress be one that the process ``run`` writes."""
    await turns.store.write(lambda log: log.execute("UPDATE messages SET run = ? WHERE status = 'streaming'", (run,)))


async def test_while_a_retry_runs_the_context_cannot_be_edited(turns: World) -> None:
    may_end = asyncio.Event()
    turns.model.enqueue(TextDelta("B"), may_end, TextDelta("3!"), ReplyEnd("stop"))
    running = asyncio.create_task(retry(turns))
    await turns.log_row_with_status(6, Status.STREAMING)
    here = "The last message of thread #1 is being answered again here; /thread 1 shows the reply."
    elsewhere = "A reply is being written by another Chorus."
    assert await turns.told("/context edit") == f"{here} Edit the context when it is done."
    await give_to(turns, "other-run")
    assert await turns.told("/context edit") == f"{elsewhere} Edit the context when it is done."
    await give_to(turns, "this-run")
    may_end.set()
    await running
    assert (await turns.seen())[-1] == "B3!"


@pytest.mark.parametrize(
    ("change", "reply"),
    [
        (None, "Nothing was changed."),
        ("", "Nothing was changed: the saved text is empty."),
        (without("A", "B"), "Nothing was changed: the text has no messages left. /new empties the context."),
        (changing(lambda text: text + "\n"), "Nothing was changed: the context is the same as before."),
    ],
)
async def test_endings_that_change_nothing_say_so(turns: World, change: Callable[[Path], object], reply: str) -> None:
    turns.editor.enqueue(change)
    assert await turns.told("/context edit") == reply
    assert await turns.journal.entries(turns.current.target()) == []


async def test_a_text_that_cannot_be_read_is_told_with_its_line_and_edited_again(turns: World) -> None:
    turns.editor.enqueue(replacing("Human: A2", "Humn: A2"))
    question = await turns.asked_back("/context edit")
    assert "line" in question.text
    assert "Edit again?" in question.text
    turns.editor.enqueue(replacing("Humn: A2", "Human: A2!"))
    assert plain(await question.confirmed()) == "Context edited: 6 messages (1 reworded). /undo reverts."
    assert await turns.seen() == ["A1", "B1", "A2!", "B2", "A3", "B3"]


async def test_the_editor_is_opened_where_the_context_starts_and_again_where_the_mistake_is(turns: World) -> None:
    await turns.told("/new")
    await turns.say("Fresh")
    turns.editor.enqueue(replacing("Human: Fresh", "Humn: Fresh"))
    question = await turns.asked_back("/context edit")
    turns.editor.enqueue(replacing("Humn: Fresh", "Human: Fresher"))
    await question.confirmed()
    start, mistake = turns.editor.lines
    assert start is not None
    assert mistake is not None
    assert turns.editor.shown[0].splitlines()[start - 1] == LINE.strip()
    assert turns.editor.shown[1].splitlines()[mistake - 1].endswith("Humn: Fresh")
    assert f"Line {mistake}: " in question.text


@pytest.mark.parametrize("complaint", ["", "nano ended with status 1."])
async def test_an_edit_that_is_not_used_is_kept_or_discarded(turns: World, complaint: str) -> None:
    for _ in range(2):
        turns.editor.enqueue(replacing("Human: A2", "Humn: A2"), complaint=complaint)
    kept, discarded = [await turns.asked_back("/context edit") for _ in range(2)]
    assert plain(kept.declined) == f"The context is unchanged; your text is kept in {turns.editor.opened[0]}."
    assert discarded.discarded is not None
    assert plain(await discarded.discarded()) == "The context is unchanged; your edit was discarded."
    assert [path.exists() for path in turns.editor.opened] == [True, False]
    assert await turns.journal.entries(turns.current.target()) == []


async def test_the_answer_counts_what_was_changed_by_its_kind(turns: World) -> None:
    def change(text: str) -> str:
        head, context = text.split(LINE + "\n")
        a1, b1, a2, _b2, *rest, end = context.split("\n\n")
        new = "[2026-02-12 14:00:00] Human: New"
        return head + LINE + "\n" + "\n\n".join([b1, a1, new, f"{a2}!", *rest, end])

    turns.editor.enqueue(changing(change))
    told = await turns.told("/context edit")
    assert told == "Context edited: 6 messages (1 reworded, 1 left out, 1 added, 1 moved). /undo reverts."


# The header of the last message but one loses its bracket, and would join the one above.
SLIP = replacing("[2026-02-12 14:32:00] Human: A3", "2026-02-12 14:32:00] Human: A3")


async def test_a_line_that_looks_like_a_header_and_is_none_is_asked_about(turns: World) -> None:
    turns.editor.enqueue(SLIP)
    question = await turns.asked_back("/context edit")
    (number,) = [i for i, line in enumerate(turns.editor.opened[0].read_text().split("\n"), 1) if line[:4] == "2026"]
    assert question.text.startswith(f"Line {number}: this looks like the beginning of a message, but is none; ")
    assert question.text.endswith("\nEdit again?")
    assert list(question.choices) == ["y", "n", "d"]
    assert await turns.seen() == ["A1", "B1", "A2", "B2", "A3", "B3"]


async def test_an_edit_that_comes_too_late_is_refused_and_its_text_is_kept(turns: World) -> None:
    turns.editor.enqueue(SLIP)
    question = await turns.asked_back("/context edit")
    await turns.told("/new")
    turns.editor.enqueue(replacing("2026-02-12 14:32:00] Human: A3", "[2026-02-12 14:32:00] Human: A three"))
    with pytest.raises(CommandError, match=r"changed in the meantime.* Your text is kept in "):
        await question.confirmed()
