"""Rows as the messages of a request: the calls of one reply together, then their results."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.context.rules.plan import BROKEN_OFF, messages_of, weighed
from chorus_cli.context.rules.view import ContextSnapshot, Echoed, View, usable
from chorus_cli.log.rules.attachments import ALL_SENT
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.log.rules.messages import Message, Role, Status, Thoughts
from chorus_cli.models.rules.budget import Room, tokens_of
from chorus_cli.models.rules.request import ModelRequest, PromptMessage, with_plain_history
from tests.amount import examples
from tests.context.rules.plans import plan_request
from tests.context.rules.test_assembly import COUNT, FRAME, budget_of
from tests.fakes import START

HM, SO = Echoed(Thoughts("hm"), 7), Echoed(Thoughts("so"), 5)


def row(id_: int, role: Role, content: str = "", **more: Any) -> Message:
    turn = 1 if id_ < 20 else 20
    return Message(id_, "chorus", 1, turn, role, content, START, token_count=1)._replace(**more)


def call(id_: int, reply_id: int | None) -> Message:
    written = ToolCall(f"c{id_}", "echo", "{}").as_json
    return row(id_, Role.TOOL_USE, tool_calls=written, tool_call_id=f"c{id_}", reply_id=reply_id)


def result(id_: int) -> Message:
    return row(id_, Role.TOOL_RESULT, "gold", tool_call_id=f"c{id_ - 1}")


QUESTION, ANSWER = row(1, Role.USER, "Where?"), row(12, Role.ASSISTANT, "There.")
WORDS = row(2, Role.ASSISTANT, "Let me see.")
TOGETHER = [call(3, 2), result(4), call(5, 2), result(6)]
AFTERWARDS = [call(9, 8), result(10)]
TURN = [QUESTION, WORDS, *TOGETHER, *AFTERWARDS, ANSWER]


def shape(messages: list[PromptMessage]) -> str:
    """Return the messages as letters, a call as a digit in the message that makes it."""
    signs = {"user": "u", "assistant": "a", "tool": "t"}
    numbers = (len(json.loads(each.tool_calls or "[]")) for each in messages)
    return " ".join(
        signs[each.role] + (str(number) if number else "") for each, number in zip(messages, numbers, strict=True)
    )


def sent(rows: list[Message], echoed: dict[int, Echoed] | None = None) -> list[PromptMessage]:
    return list(messages_of(usable(rows), ALL_SENT, echoed or {}))


def test_calls_of_one_reply_are_one_message_with_its_words_and_those_of_the_next_another() -> None:
    messages = sent(TURN)
    assert shape(messages) == "u a2 t t a1 t a"
    assert [each.content for each in messages] == ["Where?", "Let me see.", "gold", "gold", "", "gold", "There."]


def test_calls_of_an_import_are_together_until_a_result_comes() -> None:
    rows = [QUESTION, WORDS, *(each._replace(reply_id=None) for each in [*TOGETHER, *AFTERWARDS])]
    assert shape(sent(rows)) == "u a1 t a1 t a1 t"
    in_other_order = [rows[0], rows[1], rows[2], rows[4], rows[3], rows[5], *rows[6:]]
    assert shape(sent(in_other_order)) == "u a2 t t a1 t"


def test_a_call_joins_no_words_of_another_turn() -> None:
    elsewhere = [each._replace(turn_id=20) for each in AFTERWARDS]
    messages = sent([QUESTION, WORDS, *elsewhere])
    assert shape(messages) == "u a a1 t"
    assert messages[2].content == ""


def test_thoughts_go_with_the_calls_they_led_to_and_with_replies() -> None:
    messages = sent(TURN, {2: HM, 8: SO, 12: HM})
    assert [each.thoughts and each.thoughts.text for each in messages] == [None, "hm", None, None, "so", None, "hm"]


def test_a_reworded_or_broken_off_reply_has_no_thoughts() -> None:
    reworded = row(13, Role.ASSISTANT, "Let me look.", revises=2)
    assert [each.thoughts for each in sent([QUESTION, reworded, *TOGETHER], {2: HM})] == [None] * 4
    cut = ANSWER._replace(status=Status.TRUNCATED)
    (_, reply) = sent([QUESTION, cut], {12: HM})
    assert (reply.thoughts, reply.content) == (None, f"There.\n{BROKEN_OFF}")


def test_tokens_of_thoughts_count_once_with_the_reply_or_its_first_call() -> None:
    rows = weighed(usable(TURN), {2: HM, 8: SO})
    assert [each.token_count for each in rows] == [1, 8, 1, 1, 1, 1, 6, 1, 1]
    without_words = weighed(usable([QUESTION, *TOGETHER]), {2: HM})
    assert [each.token_count for each in without_words] == [1, 8, 1, 1, 1]


def test_a_reply_that_loses_its_middle_loses_its_thoughts() -> None:
    long = row(22, Role.ASSISTANT, " ".join(["word"] * 300), token_count=300)
    rows = (row(20, Role.USER, "Tell.", token_count=1), long, row(30, Role.USER, "And?", token_count=1, turn_id=30))
    snapshot = ContextSnapshot(FRAME, View(rows, None, START), budget_of(Room(220, 110)), echoed={22: HM})
    plan = plan_request(snapshot, COUNT)
    assert [each.id for each in plan.cut] == [22]
    assert all(message.thoughts is None for message in plan.request.messages)


def test_thoughts_make_room_before_words_do() -> None:
    rows = (
        row(20, Role.USER, "Tell.", token_count=1),
        row(22, Role.ASSISTANT, "word " * 50, token_count=50),
        row(30, Role.USER, "And?", token_count=1, turn_id=30),
    )
    echoed = {22: HM._replace(tokens=900)}
    snapshot = ContextSnapshot(FRAME, View(rows, None, START), budget_of(Room(220, 110)), echoed=echoed)
    plan = plan_request(snapshot, COUNT)
    assert (plan.cut, plan.too_large) == ((), ())
    assert all(message.thoughts is None for message in plan.request.messages)
    assert plan.message_tokens == sum(tokens_of(each) for each in rows)


def test_thoughts_of_the_turn_that_is_answered_stay_while_its_results_are_cut() -> None:
    long = result(34)._replace(content=" ".join(["word"] * 400), token_count=400)
    rows = (row(30, Role.USER, "Tell."), call(33, 32), long)
    echoed = {32: HM._replace(tokens=70)}
    snapshot = ContextSnapshot(FRAME, View(rows, None, START), budget_of(Room(220, 110)), echoed=echoed)
    plan = plan_request(snapshot, COUNT)
    assert [each.id for each in plan.cut] == [34]
    assert [message.thoughts is None for message in plan.request.messages if message.role == "assistant"] == [False]
    assert plan.tokens <= 220


@examples(200)
@given(st.lists(st.sampled_from(range(len(TURN))), unique=True))
def test_whatever_is_left_each_call_has_its_result_right_after_its_reply(places: list[int]) -> None:
    rows = [TURN[place] for place in places]
    open_ids: list[str] = []
    for message in sent(rows, {2: HM, 8: SO}):
        assert (message.role == "tool") == bool(open_ids)
        if message.role == "tool":
            assert message.tool_call_id == open_ids.pop(0)
        open_ids += [each["id"] for each in json.loads(message.tool_calls or "[]")]
    assert not open_ids


def test_a_plain_history_keeps_the_newest_turn_as_it_is() -> None:
    question = PromptMessage("user", "And now?")
    newest = [question, *sent(TURN)[1:4]]
    request = ModelRequest("m", (*sent(TURN, {2: HM}), *newest))
    plain = with_plain_history(request)
    assert list(plain.messages[-4:]) == newest
    earlier = plain.messages[:-4]
    assert all(each.tool_calls is None and each.thoughts is None and each.role != "tool" for each in earlier)
    assert [each.content for each in earlier][1:3] == [
        "Let me see.\n[tool call: echo {}\necho {}]",
        "[tool result: gold]",
    ]
    assert with_plain_history(replace(request, messages=(question,))).messages == (question,)


def test_a_model_that_takes_no_calls_of_others_gets_them_in_words() -> None:
    rows = [each._replace(model="minimax/m") for each in [QUESTION, WORDS, *TOGETHER[:2]]]
    assert list(messages_of(rows, ALL_SENT, {}, "minimax/m")) == sent(rows)
    assert list(messages_of(rows, ALL_SENT, {}, "minimax/other")) == [
        PromptMessage("user", "Where?"),
        PromptMessage("assistant", "Let me see.\n[tool call: echo {}]"),
        PromptMessage("user", "[tool result: gold]"),
    ]
