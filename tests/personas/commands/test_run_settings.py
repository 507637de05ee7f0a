"""``/set``, ``/model NAME --once`` and ``/retry MODEL``: choices that end with the run, or with a reply."""

from __future__ import annotations

import pytest

from chorus_cli.framework.command_line import completions, resolve
from chorus_cli.threads.service.running_turn import RunningTurn
from tests.personas.commands.settings_desk import Desk
from tests.world import MODEL, World

OTHER = "anthropic/claude-sonnet-5"
WITHOUT_A_KEY = "There is no key for Anthropic, so messages will fail. Set ANTHROPIC_API_KEY."


async def temperatures(world: World) -> list[float | None]:
    await world.say("Go on")
    return [request.temperature for request in world.model.requests]


async def test_a_setting_of_this_run_holds_before_the_file_and_changes_no_file(desk: Desk) -> None:
    before = desk.path.read_text()
    assert await desk.text("/set temperature 0.9") == "temperature is 0.9 until the end of this run."
    assert desk.path.read_text() == before
    assert await temperatures(desk.world) == [0.9]
    assert await desk.text("/set") == "temperature: 0.9 (this run)"
    assert "From: this run" in await desk.text("/settings temperature")
    assert await desk.text("/set temperature default") == "temperature is 0.2 again."
    assert await temperatures(desk.world) == [0.9, 0.2]
    assert await desk.text("/set") == "No setting was changed for this run. For example: /set temperature 0.2"


async def test_an_effort_is_offered_and_goes_with_each_request(desk: Desk) -> None:
    offered = completions(desk.services.registry, desk.services, "/set effort ").candidates
    assert [candidate.text for candidate in offered] == ["none", "low", "medium", "high"]
    await desk.world.say("Think")
    await desk.text("/set effort high")
    await desk.world.say("Think harder")
    assert [request.effort for request in desk.world.model.requests] == [None, "high"]


async def test_a_setting_that_is_written_to_the_file_ends_that_of_the_run(desk: Desk) -> None:
    await desk.text("/set temperature 0.9")
    await desk.text("/settings set temperature 0.5")
    assert await temperatures(desk.world) == [0.5]


async def test_a_setting_of_this_run_is_of_one_persona(desk: Desk) -> None:
    (desk.world.personas.folder / "other").mkdir()
    await desk.text("/set temperature 0.9")
    assert desk.world.personas.load("other").settings.temperature is None


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("/set temperature 3", "temperature cannot be 3: it must be a number from 0 to 2."),
        ("/set effort max", 'effort cannot be "max": it must be "none", "low", "medium" or "high".'),
        ("/set temperature", "/set temperature needs a value; it must be a number from 0 to 2."),
        ("/set temprature 1", 'There is no setting "temprature" (did you mean "temperature"?). /settings lists them.'),
        (
            "/set context_hours 24",
            (
                "context_hours cannot be set for this run. "
                "A window is an operation that /undo reverts: /context 24h sets it."
            ),
        ),
        (
            "/set name Ada",
            "name cannot be set for this run. A name is kept in the persona's file: /settings set name NAME.",
        ),
    ],
)
async def test_what_cannot_be_set_for_a_run_is_refused(desk: Desk, line: str, refusal: str) -> None:
    assert await desk.world.told(line) == refusal
    assert desk.world.personas.set_in_this_run("chorus") == {}


@pytest.mark.parametrize("line", [f"/model {OTHER} --once", f"/set model {OTHER}"])
async def test_a_model_chosen_once_answers_until_the_end_of_the_run(desk: Desk, line: str) -> None:
    before = desk.path.read_text()
    assert await desk.text(line) == f"Model: {OTHER} (for this run)\n{WITHOUT_A_KEY}"
    assert desk.path.read_text() == before
    await desk.world.say("Go on")
    assert desk.world.model.requests[-1].model == OTHER
    await desk.text("/model default")
    assert desk.world.current.target().choice.model == MODEL


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("/model openai/gpt-99", "set by /model"),
        ("/model openai/gpt-99 --once", "for this run"),
        ("/settings set model openai/gpt-99", "set by /model"),
    ],
)
async def test_a_model_whose_context_length_is_assumed_is_told_of(world: World, line: str, reason: str) -> None:
    world.model.has_assumed_limit = True
    warning = (
        "litellm does not know this model, so a context of 10,000 tokens is assumed (a test). /settings set "
        "context_token_limit N sets another."
    )
    assert f"Model: openai/gpt-99 ({reason})\n{warning}" in await world.told(line)
    assert await world.told("/model") == f"Model: openai/gpt-99 ({reason})\n{warning}"
    await world.told("/settings set context_token_limit 9000")
    assert warning not in await world.told(line)


async def test_a_model_that_takes_the_figures_of_another_names_it(world: World) -> None:
    world.model.has_assumed_limit, world.model.relative = True, "gpt-98"
    told = "litellm has no figures for this model; those of gpt-98 are taken, as a guess."
    assert await world.told("/model openai/gpt-99") == f"Model: openai/gpt-99 (set by /model)\n{told}"
    assert await world.told("/model") == f"Model: openai/gpt-99 (set by /model)\n{told}"


async def test_once_needs_a_model_and_is_completed_after_one(desk: Desk) -> None:
    assert await desk.world.told("/model --once") == (
        "/model --once needs a model, for example: /model chorus/eliza --once"
    )
    offered = completions(desk.services.registry, desk.services, f"/model {OTHER} --o").candidates
    assert [candidate.text for candidate in offered] == ["--once"]


async def test_a_retry_with_a_model_is_answered_by_it_once(world: World) -> None:
    await world.say("Which way?")
    world.model.say("Through Moria.")
    turn = await resolve(world.services.registry, f"/retry {OTHER}", world.clock.now()).run(world.services)
    assert isinstance(turn, RunningTurn)
    await turn.over()
    await world.say("And then?")
    assert [request.model for request in world.model.requests] == [MODEL, OTHER, MODEL]
    assert (await world.seen())[:2] == ["Which way?", "Through Moria."]
    assert (await world.log())[2].model == OTHER


async def test_a_retry_with_a_name_that_is_none_asks_nobody(world: World) -> None:
    await world.say("Which way?")
    assert "There is no model 'banana'" in await world.told("/retry banana")
    assert len(world.model.requests) == 1
