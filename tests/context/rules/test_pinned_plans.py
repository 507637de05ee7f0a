"""Requests with pinned messages: they are in each request that has room for them, which others must make."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.context.rules.plan import system_tokens
from chorus_cli.context.rules.view import ContextSnapshot, Reason, Summary, View, standing
from chorus_cli.log.rules.messages import runs
from chorus_cli.models.rules.budget import Room, tokens_of
from tests.amount import examples
from tests.context.rules.plans import plan_request
from tests.context.rules.test_assembly import COUNT, FRAME, budget_of, talk
from tests.fakes import START

TURNS = st.lists(st.sampled_from(["u3 a3", "u9 a9", "u2 a30", "u40 a2", "u3 c2 r2 a3"]), max_size=8)


def summary_of(ids: list[int]) -> Summary:
    return Summary(1, None, runs(ids), "They talked.", 3, "openai/test", START)


@examples(200)
@given(TURNS, st.sets(st.integers(1, 30), max_size=4), st.integers(0, 12), st.integers(60, 400), st.integers(20, 200))
def test_a_pinned_message_is_sent_if_it_has_room_and_nothing_is_sent_twice(
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
