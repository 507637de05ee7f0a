"""/undo after an action that it does not revert, or that had no effect: it asks before it goes further back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chorus_cli.framework.replies import Question, plain
from tests.world import World

UNCHANGED = "Your latest action left the context window as it was, so there is nothing to undo in it."
WARMER = "/set temperature 0.7"
CHANGED = "Your latest action changed {key}, which /undo does not revert; /settings edit does."


async def spoken_before(world: World, *commands: str) -> None:
    await world.say("Precious words")
    for command in commands:
        world.clock.advance(timedelta(minutes=1))
        await world.told(command)
    world.clock.advance(timedelta(minutes=1))


@pytest.mark.parametrize(
    ("commands", "sentence"),
    [
        (("/context reset",), UNCHANGED),
        (("/context 8h", "/undo", "/context sub 20h", "/context sub 1h"), UNCHANGED),
        ((WARMER,), CHANGED.format(key="temperature")),
        (("/model openai/gpt-5.4-mini",), CHANGED.format(key="model")),
    ],
)
async def test_undo_says_what_it_passes_over_and_asks(world: World, commands: tuple[str, ...], sentence: str) -> None:
    await spoken_before(world, *commands)
    before = await world.seen()
    question = await world.asked_back("/undo")
    assert question.text.splitlines()[0] == sentence
    assert question.text.splitlines()[1].startswith("Undo the action before it: ")
    assert await world.seen() == before == ["Precious words", "ok"]
    assert question.declined.text == "Nothing was undone."


async def test_yes_takes_the_older_thing_back_and_the_next_undo_asks_no_more(world: World) -> None:
    await world.say("First words")
    await spoken_before(world, WARMER)
    question = await world.asked_back("/undo")
    assert plain(await question.confirmed()) == 'Undone: your message "Precious words" and its reply'
    assert await world.told("/undo") == 'Undone: your message "First words" and its reply'


@pytest.mark.parametrize("command", ["set temperature 0.7", "set context_hours 12", "unset max_output_tokens"])
async def test_a_setting_that_was_left_as_it_is_does_not_stand_in_the_way(world: World, command: str) -> None:
    world.configure('{"temperature": 0.7, "context_hours": 12}')
    await spoken_before(world, f"/settings {command}")
    assert await world.told("/undo") == 'Undone: your message "Precious words" and its reply'


@pytest.mark.parametrize("commands", [(WARMER, "/new"), ("/new", "/undo", WARMER, "/redo")])
async def test_what_was_done_or_redone_after_a_setting_is_undone_without_a_question(
    world: World, commands: tuple[str, ...]
) -> None:
    await spoken_before(world, *commands)
    assert await world.told("/undo") == "Undone: new conversation"
    assert isinstance(await world.carry_out("/undo"), Question)


async def test_with_nothing_to_undo_the_setting_is_named(world: World) -> None:
    await world.told("/settings set temperature 0.7")
    assert await world.told("/undo") == f"There is nothing to undo here. {CHANGED.format(key='temperature')}"


async def test_a_window_that_was_set_needs_no_question(world: World) -> None:
    await spoken_before(world, "/settings set context_hours 12")
    assert await world.told("/undo") == "Undone: window default → 12h; it is the default again."


async def test_a_window_that_is_undone_and_redone_is_named_as_it_is_then(world: World) -> None:
    await world.told("/context 168h")
    await world.told("/context 24h")
    assert await world.told("/undo") == "Undone: window 168h → 24h; it is 168h again."
    assert await world.told("/redo") == "Redone: window 168h → 24h; it is 24h again."
    world.clock.advance(timedelta(minutes=1))
    await world.told("/settings set temperature 0.7")
    asked = (await world.asked_back("/undo")).text.splitlines()[1]
    assert asked == "Undo the action before it: window 168h → 24h, back to 168h?"


async def test_a_reset_that_changed_nothing_says_so(world: World) -> None:
    lines = (await world.told("/context reset")).splitlines()
    assert lines[0] == "Context window reset to default (8h); it was the default already."
    await world.told("/context 24h")
    assert "it was the default already" not in await world.told("/context reset")


RENAMED = "renamed thread #1, which /undo does not revert; /thread rename {back} does."


@pytest.mark.parametrize(
    ("commands", "sentence"),
    [
        (("/thread rename Rome",), RENAMED.format(back="without a title in thread #1")),
        (("/thread rename Rome", "/thread rename Milan"), RENAMED.format(back="1 Rome")),
        (("/context save trip",), "saved session 2026-02-12_trip, which /undo does not delete."),
        (
            ("/thread fork", "/thread kill 2"),
            "closed thread #2, which /undo does not revert; /thread 2 opens it again.",
        ),
        (
            ("/thread fork", "/thread fork", "/thread 1", "/thread kill all"),
            "closed 3 threads, which /undo does not revert; /thread N opens one again.",
        ),
    ],
)
async def test_undo_says_what_it_passes_over_of_threads_and_sessions(
    world: World, commands: tuple[str, ...], sentence: str
) -> None:
    await world.told("/remember the key is green")
    await world.say("Precious words")
    for command in commands:
        world.clock.advance(timedelta(minutes=1))
        answer = await world.carry_out(command)
        if isinstance(answer, Question):
            await answer.confirmed()
    question = await world.asked_back("/undo")
    assert question.text.splitlines()[0] == f"Your latest action {sentence}"
    await question.confirmed()
    assert "Your latest action" not in await world.told("/undo")
