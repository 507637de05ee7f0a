"""A call and its result stay together when rows are left out, edited, saved and folded, and when a tool is stopped."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.log.rows import interrupted_replies, message_rows
from chorus_cli.log.rules.messages import MessageContent, Role, Status, Thoughts
from chorus_cli.models.rules.events import ModelEvent, ReplyEnd, TextDelta, ToolStarted, WaitBegun
from chorus_cli.models.rules.request import ModelRequest
from chorus_cli.storage.store import Connection, Store
from chorus_cli.turns.service.reply import STOPPED
from tests.fakes import FakeClock, ScriptedModel
from tests.remembering import wants_summary
from tests.turns.service.tool_talk import (
    assert_each_request_begins_with_the_one_before,
    assert_pairs_are_whole,
    call,
    calls,
    echo,
    results,
    rows,
    stop_at,
)
from tests.world import MODEL, Tools, World, built


@pytest.fixture
async def used(tooled: World) -> World:
    """A world in which a tool was used between two plain turns."""
    await tooled.say("Hello")
    calls(tooled, call("echo", {"text": "gold of the river"}), before="Let me see.")
    tooled.model.say("It is gold.")
    await tooled.say("What is it?")
    await tooled.say("Thanks")
    return tooled


async def test_a_pair_is_one_block_of_an_edit_that_can_be_deleted(used: World) -> None:
    block = '(tool): echo {"text": "gold of the river"}\n→ gold of the river'

    def without_tool(text: str) -> str:
        head, _, rest = text.partition(block)
        return head[: head.rindex("\n[")] + "\n" + rest.lstrip("\n")

    used.editor.enqueue(lambda path: path.write_text(without_tool(path.read_text())))
    answer = await used.told("/context edit")
    assert block in used.editor.shown[0]
    assert answer.startswith("Context edited:")
    await used.say("Again")
    assert results(used) == []
    assert "Let me see." in [content for _, content in used.asked()]


async def test_a_session_brings_the_pair_back(used: World) -> None:
    before = used.model.requests[-1].messages[1:]
    await used.told("/context save about the river")
    await used.told("/new")
    assert "Restored" in await used.told("/context restore 2026-02-12_about-the-river")
    await used.say("Again")
    assert used.model.requests[-1].messages[1 : len(before) + 1] == before
    assert results(used) == ["gold of the river"]


async def test_a_pair_is_restored_from_a_file_alone(used: World, tools: Tools, store: Store) -> None:
    await used.told("/context save about the river")
    await store.write(lambda connection: connection.execute("UPDATE messages SET content = content || '.'") and None)
    assert "Restored" in await used.told("/context restore 2026-02-12_about-the-river")
    await used.say("Again")
    assert results(used) == ["gold of the river"]
    assert_pairs_are_whole(used.model.requests[-1].messages)
    assert tools.bugs == []


async def test_a_search_finds_what_a_tool_said(used: World) -> None:
    assert "gold of the «river»" in await used.told("/search river")


async def test_the_report_of_the_context_counts_no_empty_reply(tooled: World) -> None:
    calls(tooled, call("echo", {"text": "gold"}))
    await tooled.say("What is it?")
    await tooled.say("Thanks")
    told = await tooled.told("/why")
    assert "blank" not in told
    assert "6 in the 8h window" in told


class SummarisingModel(ScriptedModel):
    """Writes a summary when it is asked for one."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if wants_summary(request.messages[0].content):
            self.requests.append(request)
            yield TextDelta("Summary: it was gold!")
            yield ReplyEnd("stop")
        else:
            async for event in super().stream(request):
                yield event


@pytest.fixture
async def cramped(tmp_path: Path, store: Store, clock: FakeClock) -> World:
    """A world whose requests have 800 words, and whose model summarises."""
    world = await built(tmp_path, store, clock, SummarisingModel(), 1_000, Tools((echo,)))
    world.configure('{"system_prompt": "Short."}')
    return world


async def test_where_there_is_no_room_a_pair_is_left_out_together(cramped: World) -> None:
    cramped.configure('{"system_prompt": "Short.", "summary_model": "chorus/eliza"}')
    world, model = cramped, cramped.model
    for number in range(12):
        calls(world, call("echo", {"text": f"w{number} " * 60}, f"c{number}"), before="b " * 20)
        model.say("a " * 40)
        await world.say(f"q{number} " * 10)
    assert any(len(request.messages) < 40 for request in model.requests)
    for request in model.requests:
        assert_pairs_are_whole(request.messages)


async def test_a_result_too_large_for_the_model_is_cut_and_keeps_its_call(cramped: World) -> None:
    cramped.configure('{"system_prompt": "Short.", "summary_model": "chorus/eliza"}')
    world, model = cramped, cramped.model
    calls(world, call("echo", {"text": "w ", "times": 5_000}))
    done = await world.say("Much?")
    assert done.error is None
    (result,) = results(world)
    assert "tokens left out here" in result
    assert_pairs_are_whole(model.requests[-1].messages)
    await world.say("And then?")
    assert_pairs_are_whole(model.requests[-1].messages)


async def test_a_fold_takes_the_pair_in_and_later_requests_have_neither(cramped: World) -> None:
    world, model = cramped, cramped.model
    calls(world, call("echo", {"text": "gold of the river"}))
    await world.say("What is it?")
    for number in range(8):
        calls(world, call("echo", {"text": f"w{number} " * 40}, f"d{number}"))
        model.say("a " * 40)
        await world.say(f"q{number} " * 20)
    folded = next(each.messages[-1].content for each in model.requests if wants_summary(each.messages[0].content))
    assert "gold of the river" in folded
    assert "chorus calls a tool" in folded
    assert "it was gold!" in model.requests[-1].messages[0].content
    assert "gold of the river" not in results(world)
    for request in model.requests:
        assert_pairs_are_whole(request.messages)


async def test_a_fold_in_a_later_round_leaves_the_turn_whole(cramped: World) -> None:
    world, model = cramped, cramped.model
    for number in range(4):
        model.say("a " * 60)
        await world.say(f"q{number} " * 60)
    calls(world, call("echo", {"text": "w " * 250}))
    calls(world, call("echo", {"text": "v " * 10}))
    done = await world.say("Much?")
    assert done.error is None
    assert "it was gold!" in model.requests[-1].messages[0].content
    assert len(results(world)) == 2
    assert_pairs_are_whole(model.requests[-1].messages)
    assert [row[0] for row in (await rows(world))[8:]] == [
        "user", "assistant", "tool_use", "tool_result", "assistant", "tool_use", "tool_result", "assistant"
    ]  # fmt: skip


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
    named = await tooled.store.write(interrupted_replies.take_broken_off, tooled.clock.now() - timedelta(hours=1))
    assert [each.question for each in named] == ["First"]
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
