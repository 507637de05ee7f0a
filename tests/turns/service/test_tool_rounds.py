"""Tools that a model calls: answers in the next request and in each later one, whatever is left out, edited or cut."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.core import limits
from chorus_cli.core.errors import ToolsRefusedError
from chorus_cli.log.rows import interrupted_replies, message_rows
from chorus_cli.log.rules.messages import MessageContent, Role, Status, Thought, Thoughts
from chorus_cli.mcp.toolbox import MOST_CALLS
from chorus_cli.models.rules.costs import THOUGHT
from chorus_cli.models.rules.events import Notice, ReasoningDelta, ReplyEnd, TextDelta, ToolStarted, WaitBegun
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store
from chorus_cli.turns.service.reply import MOST_ROUNDS, STOPPED
from tests.fakes import FakeClock
from tests.remembering import wants_summary
from tests.turns.folding.long_talk import RememberingModel
from tests.turns.service.tool_talk import (
    TOOLS,
    assert_each_request_begins_with_the_one_before,
    assert_pairs_are_whole,
    assert_repeated_later,
    call,
    calls,
    echo,
    end_of,
    events_of,
    lines,
    results,
    rows,
    stop_at,
)
from tests.world import MODEL, Tools, World, built


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "function_call", "tool_use"])
async def test_a_call_is_answered_in_the_next_request_of_the_turn(tooled: World, reason: str) -> None:
    calls(tooled, call("echo", {"text": "gold"}), before="Let me see.", reason=reason)
    tooled.model.say("It is gold.")
    events = await events_of(tooled, "What is it?")
    assert (end_of(events).status, end_of(events).error) == (Status.COMPLETE, None)
    assert lines(events) == ['echo("gold"): 1 times']
    assert await rows(tooled) == [
        ("user", "What is it?", None, "complete"),
        ("assistant", "Let me see.", None, "complete"),
        ("tool_use", "", "c1", "complete"),
        ("tool_result", "gold", "c1", "complete"),
        ("assistant", "It is gold.", None, "complete"),
    ]
    assert len({row.turn_id for row in await tooled.log()}) == 1
    await assert_repeated_later(tooled)
    assert [message.role for message in tooled.model.requests[-1].messages] == [
        "system", "user", "assistant", "tool", "assistant", "user"
    ]  # fmt: skip


async def test_two_calls_of_one_reply_are_answered_one_after_the_other(tooled: World) -> None:
    calls(tooled, call("echo", {"text": "a"}, ""), call("echo", {"text": "b", "times": "2"}, ""))
    events = await events_of(tooled, "Both?")
    assert lines(events) == ['echo("a"): 1 times', 'echo("b", "2"): 2 times']
    assert [(role, content) for role, content, *_ in (await rows(tooled))[2:6]] == [
        ("tool_use", ""), ("tool_result", "a"), ("tool_use", ""), ("tool_result", "bb")
    ]  # fmt: skip
    assert results(tooled) == ["a", "bb"]
    assert [role for role, _ in tooled.asked()] == ["user", "assistant", "tool", "tool"]
    await assert_repeated_later(tooled)


async def test_each_round_tells_how_the_model_thought_with_its_first_call(tooled: World) -> None:
    both = (call("echo", {"text": "a"}), call("echo", {"text": "b"}, "c2"))
    tooled.model.enqueue(ReasoningDelta("I must look."), ReplyEnd("tool_calls", {THOUGHT: 20}, both))
    calls(tooled, call("echo", {"text": "c"}, "c3"))
    tooled.model.enqueue(ReasoningDelta("Gold!"), TextDelta("It is gold."), ReplyEnd("stop", {THOUGHT: 640}))
    events = await events_of(tooled, "What is it?")
    told = [event.thought and event.thought.tokens for event in events if isinstance(event, ToolStarted)]
    assert told == [20, None, None]
    assert end_of(events).thought == Thought(0.0, 640)


@pytest.mark.parametrize("id_", ["c1", "", "call_0"])
async def test_ids_are_unique_whatever_the_provider_sends(tooled: World, id_: str) -> None:
    calls(tooled, call("echo", {"text": "a"}, id_), call("echo", {"text": "b"}, id_))
    calls(tooled, call("echo", {"text": "c"}, id_))
    await tooled.say("First")
    calls(tooled, call("echo", {"text": "d"}, id_))
    await tooled.say("Second")
    assert results(tooled) == ["a", "b", "c", "d"]
    ids = [message.tool_call_id for message in tooled.model.requests[-1].messages if message.role == "tool"]
    assert len(set(ids)) == 4
    assert_each_request_begins_with_the_one_before(tooled)


@pytest.mark.parametrize(
    ("arguments", "understood"),
    [
        ('{"text": "gold"', "gold"),
        ("{'text': 'gold',}", "gold"),
        ('```json\n{"text": "gold"}\n```', "gold"),
        ('{"text": "gold" "times": 2}', "goldgold"),
    ],
)
async def test_damaged_arguments_are_repaired(tooled: World, arguments: str, understood: str) -> None:
    calls(tooled, call("echo", arguments))
    await tooled.say("What is it?")
    (result,) = results(tooled)
    note, _, text = result.partition("\n\n")
    assert note.startswith("(The arguments were not valid JSON; they were understood as {")
    assert text == understood
    await assert_repeated_later(tooled)


@pytest.mark.parametrize(
    ("name", "arguments", "told", "outcome"),
    [
        ("echo", "gold, please", "could not be read: they must be one JSON object", "The arguments could"),
        ("echo", '["gold"]', 'for example {"text": "…"}.', "The arguments could"),
        ("echo", "", "The argument 'text' is missing: Any text.", "The argument 'text' is missing"),
        ("echo", {"text": ["gold"]}, "The argument 'text' must be a text", "The argument 'text' must"),
        ("echo", {"text": "a", "times": "often"}, "The argument 'times' must be a whole number", "'times'"),
        ("forget_all", {"sure": True}, "There is no tool 'forget_all'. The tools are: search_history", "no such tool"),
        ("rm -rf /\n", "", "There is no tool 'rm_-rf__'.", "no such tool"),
        ("", '{"a": 1}', "There is no tool 'unnamed'.", "no such tool"),
        ("broken", "", "broken failed because of a mistake in Chorus.", "failed"),
    ],
    ids=range(9),
)
async def test_what_a_tool_cannot_do_is_told_to_the_model_and_a_bug_is_reported(
    tooled: World, tools: Tools, name: str, arguments: object, told: str, outcome: str
) -> None:
    calls(tooled, call(name, arguments))
    tooled.model.say("So be it.")
    events = await events_of(tooled, "Do it.")
    assert end_of(events).error is None
    assert told in results(tooled)[0]
    assert outcome in lines(events)[0]
    assert (await rows(tooled))[-1][1] == "So be it."
    assert [str(bug) for bug in tools.bugs] == (["the wheel came off"] if name == "broken" else [])
    await assert_repeated_later(tooled)


async def test_of_a_long_result_a_request_has_both_ends_and_the_log_has_all(tooled: World) -> None:
    most = limits.TOOL_RESULT.most
    calls(tooled, call("echo", {"text": "ab", "times": most}))
    await tooled.say("Much?")
    (result,) = results(tooled)
    assert len(result) < most + 100
    assert "[… 20,000 characters left out here …]" in result
    assert "ab" * most in [content for _role, content, *_ in await rows(tooled)]
    await assert_repeated_later(tooled)


async def test_an_endless_loop_of_calls_is_ended_with_an_answer(tooled: World) -> None:
    for _ in range(MOST_ROUNDS + 1):
        calls(tooled, call("echo", {"text": "again"}))
    tooled.model.say("Enough.")
    events = await events_of(tooled, "Loop!")
    assert end_of(events).error is None
    assert [request.may_call for request in tooled.model.requests] == [True] * (MOST_ROUNDS + 1) + [False]
    assert results(tooled)[:-1] == ["again"] * MOST_ROUNDS
    assert results(tooled)[-1].startswith("This was not carried out: tools may be used 10 times for one message.")
    assert lines(events)[-1] == 'echo("again"): not carried out (at most 10 rounds for a message)'
    assert len({request.tools for request in tooled.model.requests}) == 1
    await assert_repeated_later(tooled)


async def test_only_the_first_calls_of_a_reply_are_carried_out_and_the_others_are_one_row(tooled: World) -> None:
    calls(tooled, *(call("echo", {"text": f"{number}"}, f"c{number}") for number in range(1_000)))
    events = await events_of(tooled, "All!")
    *others, last = results(tooled)
    assert others == [str(number) for number in range(MOST_CALLS - 1)]
    assert last == (
        "15\n\n(984 more calls of this reply were not carried out: a reply may have 16. "
        "Make them again if they still matter.)"
    )
    assert lines(events)[-1] == "984 more calls: not carried out (at most 16 calls for a reply)"
    stored = await tooled.log()
    assert [len(json.loads(row.tool_calls)) for row in stored if row.tool_calls] == [1] * MOST_CALLS + [984]
    await assert_repeated_later(tooled)


@pytest.mark.parametrize(("words", "status"), [("", Status.FAILED), ("Hm.", Status.TRUNCATED)])
async def test_a_model_that_calls_even_then_is_stopped(tooled: World, words: str, status: Status) -> None:
    for _ in range(MOST_ROUNDS + 2):
        calls(tooled, call("echo", {"text": "again"}), before=words)
    done = end_of(await events_of(tooled, "Loop!"))
    assert done.status is status
    assert str(done.error).startswith("The model went on calling tools instead of answering.")
    await assert_repeated_later(tooled)


@pytest.mark.parametrize("reason", [None, "length", "content_filter"])
async def test_calls_of_a_reply_that_was_cut_are_not_carried_out(tooled: World, reason: str | None) -> None:
    calls(tooled, call("echo", '{"text": "go'), before="Let me", reason=reason)
    done = end_of(await events_of(tooled, "What is it?"))
    assert done.status is Status.TRUNCATED
    assert [role for role, *_ in await rows(tooled)] == ["user", "assistant"]


async def test_a_model_that_refuses_tools_is_asked_without_them_and_that_is_said_once(tooled: World) -> None:
    refusal = ToolsRefusedError("Rejected.")
    tooled.model.enqueue(refusal)
    tooled.model.say("Hello!")
    events = await events_of(tooled, "Hi")
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert notices == ["openai/test takes no tools, so Chorus sends it none."]
    assert end_of(events).error is None
    assert [bool(request.tools) for request in tooled.model.requests] == [True, False]
    assert tooled.model.requests[0].messages == tooled.model.requests[1].messages
    assert await tooled.notices("And again") == []
    assert tooled.model.requests[-1].tools == ()


async def test_a_refusal_outlives_the_run_but_not_for_ever(tooled: World, tools: Tools) -> None:
    tooled.model.enqueue(ToolsRefusedError("Rejected."))
    await tooled.say("Hi")
    for days, offered in [(0, False), (29, False), (2, True)]:
        tooled.clock.advance(timedelta(days=days))
        again = await built(tooled.folder, tooled.store, tooled.clock, tooled.model, 10_000, tools)
        await again.say("Hi")
        assert bool(again.model.requests[-1].tools) == offered


async def test_the_user_can_keep_the_tools_from_a_model_whose_calls_get_no_answer_then(tooled: World) -> None:
    await tooled.say("Hi")
    tooled.configure('{"tools": false}')
    calls(tooled, call("echo", {"text": "gold"}), before="Hm.")
    assert end_of(await events_of(tooled, "What is it?")).status is Status.TRUNCATED
    assert [len(request.tools) for request in tooled.model.requests] == [len(TOOLS), 0]
    assert [role for role, *_ in await rows(tooled)] == ["user", "assistant"] * 2


async def test_the_usage_of_every_round_is_kept_and_learned_from(tooled: World) -> None:
    tooled.model.enqueue(ReplyEnd("tool_calls", {"prompt_tokens": 900}, (call("echo", {"text": "a"}),)))
    tooled.model.enqueue(TextDelta("Done."), ReplyEnd("stop", {"prompt_tokens": 950}))
    await tooled.say("What is it?")
    assert [row.usage.get("prompt_tokens") for row in await tooled.log() if row.role is Role.ASSISTANT] == [900, 950]


DAMAGED = "{" + ", ".join(f"'text {number}': 'gold'" for number in range(4_500))


async def test_a_reply_that_is_stopped_while_its_calls_are_read_is_interrupted(tooled: World) -> None:
    calls(tooled, call("echo", DAMAGED), before="Let me see.")
    await stop_at(tooled.conversation.answer(tooled.current.target(), "First"), TextDelta)
    assert (await rows(tooled))[1:] == [("assistant", "Let me see.", None, "interrupted")]


@pytest.fixture
async def used(tooled: World) -> World:
    """A world in which a tool was used between two plain turns."""
    await tooled.say("Hello")
    calls(tooled, call("echo", {"text": "gold of the river"}), before="Let me see.")
    tooled.model.say("It is gold.")
    await tooled.say("What is it?")
    await tooled.say("Thanks")
    return tooled


async def test_a_pair_is_one_block_of_an_edit_that_can_be_deleted_and_is_found_by_a_search(used: World) -> None:
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
    assert "gold of the «river»" in await used.told("/search river")


async def test_the_report_of_the_context_counts_no_empty_reply(tooled: World) -> None:
    calls(tooled, call("echo", {"text": "gold"}))
    await tooled.say("What is it?")
    await tooled.say("Thanks")
    told = await tooled.told("/why")
    assert "blank" not in told
    assert "6 in the 8h window" in told


@pytest.fixture
async def cramped(tmp_path: Path, store: Store, clock: FakeClock) -> World:
    """A world whose requests have 800 words, and whose model summarises."""
    world = await built(tmp_path, store, clock, RememberingModel(), 1_000, Tools((echo,)))
    world.configure('{"system_prompt": "Short."}')
    return world


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
    await world.say("What is it, gold!")
    for number in range(8):
        calls(world, call("echo", {"text": f"w{number} " * 40}, f"d{number}"))
        model.say("a " * 40)
        await world.say(f"q{number} " * 20)
    folded = next(each.messages[-1].content for each in model.requests if wants_summary(each.messages[0].content))
    assert "gold of the river" in folded
    assert "chorus calls a tool" in folded
    assert "gold!" in model.requests[-1].messages[0].content
    assert "gold of the river" not in results(world)
    for request in model.requests:
        assert_pairs_are_whole(request.messages)


async def test_a_fold_in_a_later_round_leaves_the_turn_whole(cramped: World) -> None:
    world, model = cramped, cramped.model
    for number in range(4):
        model.say("a " * 60)
        await world.say(f"q{number}! " * 60)
    calls(world, call("echo", {"text": "w " * 250}))
    calls(world, call("echo", {"text": "v " * 10}))
    done = await world.say("Much?")
    assert done.error is None
    assert "q0!" in model.requests[-1].messages[0].content
    assert len(results(world)) == 2
    assert_pairs_are_whole(model.requests[-1].messages)
    assert [row[0] for row in (await rows(world))[8:]] == [
        "user", "assistant", "tool_use", "tool_result", "assistant", "tool_use", "tool_result", "assistant"
    ]  # fmt: skip


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
    def begin(connection: Connection) -> None:
        question = MessageContent(1, Role.USER, "First", tooled.clock.now(), token_count=1)
        _, reply = message_rows.open_turn(connection, "chorus", question, MODEL, "dead")
        ended = reply._replace(content="Let me see.", status=Status.COMPLETE, token_count=3)
        used = MessageContent(
            1, Role.TOOL_USE, "", tooled.clock.now(), reply.turn_id, tool_calls=call("endless").as_json,
            tool_call_id="c1", status=Status.STREAMING, token_count=9,
        )  # fmt: skip
        message_rows.begin_call(connection, ended, Thoughts(), used)

    await tooled.store.write(begin)
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
