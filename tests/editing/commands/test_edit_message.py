"""``/edit``: other words in the place of one message: of the last one like a retry, of others by an edit."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.editing.service.context import OvertakenError
from chorus_cli.log.rules.acts import Way
from chorus_cli.log.rules.messages import Status
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from tests.editing.commands.test_context_edit import retry
from tests.stores.service.canary_talk import purged
from tests.turns.service.tool_talk import call, calls
from tests.world import World

THREE = ["A1", "B1", "A2", "B2", "A3", "B3"]
FIXED = "As after /context edit, the context is now exactly 6 messages, without a summary and without pinned messages. "
UNCHANGED = "Nothing was changed."


async def edited(turns: World, line: str, words: str) -> str:
    turns.editor.enqueue(words)
    return await turns.told(line)


async def test_the_newest_reply_is_edited_with_nothing_but_its_text_and_its_wordings_are_undone_one_by_one(
    turns: World,
) -> None:
    assert await edited(turns, "/edit", "Bee\nthree\n") == "Message edited. /undo reverts.\n\nBee\nthree"
    assert turns.editor.shown == ["B3\n"]
    assert await turns.seen() == [*THREE[:-1], "Bee\nthree"]
    assert await edited(turns, "/edit", "Bee") == "Message edited. /undo reverts.\n\nBee"
    rows = await turns.log()
    assert [(row.content, row.revises) for row in rows[5:]] == [("B3", None), ("Bee\nthree", 6), ("Bee", 7)]
    assert "B3 [replaced]" in await turns.told("/thread history")
    assert "undone" not in await turns.told("/context why")
    assert "█ = 6 messages in " in await turns.told("/context")
    assert (await turns.steps())[3:] == ['edit of message #6 "B3"', 'edit of message #7 "Bee three"']
    assert await turns.told("/undo") == 'Undone: edit of message #7 "Bee three"'
    assert (await turns.seen())[-1] == "Bee\nthree"
    await turns.told("/redo")
    assert (await turns.seen())[-1] == "Bee"
    for _ in range(2):
        await turns.told("/undo")
    assert await turns.seen() == THREE
    assert [row.content for row in await turns.log()] == [row.content for row in rows]
    await turns.say("A4")
    assert [content for _, content in turns.asked()] == [*THREE, "A4"]


async def test_the_newest_reply_keeps_its_age_and_the_window_still_reaches_further_back(turns: World) -> None:
    turns.clock.advance(timedelta(hours=7, minutes=30))
    await edited(turns, "/edit", "Bee")
    turns.clock.advance(timedelta(hours=1))
    assert await turns.seen() == []
    await turns.told("/context 24h")
    assert await turns.seen() == [*THREE[:-1], "Bee"]


@pytest.mark.parametrize(("number", "place"), [("3", 2), ("#2", 1)])
async def test_any_message_is_edited_by_its_number_also_by_that_of_an_earlier_wording(
    turns: World, number: str, place: int
) -> None:
    for words in ("Other", "Yet another"):
        told = await edited(turns, f"/edit {number}", words)
        assert told == f"Message edited. {FIXED if place == 2 else ''}/undo reverts.\n\n{words}"
    assert turns.editor.shown[1] == "Other\n"
    assert await turns.seen() == [*THREE[:place], "Yet another", *THREE[place + 1 :]]
    for edit in ('#7 "Other"', f'#{place + 1} "{THREE[place]}"'):
        assert await turns.told("/undo") == f"Undone: edit of message {edit}"
    assert await turns.seen() == THREE


async def test_the_newest_reply_of_an_edited_context_is_edited_in_its_place(turns: World) -> None:
    await edited(turns, "/edit 1", "A one")
    turns.clock.advance(timedelta(hours=7, minutes=59))
    await edited(turns, "/edit", "Bee")
    assert await turns.seen() == ["A one", *THREE[1:-1], "Bee"]


async def test_an_older_reply_is_edited_in_its_place_and_the_window_the_pins_and_older_messages_stay(
    turns: World,
) -> None:
    await turns.told("/pin 1")
    turns.clock.advance(timedelta(hours=7, minutes=56, seconds=30))
    await edited(turns, "/edit 4", "Bee two")
    assert await turns.seen() == ["A1", "A2", "Bee two", *THREE[4:]]
    await turns.told("/context 24h")
    assert await turns.seen() == [*THREE[:3], "Bee two", *THREE[4:]]
    assert (await turns.view()).pinned == {1}


async def test_an_edit_of_a_summarised_reply_says_that_it_fixes_the_context(turns: World) -> None:
    turns.model.say("A summary.")
    assert (await turns.told("/compact")).startswith("2 messages summarised")
    assert await edited(turns, "/edit 2", "Bee") == f"Message edited. {FIXED}/undo reverts.\n\nBee"
    assert (await turns.view()).summary is None


@pytest.mark.parametrize("line", ["/edit", "/continue"])
async def test_a_pin_moves_to_the_new_wording_of_its_message_and_back_with_an_undo(turns: World, line: str) -> None:
    await turns.told("/pin 6")
    turns.model.say(" and more")
    if line == "/edit":
        await edited(turns, line, "B3 and more")
    else:
        async for _ in turns.conversation.retry(turns.current.target(), Way.CONTINUE):
            pass
    turns.clock.advance(timedelta(hours=9))
    assert await turns.seen() == ["B3 and more"]
    assert await turns.told("/pin 6") == "Message #7 is pinned already. /unpin 7 ends that."
    assert await turns.told("/unpin 6") == 'No longer pinned: #7 "B3 and more".'
    assert await turns.seen() == []
    for _ in range(2):
        await turns.told("/undo")
    assert (await turns.seen(), (await turns.view()).pinned) == (["B3"], frozenset({6}))


async def test_a_reply_that_broke_off_is_whole_after_an_edit(turns: World) -> None:
    turns.model.enqueue(TextDelta("Half of"), ReplyEnd("length"))
    await turns.say("A4")
    await edited(turns, "/edit", "All of it.")
    last = (await turns.view()).messages[-1]
    assert (last.content, last.status, last.turn_id) == ("All of it.", Status.COMPLETE, 7)


async def test_a_question_without_an_answer_is_edited_like_the_last_message(turns: World) -> None:
    turns.model.enqueue(ModelError("It is down."))
    await turns.say("A4")
    assert await edited(turns, "/edit 7", "A four") == "Message edited. /undo reverts.\n\nA four"
    turns.model.say("B4")
    await retry(turns)
    assert [content for _, content in turns.asked()] == [*THREE, "A four"]
    assert await turns.seen() == [*THREE, "A four", "B4"]


@pytest.mark.parametrize("saved", ["B3", "B3\n", "", " \n"])
async def test_an_edit_that_changes_nothing_says_so(turns: World, saved: str) -> None:
    assert (await edited(turns, "/edit", saved)).startswith(UNCHANGED[:-1])
    assert await turns.journal.entries(turns.current.target()) == []


async def test_what_cannot_be_edited_is_refused_in_a_sentence(tooled: World) -> None:
    assert await tooled.told("/edit") == "There is no reply in context to edit. /edit 12 edits a message by its number."
    calls(tooled, call("echo", {"text": "ha"}))
    tooled.model.say("Done.")
    await tooled.say("Use it")
    for row in await tooled.log():
        if row.role.startswith("tool"):
            refused = f"Message #{row.id} cannot be edited: it is empty, a tool's, or still in progress."
            assert await tooled.told(f"/edit {row.id}") == refused
    assert (await purged(tooled, "/purge message 1")).endswith("purged, for good.")
    for number in (1, 99):
        assert await tooled.told(f"/edit {number}") == (
            f"Message #{number} is not in context here. /search shows the numbers of messages; /context edit brings a "
            "message back into context."
        )
    assert tooled.editor.shown == []


@pytest.mark.parametrize("line", ["/edit", "/edit 3"])
async def test_what_was_done_meanwhile_is_not_overwritten(turns: World, line: str) -> None:
    opened = await turns.services.context_editing.open_message(turns.current.target(), 3 if " " in line else None)
    turns.model.say("B3 again")
    await retry(turns)
    with pytest.raises(OvertakenError):
        await turns.services.context_editing.reword(opened, "Bee")
    assert await turns.seen() == [*THREE[:-1], "B3 again"]


async def test_a_message_whose_turn_is_being_answered_is_not_edited(turns: World) -> None:
    may_end = asyncio.Event()
    turns.model.enqueue(TextDelta("B"), may_end, TextDelta("4"), ReplyEnd("stop"))
    turn = asyncio.create_task(turns.say("A4"))
    await turns.log_row_with_status(7, Status.STREAMING)
    refused = "Message #7 cannot be edited: it is empty, a tool's, or still in progress."
    assert await turns.told("/edit 7") == refused
    assert await edited(turns, "/edit", "Bee") == "Message edited. /undo reverts.\n\nBee"
    may_end.set()
    await turn
    assert await turns.seen() == [*THREE[:-1], "Bee", "A4", "B4"]
