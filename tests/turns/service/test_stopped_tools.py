"""A tool that is stopped or killed at work: the turn ends as interrupted, and later requests have no half of a call."""

from __future__ import annotations

import pytest

from chorus_cli.log.rows import interrupted_replies, message_rows
from chorus_cli.log.rules.messages import MessageContent, Role, Status, Thoughts
from chorus_cli.models.rules.events import ToolStarted, WaitBegun
from chorus_cli.storage.store import Connection
from chorus_cli.turns.service.reply import STOPPED
from tests.turns.service.tool_talk import (
    assert_each_request_begins_with_the_one_before,
    assert_pairs_are_whole,
    call,
    calls,
    results,
    rows,
    stop_at,
)
from tests.world import MODEL, World


async def kill_in_tool(world: World) -> None:
    """Leave a turn as a process does that is killed while a tool is at work."""

    def begin(connection: Connection) -> None:
        question = MessageContent(1, Role.USER, "First", world.clock.now(), token_count=1)
        _, reply = message_rows.open_turn(connection, "chorus", question, MODEL, "dead")
        ended = reply._replace(content="Let me see.", status=Status.COMPLETE, token_count=3)
        used = MessageContent(
            1, Role.TOOL_USE, "", world.clock.now(), reply.turn_id, tool_calls=call("endless").as_json,
            tool_call_id="c1", status=Status.STREAMING, token_count=9,
        )  # fmt: skip
        message_rows.begin_call(connection, ended, Thoughts(), used)

    await world.store.write(begin)


async def test_a_stopped_tool_is_told_as_such_and_the_turn_is_interrupted(tooled: World) -> None:
    calls(tooled, call("endless"), before="Let me see.")
    await stop_at(tooled.conversation.answer(tooled.current.target(), "First"), ToolStarted)
    assert await rows(tooled) == [
        ("user", "First", None, "complete"),
        ("assistant", "Let me see.", None, "complete"),
        ("tool_use", "", "c1", "complete"),
        ("tool_result", STOPPED, "c1", "complete"),
        ("assistant", "", None, "interrupted"),
    ]
    await tooled.say("Second")
    assert results(tooled) == [STOPPED]
    assert_each_request_begins_with_the_one_before(tooled)


async def test_of_several_calls_those_after_a_stopped_one_are_not_begun(tooled: World) -> None:
    calls(tooled, call("echo", {"text": "a"}, "c1"), call("endless", "", "c2"), call("echo", {"text": "b"}, "c3"))
    await stop_at(tooled.conversation.answer(tooled.current.target(), "First"), ToolStarted, 2)
    await tooled.say("Second")
    assert results(tooled) == ["a", STOPPED]
    assert_each_request_begins_with_the_one_before(tooled)


async def test_a_killed_tool_leaves_a_call_that_is_mended_and_not_sent(tooled: World) -> None:
    await kill_in_tool(tooled)
    assert (await rows(tooled))[-1] == ("tool_use", "", "c1", "streaming")
    mended = await tooled.store.write(
        interrupted_replies.mark_interrupted, lambda run: run != "dead", tooled.clock.now()
    )
    assert len(mended.interrupted) == 1
    assert (await rows(tooled))[-1] == ("tool_use", "", "c1", "interrupted")
    await tooled.say("Second")
    assert tooled.asked() == [("user", "First"), ("assistant", "Let me see."), ("user", "Second")]
    assert_each_request_begins_with_the_one_before(tooled)


async def test_a_retry_replaces_the_calls_and_results_of_the_turn_too(tooled: World) -> None:
    calls(tooled, call("echo", {"text": "gold"}), before="Let me see.")
    tooled.model.say("Gold.")
    await tooled.say("First")
    calls(tooled, call("echo", {"text": "silver"}))
    tooled.model.say("Silver.")
    _ = [event async for event in tooled.conversation.retry(tooled.current.target())]
    assert tooled.asked(-2) == [("user", "First")]
    assert await tooled.seen() == ["First", "", "", "silver", "Silver."]
    await tooled.say("Second")
    assert results(tooled) == ["silver"]
    assert_pairs_are_whole(tooled.model.requests[-1].messages)
    await tooled.carry_out("/context undo")
    await tooled.say("Third")
    assert results(tooled) in (["gold"], ["silver"])


@pytest.mark.parametrize(("words", "seen", "sent"), [("", "ok", []), ("Let me see.", "Let me see.", [STOPPED])])
async def test_a_retry_that_is_stopped_in_a_tool_keeps_the_old_reply_or_its_words(
    tooled: World, words: str, seen: str, sent: list[str]
) -> None:
    await tooled.say("First")
    calls(tooled, call("endless"), before=words)
    await stop_at(tooled.conversation.retry(tooled.current.target()), ToolStarted)
    assert (await tooled.seen())[:2] == ["First", seen]
    await tooled.say("Second")
    assert results(tooled) == sent


async def test_a_stopped_turn_can_be_answered_again(tooled: World) -> None:
    calls(tooled, call("endless"), before="Let me see.")
    await stop_at(tooled.conversation.answer(tooled.current.target(), "First"), ToolStarted)
    _ = [event async for event in tooled.conversation.retry(tooled.current.target())]
    assert tooled.asked() == [("user", "First")]
    assert await tooled.seen() == ["First", "ok"]


async def test_a_retry_waits_while_a_tool_is_at_work(tooled: World) -> None:
    calls(tooled, call("endless"))
    events = tooled.conversation.answer(tooled.current.target(), "First")
    while not isinstance(await anext(events), ToolStarted):
        pass
    retry = tooled.conversation.retry(tooled.current.target())
    assert isinstance(await anext(retry), WaitBegun)
    await events.aclose()
    _ = [event async for event in retry]
    assert await tooled.seen() == ["First", "ok"]


async def test_an_undone_turn_takes_its_tools_along(tooled: World) -> None:
    calls(tooled, call("echo", {"text": "gold"}))
    await tooled.say("First")
    await tooled.carry_out("/undo")
    assert await tooled.seen() == []
    await tooled.carry_out("/redo")
    await tooled.say("Second")
    assert results(tooled) == ["gold"]
