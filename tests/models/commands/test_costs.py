"""What replies cost, ``/cost`` and the budget of a day, over a real log with the usage that providers reported."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.text.phrases import dollars
from chorus_cli.framework.command_line import completions
from chorus_cli.log.rows import thread_rows
from chorus_cli.models.providers import servers
from chorus_cli.models.rules.costs import THOUGHT, CostLine, DaySpending, ModelUse, Prices, TokenUse, cost_lines, total
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.models.service.costs import Costs, Grouping
from tests.models.providers.asked_models import MODEL_MAP
from tests.world import MODEL, World, another_thread

OF_EACH_KIND = Prices(prompt=0.01, completion=0.05, cached=0.001, written=0.02)
NOON = datetime(2026, 2, 12, 12, tzinfo=UTC)


def use(model: str, *counts: int, persona: str = "chorus", replies: int = 1) -> ModelUse:
    return ModelUse(persona, 1, model, NOON, replies, TokenUse(*counts))


def prices_of(model: str) -> Prices | None:
    return OF_EACH_KIND if model.startswith("priced") else None


def test_each_kind_of_token_has_its_price() -> None:
    costs = {TokenUse(): 0, TokenUse(100, 10): 1.5, TokenUse(100, 10, cached=90): 0.1 + 0.09 + 0.5}
    # More from the cache than there is.
    costs |= {TokenUse(100, 10, cached=50, written=50): 0.05 + 1 + 0.5, TokenUse(10, 0, cached=90): 0.09}
    for tokens, cost in costs.items():
        assert tokens.cost(OF_EACH_KIND) == pytest.approx(cost)


def test_nothing_costs_nothing() -> None:
    assert total([], prices_of) == CostLine("total", cost=0.0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10**9), st.integers(0, 10**9)), max_size=20))
def test_the_lines_add_up_to_the_total(rows: list[tuple[str, int, int]]) -> None:
    uses = [use(f"priced/{name}", prompt, completion) for name, prompt, completion in rows]
    lines = cost_lines(uses, prices_of, lambda each: each.model)
    assert sum(line.cost or 0 for line in lines) == pytest.approx(total(uses, prices_of).cost)
    assert [line.key for line in lines] == sorted({each.model for each in uses})


def test_amounts_are_dollars() -> None:
    assert [dollars(amount) for amount in (0, 0.00012345, 0.01, 1234.5)] == ["$0.00", "$0.000123", "$0.01", "$1,234.50"]


def test_a_budget_is_near_at_four_fifths_and_over_at_its_end() -> None:
    spendings = [DaySpending(spent, 5.0) for spent in (3.99, 4.0, 5.0, 6.0)]
    assert [each.is_near for each in spendings] == [False, True, True, True]
    assert [each.is_over for each in spendings] == [False, False, True, True]


PRICES = Prices(0.001, 0.01, 0.0001, 0.002)
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110, "cached_tokens": 80}
COST = 0.02 + 0.008 + 0.1


async def answered(world: World, usage: dict[str, int] | None = None, model: str | None = None) -> None:
    world.model.enqueue(TextDelta("Yes."), ReplyEnd("stop", USAGE if usage is None else usage))
    if model:
        world.current.use_model(world.current.slug, model)
    await world.say("Really?")


async def folded(world: World, usage: dict[str, int] | None = None) -> None:
    """Have four turns, none of which reports tokens, summarised by a request that does."""
    for _ in range(4):
        await world.say("Really?")
    world.model.enqueue(TextDelta("In short."), ReplyEnd("stop", USAGE if usage is None else usage))
    await world.told("/compact")


@pytest.fixture
def costs(world: World) -> Costs:
    return Costs(world.store, world.clock, lambda model: None if "mystery" in model else PRICES)


async def test_cached_tokens_are_stored_and_cost_less(world: World, costs: Costs) -> None:
    await answered(world)
    report = await costs.report(Grouping.MODEL, None)
    assert report.total.cost == pytest.approx(COST)
    assert report.total.tokens.cached == 80
    # As an older Chorus stored it.
    await answered(world, {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7})
    assert (await costs.report(Grouping.MODEL, None)).total.tokens == TokenUse(103, 14, 80)


async def test_costs_are_told_by_day_persona_model_and_thread(world: World, costs: Costs) -> None:
    await answered(world)
    world.clock.advance(timedelta(days=1))
    await answered(world, model="openai/mystery")
    other = await another_thread(world)
    world.model.enqueue(TextDelta("Yes."), ReplyEnd("stop", USAGE))
    _ = [event async for event in world.conversation.answer(other, "There?")]
    reports = [await costs.report(grouping, None) for grouping in Grouping]
    assert [[line.key for line in report.lines] for report in reports] == [
        [f"{world.clock.now() - timedelta(days=1):%Y-%m-%d}", f"{world.clock.now():%Y-%m-%d}"],
        ["chorus"],
        ["openai/mystery", "openai/test"],
        ["chorus #1", "chorus #2"],
    ]
    assert {report.total.cost_text for report in reports} == {"$0.13+"}
    assert [line.cost for line in reports[0].lines] == [pytest.approx(COST), None]


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Berlin, where the day that the test is about ends in winter time and begins in summer time."""
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("berlin")
async def test_a_day_begins_at_the_users_midnight_also_if_the_clocks_change(world: World, costs: Costs) -> None:
    world.clock.advance(datetime(2026, 10, 24, 22, 30, tzinfo=UTC) - world.clock.now())
    await answered(world)
    world.clock.advance(timedelta(hours=12))
    assert [line.key for line in (await costs.report(Grouping.DAY, None)).lines] == ["2026-10-25"]
    assert (await costs.today()).cost == pytest.approx(COST)


async def test_only_replies_since_a_time_or_of_a_persona_are_counted(world: World, costs: Costs) -> None:
    await answered(world)
    world.clock.advance(timedelta(days=2))
    await answered(world)
    since = world.clock.now() - timedelta(days=1)
    assert (await costs.report(Grouping.MODEL, since)).total.replies == 1
    assert (await costs.report(Grouping.MODEL, None, "frodo")).lines == ()
    assert (await costs.today()).cost == pytest.approx(COST)


async def test_damaged_and_missing_usage_is_passed_over(world: World, costs: Costs) -> None:
    await answered(world)
    await answered(world, usage={})
    await answered(world)
    await folded(world)
    await world.store.write(lambda connection: bool(connection.execute("UPDATE messages SET usage = '{' WHERE id = 2")))
    await world.store.write(lambda connection: bool(connection.execute("UPDATE other_requests SET usage = '{'")))
    total = (await costs.report(Grouping.MODEL, None)).total
    assert (total.replies, total.summaries) == (1, 0)


async def test_the_price_of_the_last_reply_is_that_of_its_turn(world: World, costs: Costs) -> None:
    thread = world.current.thread_id
    assert await costs.of_last_reply(thread) is None
    await answered(world)
    world.clock.advance(timedelta(minutes=1))
    await answered(world, usage=USAGE | {"completion_tokens": 20})
    assert await costs.of_last_reply(thread) == pytest.approx(COST + 0.1)
    await folded(world)
    assert await costs.of_last_reply(thread) == pytest.approx(COST + 0.1)


async def test_summaries_are_counted_by_every_grouping_and_named(world: World, costs: Costs) -> None:
    await folded(world)
    await answered(world)
    keys = {Grouping.DAY: "2026-02-12", Grouping.PERSONA: "chorus", Grouping.MODEL: MODEL, Grouping.THREAD: "chorus #1"}
    for grouping, key in keys.items():
        report = await costs.report(grouping, None)
        [line] = report.lines
        assert (line.key, line.replies, line.summaries) == (key, 1, 1)
        found = [line.cost, report.total.cost, report.summaries.cost]
        assert found == [pytest.approx(each * COST) for each in (2, 2, 1)]
        told = report.as_json()["summaries"]
        assert isinstance(told, dict)
        assert told.items() >= {"replies": 0, "summaries": 1, "prompt_tokens": 100, "cached_tokens": 80}.items()
        assert (await costs.report(grouping, world.clock.now())).lines == ()
        assert (await costs.report(grouping, None, "frodo")).lines == ()


async def spent(costs: Costs, budget: float = 0.15) -> DaySpending:
    spending = await costs.spending(budget, MODEL)
    assert spending is not None
    return spending


@pytest.mark.parametrize("name", ["chorus/eliza", "local/small.gguf", "ollama_chat/llama3.2"])
async def test_a_model_of_this_machine_is_free_and_asks_for_no_budget(world: World, name: str) -> None:
    costs = Costs(world.store, world.clock, partial(servers.prices, model_map=MODEL_MAP))
    await answered(world, model=name)
    assert (await costs.report(Grouping.MODEL, None)).total.cost_text == "$0.00"
    assert await costs.spending(0.15, name) is None


async def test_the_summaries_of_other_days_are_none_of_the_budget_of_today(world: World, costs: Costs) -> None:
    await folded(world)
    told = "Today's requests have cost $0.13, 85% of your budget of $0.15."
    assert (await spent(costs)).sentence == told
    world.clock.advance(timedelta(days=1))
    assert (await spent(costs)).spent == 0


@pytest.mark.parametrize("usage", [{}, USAGE])
async def test_the_command_tells_of_summaries(world: World, usage: dict[str, int]) -> None:
    await answered(world)
    await folded(world, usage)
    told = await world.told("/cost")
    named = "This includes 1 request for summaries or facts (cost unknown)."
    assert (named in told, "for summaries" in told) == (bool(usage), bool(usage))


async def test_the_command_shows_a_table_and_today(world: World) -> None:
    await answered(world)
    told = await world.told("/cost 7d by persona")
    assert "Persona" in told
    assert "chorus" in told
    assert "The price of openai/test is not known." in told
    advice = "After /set budget 5, Chorus warns you when the known cost of a day is $4 (80%)."
    assert told.endswith(f"Today: unknown. {advice}")


async def test_thoughts_have_a_column_where_there_are_any(world: World, costs: Costs) -> None:
    await answered(world)
    assert "Thoughts" not in await world.told("/cost")
    await answered(world, USAGE | {THOUGHT: 6}, "openai/other")
    _, heads, *lines = (await world.told("/cost")).splitlines()[:5]
    assert heads.split() == ["Model", "Replies", "Prompt", "From", "cache", "Completion", "Thoughts", "Cost"]
    assert [line.split()[-2] for line in lines] == ["6", "0", "6"]
    report = await costs.report(Grouping.MODEL, None)
    assert [line.as_json()[THOUGHT] for line in (*report.lines, report.total)] == [6, 0, 6]
    assert report.total.cost == pytest.approx(2 * COST)


async def test_a_time_and_a_grouping_are_read_in_any_combination_completed_or_refused(world: World) -> None:
    for line in ("/cost", "/cost since monday", "/cost by day", "/cost 3 days by thread"):
        assert "No replies with known token counts" in await world.told(line)
    found = completions(world.services.registry, world.services, "/cost by m").candidates
    assert [candidate.text for candidate in found] == ["by model"]
    assert "'by moon'" in await world.told("/cost by moon")
    refusal = "Cannot read '7d by banana': after \"by\", write day, persona, model or thread."
    assert await world.told("/cost 7d by banana") == refusal


async def test_a_budget_that_is_nearly_spent_warns_once_a_day(world: World, costs: Costs) -> None:
    await answered(world)
    far, near = [await spent(costs, budget) for budget in (10.0, 0.15)]
    assert costs.warning(far) == ""
    assert costs.warning(near) == "Today's requests have cost $0.13, 85% of your budget of $0.15."
    assert costs.warning(near) == ""
    world.clock.advance(timedelta(days=1))
    assert costs.warning(near)


async def test_the_threads_of_a_deleted_persona_still_cost(world: World, costs: Costs) -> None:
    await answered(world)
    await world.store.write(thread_rows.new, "frodo", "", world.clock.now())
    changed = replace((await costs.report(Grouping.PERSONA, None)).total, key="chorus")
    assert (await costs.report(Grouping.PERSONA, None)).lines == (changed,)
