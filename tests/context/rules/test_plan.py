"""The request: always within its room, with the newest question, with pinned messages, and with whole tool calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.context.rules.plan import (
    BROKEN_OFF,
    LEAD,
    RequestPlan,
    messages_of,
    plan_fitting,
    plan_whole,
    system_tokens,
    weighed,
)
from chorus_cli.context.rules.view import (
    ContextSnapshot,
    Echoed,
    Reason,
    RequestSettings,
    Summary,
    SystemPrompt,
    View,
    standing,
    usable,
)
from chorus_cli.log.rules.attachments import ALL_SENT, Attachment
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.log.rules.messages import Message, Role, Status, Thoughts, runs
from chorus_cli.models.rules.budget import FULLEST_SHARE, TOKENS_PER_MESSAGE, Budget, Limit, Room, own_tokens, tokens_of
from chorus_cli.models.rules.choice import ModelChoice
from chorus_cli.models.rules.request import ModelRequest, PromptMessage, with_plain_history
from chorus_cli.personas.rules.persona import Persona, Target
from chorus_cli.settings.rules.table import Settings
from tests.amount import examples
from tests.fakes import START, WordCounter


def plan_request(snapshot: ContextSnapshot, count: Callable[[str], int]) -> RequestPlan:
    """Plan the request of a snapshot whole, or else so that it fits."""
    return plan_whole(snapshot) or plan_fitting(snapshot, count)


COUNT = WordCounter().count
SYSTEM_PROMPT = SystemPrompt("You are kind.", 3, 0)
SYSTEM_TOKENS = 3 + TOKENS_PER_MESSAGE
FRAME = RequestSettings(
    Target(Persona("frodo", Settings()), 1, ModelChoice("openai/test", "a test")), SYSTEM_PROMPT, Limit(1, "a test")
)


def budget_of(room: Room) -> Budget:
    """Return a budget with the given room."""
    return Budget(Limit(2 * room.half, "a test"), room.budget)


def planned(
    rows: list[Message], room: Room, begins_at: int | None = None, summary: Summary | None = None
) -> RequestPlan:
    """Plan the request of a view whose summary stands for messages before ``rows``."""
    view = View(tuple(rows), None, START, (), summary, 0)
    return plan_request(ContextSnapshot(FRAME, view, budget_of(room), first_message_id=begins_at), COUNT)


def message(id_: int, role: Role, content: str, turn: int, status: Status = Status.COMPLETE) -> Message:
    calls = '[{"id": "x"}]' if role is Role.TOOL_USE else None
    call_id = "x" if role in {Role.TOOL_USE, Role.TOOL_RESULT} else None
    row = Message(
        id_, "frodo", 1, turn, role, content, START + timedelta(seconds=id_), status=status, tool_calls=calls,
        tool_call_id=call_id,
    )  # fmt: skip
    return row._replace(token_count=own_tokens(row, COUNT))


def talk(*turns: str) -> list[Message]:
    """Build a view: a letter for each message and, behind it, its words; ``u9 a9`` is a question and its answer."""
    roles = {"u": Role.USER, "a": Role.ASSISTANT, "c": Role.TOOL_USE, "r": Role.TOOL_RESULT}
    rows: list[Message] = []
    for number, turn in enumerate(turns):
        for word in turn.split():
            id_ = len(rows) + 1
            words = [f"{word[0]}{id_}", *["w"] * (int(word[1:]) - 1)]
            rows.append(message(id_, roles[word[0]], " ".join(words), number))
    return rows


def sent(prompt: RequestPlan) -> list[int]:
    return [row.id for row in prompt.sent]


ROOMY = Room(10_000, 5_000)


@pytest.mark.parametrize(
    ("turns", "room", "expected"),
    [
        (["u5 a5", "u5"], ROOMY, [1, 2, 3]),
        # 7 for the foundation, 18 for each turn and 9 for the question: 88 in all.
        (["u5 a5", "u5 a5", "u5 a5", "u5 a5", "u5"], Room(90, 30), list(range(1, 10))),
        (["u5 a5", "u5 a5", "u5 a5", "u5 a5", "u5"], Room(87, 80), [3, 4, 5, 6, 7, 8, 9]),
        (["u5 a5", "u5 a5", "u5 a5", "u5 a5", "u5"], Room(87, 69), [5, 6, 7, 8, 9]),
        (["u5 a5", "u5 a5", "u5 a5", "u5 a5", "u5"], Room(87, 1), [5, 6, 7, 8, 9]),
        (["u5 a5", "u5 a5", "u5 a5"], Room(60, 1), [3, 4, 5, 6]),
    ],
    ids=["all fit", "just fits", "the oldest goes", "down to half", "two turns stay", "without an open question"],
)
def test_whole_turns_stay_out_from_the_oldest(turns: list[str], room: Room, expected: list[int]) -> None:
    prompt = planned(talk(*turns), room)
    assert sent(prompt) == expected
    assert [row.id for row in prompt.too_large] == [row.id for row in talk(*turns) if row.id not in expected]


@pytest.mark.parametrize(
    ("begins_at", "room", "expected"),
    [
        # 18 tokens a turn, 7 for the foundation and 9 for the question: 160 in all, 88 from the fifth turn on.
        pytest.param(None, Room(140, 88), 9, id="nothing held"),
        pytest.param(9, Room(140, 70), 9, id="held"),
        pytest.param(3, Room(150, 70), 3, id="held while it fits"),
        pytest.param(3, Room(141, 70), 11, id="held until it fits no more"),
        pytest.param(5, Room(110, 70), 11, id="held, but the model takes less"),
        pytest.param(13, Room(140, 88), 9, id="held, but the model takes more"),
        pytest.param(11, Room(140, 88), 11, id="held, and it takes hardly more"),
        pytest.param(4, Room(150, 70), 11, id="held in the middle of a turn"),
        pytest.param(99, Room(140, 70), 11, id="what was held has left the window"),
        pytest.param(None, Room(140, 140), 7, id="some room is left for the turns to come"),
        pytest.param(1, Room(160, 70), 1, id="everything fits"),
    ],
)
def test_a_request_begins_where_the_last_one_did(begins_at: int | None, room: Room, expected: int) -> None:
    view = talk(*["u5 a5"] * 8, "u5")
    assert sent(planned(view, room, begins_at))[0] == expected


@pytest.mark.parametrize("room", [Room(800, 500), Room(800, 800), Room(400, 100)])
def test_a_talk_that_outgrows_its_model_leaves_turns_out_in_steps(room: Room) -> None:
    view: list[Message] = []
    begins_at: int | None = None
    beginnings: list[int] = []
    for turn in range(100):
        view.append(message(2 * turn + 1, Role.USER, "w " * 11, turn))
        prompt = planned(view, room, begins_at)
        assert prompt.tokens <= room.budget
        begins_at = sent(prompt)[0] if prompt.too_large else None
        beginnings.append(sent(prompt)[0])
        view.append(message(2 * turn + 2, Role.ASSISTANT, "w " * 11, turn))
    assert beginnings == sorted(beginnings)
    least_step = room.budget - min(room.half, int(FULLEST_SHARE * room.budget))
    assert 1 < len(set(beginnings)) <= 1 + 3_000 // least_step


def test_a_giant_is_cut_in_the_middle_but_never_the_newest_question() -> None:
    prompt = planned(talk("u900 a5", "u5"), Room(400, 200))
    assert [row.id for row in prompt.cut] == [1]
    content = prompt.request.messages[1].content
    head, mark, tail = content.split("\n")
    assert head.startswith("u1 w")
    assert mark == f"[… {900 - len(head.split()) - len(tail.split())} tokens left out here …]"
    assert tail.endswith("w")
    assert [each.content.split()[0] for each in prompt.request.messages[2:]] == ["a2", "u3"]
    assert prompt.tokens <= 400
    prompt = planned(talk("u900 a900", "u300"), Room(400, 200))
    assert prompt.request.messages[-1].content == talk("u900 a900", "u300")[-1].content
    assert prompt.tokens <= 400


def test_a_view_that_no_user_begins_is_led_by_a_line() -> None:
    prompt = planned(talk("a5", "u5"), ROOMY)
    assert [each.role for each in prompt.request.messages] == ["system", "user", "assistant", "user"]
    assert prompt.request.messages[1].content == LEAD


def test_the_summary_stands_in_the_system_message_and_is_counted() -> None:
    summary = Summary(1, None, ((1, 4),), "They met at the bridge.", 5, "model", START)
    prompt = planned(talk("u5"), ROOMY, summary=summary)
    system = "You are kind.\n\nSummary of the earlier conversation:\nThey met at the bridge."
    assert prompt.request.messages[0].content == system
    assert prompt.tokens == SYSTEM_TOKENS + 5 + 10 + 9


ROLES = st.sampled_from(["u", "a", "cr", "c", "r", "a!", "a?"])


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Any view that ends in a question: turns of all lengths, with tools whole and half, broken off and running."""
    rows: list[Message] = []
    for turn in range(draw(st.integers(0, 6))):
        for kind in draw(st.lists(ROLES, max_size=5)):
            for letter in kind.rstrip("!?"):
                words = draw(st.integers(0, 3) | st.integers(50, 400))
                role = {"u": Role.USER, "a": Role.ASSISTANT, "c": Role.TOOL_USE, "r": Role.TOOL_RESULT}[letter]
                status = {"!": Status.INTERRUPTED, "?": Status.STREAMING}.get(kind[-1], Status.COMPLETE)
                rows.append(message(len(rows) + 1, role, "w " * words, turn, status))
    question = message(len(rows) + 1, Role.USER, "q " * draw(st.integers(1, 60)), 99)
    return [*rows, question]


SUMMARIES = st.none() | st.integers(1, 300).map(
    lambda words: Summary(1, None, ((1, 4),), " ".join(["s"] * words), words, "model", START)
)


@examples(300)
@given(conversations(), SUMMARIES, st.integers(0, 300), st.integers(0, 1000), st.none() | st.integers(1, 40))
def test_any_conversation_fits_if_its_newest_question_does(
    view: list[Message], summary: Summary | None, spare: int, half: int, begins_at: int | None
) -> None:
    room = Room(SYSTEM_TOKENS + tokens_of(view[-1]) + spare, half)
    prompt = planned(view, room, begins_at, summary)
    counted = sum(COUNT(each.content) + COUNT(each.tool_calls or "") for each in prompt.request.messages)
    assert prompt.tokens <= room.budget
    assert counted + TOKENS_PER_MESSAGE * len(prompt.request.messages) <= room.budget
    assert prompt.request.messages[-1].content == view[-1].content
    assert prompt.request.messages[1].role == "user"
    calls = [each.tool_call_id for each in prompt.sent if each.role is Role.TOOL_USE]
    results = [each.tool_call_id for each in prompt.sent if each.role is Role.TOOL_RESULT]
    assert set(calls) == set(results)
    assert sent(prompt) == [row.id for row in view if row.id in set(sent(prompt))]


def test_of_calls_with_the_same_id_and_of_their_results_the_first_is_sent() -> None:
    roles = (Role.USER, Role.TOOL_USE, Role.TOOL_USE, Role.TOOL_RESULT, Role.TOOL_RESULT)
    view = [message(number, role, "words", 1) for number, role in enumerate(roles, 1)]
    prompt = planned([*view, message(6, Role.USER, "question", 2)], ROOMY)
    assert sent(prompt) == [1, 2, 4, 6]
    assert {reason for reason, _ in prompt.left_out()} == {Reason.UNUSABLE}


@given(conversations())
def test_what_fits_is_sent_word_for_word(view: list[Message]) -> None:
    prompt = planned(view, Room(1_000_000, 1))
    assert (prompt.too_large, prompt.cut) == ((), ())
    kept = {row.id: row for row in prompt.sent}
    assert all(row is kept[row.id] for row in view if row.id in kept)


DOCUMENT = Attachment("long.pdf", "application/pdf", 2_000_000, "0" * 64, pages=10)
PHOTO = Attachment("photo.png", "image/png", 2_000, "1" * 64, 100, 100)
AMPLE = Room(1_000_000, 500_000)


def attached(row: Message, *attachments: Attachment) -> Message:
    row = row._replace(attachments=attachments)
    return row._replace(token_count=own_tokens(row, COUNT))


def attached_talk(document: Attachment, role: Role = Role.USER) -> list[Message]:
    """Return two turns, the first with an attachment."""
    first = attached(message(1, role, "read this", 1), document)
    return [first, message(2, Role.ASSISTANT, "done", 1), message(3, Role.USER, "go on", 3)]


def test_a_picture_goes_with_its_question_and_is_named_in_a_reply() -> None:
    sent = planned(attached_talk(PHOTO), AMPLE).request.messages[1]
    assert (sent.content, sent.attachments) == ("read this", (PHOTO,))
    plan = planned(attached_talk(PHOTO, Role.ASSISTANT), AMPLE)
    assert plan.request.messages[2].content == "read this\n[attachment: photo.png 2.0 kB]"
    assert plan.request.messages[2].attachments == ()
    plan = planned([attached(message(1, Role.USER, "", 1), PHOTO)], AMPLE)
    assert (plan.request.messages[-1].content, plan.request.messages[-1].attachments) == ("", (PHOTO,))


def test_a_document_without_room_is_named_but_in_the_newest_question() -> None:
    plan = planned(attached_talk(DOCUMENT), Room(SYSTEM_TOKENS + 200, 100))
    assert [(each.content, each.attachments) for each in plan.request.messages[1:2]] == [
        ("read this\n[attachment: long.pdf 2.0 MB]", ())
    ]
    assert [row.id for row in plan.cut] == [1]
    assert plan.tokens <= SYSTEM_TOKENS + 200
    rows = [message(1, Role.USER, "hello", 1), attached(message(2, Role.USER, "read", 2), PHOTO)]
    plan = planned(rows, Room(SYSTEM_TOKENS + 270, 100))
    assert plan.request.messages[-1].attachments == (PHOTO,)


TURNS = st.lists(st.sampled_from(["u3 a3", "u9 a9", "u2 a30", "u40 a2", "u3 c2 r2 a3"]), max_size=8)


def summary_of(ids: list[int]) -> Summary:
    return Summary(1, None, runs(ids), "They talked.", 3, "openai/test", START)


@examples(200)
@given(TURNS, st.sets(st.integers(1, 30), max_size=4), st.integers(0, 12), st.integers(60, 400), st.integers(20, 200))
def test_a_pinned_message_is_sent_once_if_it_has_room(
    turns: list[str], pinned: set[int], folded: int, most: int, half: int
) -> None:
    rows = talk(*turns, "u5")
    folded = min(folded, len(rows) - 1)
    summary = summary_of([row.id for row in rows[:folded]]) if folded else None
    view = View(tuple(rows), None, START, (), summary, folded, pinned=frozenset(pinned))
    snapshot = ContextSnapshot(FRAME, view, budget_of(Room(most, half)))
    plan = plan_request(snapshot, COUNT)
    sent = [row.id for row in plan.sent]
    assert sent == sorted(set(sent))
    assert rows[-1].id in sent
    assert plan.tokens <= most
    # A call alone is no message.
    wanted = [row for row in rows if row.id in pinned and not row.tool_call_id]
    needed = system_tokens(snapshot, summary) + sum(map(tokens_of, wanted)) + tokens_of(rows[-1]) + 20
    if needed <= most and not any(row.tool_call_id for row in rows if row.id in pinned):
        assert {row.id for row in wanted} <= set(sent)
        assert all(row in plan.sent for row in wanted)
    out = [row.id for reason, row in plan.left_out() if reason is not Reason.TAKEN_BACK]
    assert sorted([*sent, *out]) == [row.id for row in rows]


@examples(100)
@given(st.integers(1, 8), st.integers(0, 7), st.sets(st.integers(1, 8), max_size=3))
def test_a_summary_stands_while_the_unpinned_leave_from_the_oldest(number: int, left: int, pinned: set[int]) -> None:
    ids = list(range(1, number + 1))
    view_ids = [id_ for id_ in [*ids, 20, 21] if id_ > left or id_ in pinned]
    found, position = standing([summary_of(ids)], None, view_ids, pinned)
    stays = [id_ for id_ in ids if id_ in view_ids and id_ not in pinned]
    assert (found is not None) == bool(stays)
    assert view_ids[:position][-1:] == stays[-1:]


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


def messages_sent(rows: list[Message], echoed: dict[int, Echoed] | None = None) -> list[PromptMessage]:
    return list(messages_of(usable(rows), ALL_SENT, echoed or {}))


def test_calls_of_one_reply_are_one_message_with_its_words_and_thoughts() -> None:
    messages = messages_sent(TURN)
    assert shape(messages) == "u a2 t t a1 t a"
    assert [each.content for each in messages] == ["Where?", "Let me see.", "gold", "gold", "", "gold", "There."]
    messages = messages_sent(TURN, {2: HM, 8: SO, 12: HM})
    assert [each.thoughts and each.thoughts.text for each in messages] == [None, "hm", None, None, "so", None, "hm"]


def test_calls_of_an_import_are_together_until_a_result_comes() -> None:
    rows = [QUESTION, WORDS, *(each._replace(reply_id=None) for each in [*TOGETHER, *AFTERWARDS])]
    assert shape(messages_sent(rows)) == "u a1 t a1 t a1 t"
    in_other_order = [rows[0], rows[1], rows[2], rows[4], rows[3], rows[5], *rows[6:]]
    assert shape(messages_sent(in_other_order)) == "u a2 t t a1 t"


def test_a_call_joins_no_words_of_another_turn() -> None:
    elsewhere = [each._replace(turn_id=20) for each in AFTERWARDS]
    messages = messages_sent([QUESTION, WORDS, *elsewhere])
    assert shape(messages) == "u a a1 t"
    assert messages[2].content == ""


def test_a_reworded_or_broken_off_reply_has_no_thoughts() -> None:
    reworded = row(13, Role.ASSISTANT, "Let me look.", revises=2)
    assert [each.thoughts for each in messages_sent([QUESTION, reworded, *TOGETHER], {2: HM})] == [None] * 4
    cut = ANSWER._replace(status=Status.TRUNCATED)
    (_, reply) = messages_sent([QUESTION, cut], {12: HM})
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
    for message in messages_sent(rows, {2: HM, 8: SO}):
        assert (message.role == "tool") == bool(open_ids)
        if message.role == "tool":
            assert message.tool_call_id == open_ids.pop(0)
        open_ids += [each["id"] for each in json.loads(message.tool_calls or "[]")]
    assert not open_ids


def test_a_plain_history_keeps_the_newest_turn_as_it_is() -> None:
    question = PromptMessage("user", "And now?")
    newest = [question, *messages_sent(TURN)[1:4]]
    request = ModelRequest("m", (*messages_sent(TURN, {2: HM}), *newest))
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
    assert list(messages_of(rows, ALL_SENT, {}, "minimax/m")) == messages_sent(rows)
    assert list(messages_of(rows, ALL_SENT, {}, "minimax/other")) == [
        PromptMessage("user", "Where?"),
        PromptMessage("assistant", "Let me see.\n[tool call: echo {}]"),
        PromptMessage("user", "[tool result: gold]"),
    ]


def summary(operation_id: int, *ids: int, base: int | None = None) -> Summary:
    return Summary(operation_id, base, runs(ids), f"summary {operation_id}", 9, "model", START)


FIRST, SECOND = summary(10, 1, 2, 3, 4), summary(11, 1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize(
    ("summaries", "base", "view", "found", "number"),
    [
        pytest.param([], None, [1, 2, 3], None, 0, id="none"),
        pytest.param([FIRST], None, [1, 2, 3, 4, 5, 6], 10, 4, id="all it stands for is there"),
        pytest.param([FIRST, SECOND], None, [1, 2, 3, 4, 5, 6, 7], 11, 6, id="the newest"),
        pytest.param([SECOND, FIRST], None, [1, 2, 3, 4, 5, 6, 7], 11, 6, id="the newest in any order"),
        pytest.param([FIRST], None, [3, 4, 5, 6], 10, 2, id="some have left by age"),
        pytest.param([FIRST], None, [5, 6], None, 0, id="all have left by age"),
        pytest.param([FIRST], None, [], None, 0, id="nothing is in context"),
        pytest.param([FIRST], None, [20, 1, 2, 3, 4, 5], None, 0, id="an older one came in, whatever its id"),
        pytest.param([FIRST], None, [1, 3, 4, 5], None, 0, id="one was taken back"),
        pytest.param([FIRST], None, [1, 2, 9, 3, 4, 5], None, 0, id="one was put in between"),
        pytest.param([FIRST], None, [1, 2, 3], None, 0, id="the last was taken back"),
        pytest.param([FIRST, SECOND], None, [1, 2, 3, 4, 6, 7], 10, 4, id="only the newer is spoilt"),
        pytest.param([FIRST], 5, [1, 2, 3, 4, 5], None, 0, id="another boundary"),
        pytest.param([summary(12, 4, 2, 9, base=5)], 5, [4, 2, 9, 10], 12, 3, id="in the order of an edit"),
        pytest.param([summary(12, 4, 2, 9, base=5)], 5, [2, 4, 9, 10], None, 0, id="in another order"),
    ],
)
def test_a_summary_stands_at_the_beginning_of_the_view(
    summaries: list[Summary], base: int | None, view: list[int], found: int | None, number: int
) -> None:
    stands, count = standing(summaries, base, view)
    assert (stands.operation_id if stands else None, count) == (found, number)
