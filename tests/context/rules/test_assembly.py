"""The request: always within its room, always with the newest question, never with half a tool call."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.context.rules.plan import LEAD, RequestPlan
from chorus_cli.context.rules.view import ContextSnapshot, Reason, RequestSettings, Summary, SystemPrompt, View
from chorus_cli.log.rules.messages import Message, Role, Status
from chorus_cli.models.rules.budget import FULLEST_SHARE, TOKENS_PER_MESSAGE, Budget, Limit, Room, own_tokens, tokens_of
from chorus_cli.models.rules.choice import ModelChoice
from chorus_cli.personas.rules.persona import Persona, Target
from chorus_cli.settings.rules.table import Settings
from tests.amount import examples
from tests.context.rules.plans import plan_request
from tests.fakes import START, WordCounter

COUNT = WordCounter().count
SYSTEM_PROMPT = SystemPrompt("You are kind.", 3, 0)
SYSTEM_TOKENS = 3 + TOKENS_PER_MESSAGE
FRAME = RequestSettings(
    Target(Persona("frodo", Settings()), 1, ModelChoice("openai/test", "a test")), SYSTEM_PROMPT, Limit(1, "a test")
)


def budget_of(room: Room) -> Budget:
    """Return a budget with the given room."""
    budget = Budget(Limit(room.budget, "a test"), room.budget)
    object.__setattr__(budget, "room", room)
    return budget


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
        (None, Room(140, 88), 9),
        (9, Room(140, 70), 9),
        (3, Room(150, 70), 3),
        (3, Room(141, 70), 11),
        (5, Room(110, 70), 11),
        (13, Room(140, 88), 9),
        (11, Room(140, 88), 11),
        (4, Room(150, 70), 11),
        (99, Room(140, 70), 11),
        (None, Room(140, 140), 7),
        (1, Room(160, 70), 1),
    ],
    ids=[
        "nothing held",
        "held",
        "held while it fits",
        "held until it fits no more",
        "held, but the model takes less",
        "held, but the model takes more",
        "held, and it takes hardly more",
        "held in the middle of a turn",
        "what was held has left the window",
        "some room is left for the turns to come",
        "everything fits",
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


def test_a_giant_is_cut_in_the_middle_and_says_how_much_is_missing() -> None:
    prompt = planned(talk("u900 a5", "u5"), Room(400, 200))
    assert [row.id for row in prompt.cut] == [1]
    content = prompt.request.messages[1].content
    head, mark, tail = content.split("\n")
    assert head.startswith("u1 w")
    assert mark == f"[… {900 - len(head.split()) - len(tail.split())} tokens left out here …]"
    assert tail.endswith("w")
    assert [each.content.split()[0] for each in prompt.request.messages[2:]] == ["a2", "u3"]
    assert prompt.tokens <= 400


def test_the_newest_question_is_never_cut() -> None:
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
def test_any_conversation_fits_any_room_that_its_newest_question_fits(
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
