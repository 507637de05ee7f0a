"""What replies cost: tokens times prices, cached ones told apart, nothing invented where no price is known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.text.phrases import dollars
from chorus_cli.models.rules.costs import (
    CostLine,
    DaySpending,
    ModelUse,
    Prices,
    TokenUse,
    cost_lines,
    total,
    without_price,
)

PRICES = Prices(prompt=0.01, completion=0.05, cached=0.001, written=0.02)
NOON = datetime(2026, 2, 12, 12, tzinfo=UTC)


def use(model: str, *counts: int, persona: str = "chorus", replies: int = 1) -> ModelUse:
    return ModelUse(persona, 1, model, NOON, replies, TokenUse(*counts))


def prices_of(model: str) -> Prices | None:
    return PRICES if model.startswith("priced") else None


@pytest.mark.parametrize(
    ("tokens", "cost"),
    [
        (TokenUse(), 0),
        (TokenUse(100, 10), 1.5),
        (TokenUse(100, 10, cached=90), 0.1 + 0.09 + 0.5),
        (TokenUse(100, 10, cached=50, written=50), 0.05 + 1 + 0.5),
        (TokenUse(10, 0, cached=90), 0.09),
    ],
    ids=["nothing", "plain", "from the cache", "into the cache", "more from the cache than there is"],
)
def test_each_kind_of_token_has_its_price(tokens: TokenUse, cost: float) -> None:
    assert tokens.cost(PRICES) == pytest.approx(cost)


def test_without_a_price_the_cost_is_unknown_and_the_model_named() -> None:
    (line,) = cost_lines([use("mystery", 5, 5)], prices_of, lambda each: each.model)
    assert (line.cost, line.cost_text, line.unpriced) == (None, "unknown", ("mystery",))
    assert without_price(line) == "No price is known of mystery."


def test_a_sum_that_lacks_a_model_without_a_price_says_so() -> None:
    line = total([use("priced", 100, 10), use("mystery", 5, 5), use("mystery", 5, 5)], prices_of)
    assert (line.cost_text, line.replies, line.tokens) == ("$1.50+", 3, TokenUse(110, 20))
    assert line.unpriced == ("mystery",)


def test_nothing_costs_nothing() -> None:
    assert total([], prices_of) == CostLine("total", cost=0.0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10**9), st.integers(0, 10**9)), max_size=20))
def test_the_lines_add_up_to_the_total(rows: list[tuple[str, int, int]]) -> None:
    uses = [use(f"priced/{name}", prompt, completion) for name, prompt, completion in rows]
    lines = cost_lines(uses, prices_of, lambda each: each.model)
    assert sum(line.cost or 0 for line in lines) == pytest.approx(total(uses, prices_of).cost)
    assert [line.key for line in lines] == sorted({each.model for each in uses})


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "$0.00"), (0.00012345, "$0.000123"), (0.01, "$0.01"), (1234.5, "$1,234.50")]
)
def test_amounts_are_dollars(amount: float, text: str) -> None:
    assert dollars(amount) == text


def test_summaries_add_to_the_cost_and_not_to_the_replies() -> None:
    summaries = use("priced", 100, 10, replies=0)._replace(summaries=2)
    line = total([use("priced", 100, 10), summaries], prices_of)
    assert (line.replies, line.summaries, line.tokens, line.cost_text) == (1, 2, TokenUse(200, 20), "$3.00")
    assert line.as_json()["summaries"] == 2


@pytest.mark.parametrize(("summaries", "counted"), [(0, "replies"), (1, "replies and summaries")])
def test_the_budget_says_what_is_counted(summaries: int, counted: str) -> None:
    spending = DaySpending.of(CostLine("total", cost=4.0, summaries=summaries), 5.0)
    assert spending.sentence == f"The {counted} of today have cost $4.00, 80% of your budget of $5.00."


@pytest.mark.parametrize(
    ("spent", "is_near", "is_over"), [(3.99, False, False), (4.0, True, False), (5.0, True, True), (6.0, True, True)]
)
def test_a_budget_is_near_at_four_fifths_and_over_at_its_end(spent: float, *, is_near: bool, is_over: bool) -> None:
    spending = DaySpending(spent, 5.0)
    assert (spending.is_near, spending.is_over) == (is_near, is_over)
