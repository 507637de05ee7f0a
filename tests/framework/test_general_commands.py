"""The commands of one word, and their completion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.framework.command_line import completions

if TYPE_CHECKING:
    from tests.world import World


@pytest.mark.parametrize(
    ("guess", "meant"),
    [
        ("/history", "/context history"),
        ("/sessions", "/context history"),
        ("/save", "/context save"),
        ("/load", "/context restore"),
        ("/window", "/context"),
        ("/reset", "/context reset"),
        ("/log", "/search"),
        ("/fork", "/thread fork"),
        ("/context sessions", "/context history"),
        ("/context load", "/context restore"),
    ],
)
async def test_a_word_that_others_expect_leads_to_the_command_that_is_meant(
    world: World, guess: str, meant: str
) -> None:
    sentence = f"There is no command '{guess}'. Did you mean {meant}? /help lists all commands."
    assert await world.told(guess) == await world.told(f"{guess} 24h") == sentence
    if " " not in guess:
        assert await world.told(f"/help {guess}") == sentence


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("/help und", {"undo"}),
        ("/help context s", {"context set", "context sub", "context save", "context show", "context summary"}),
        ("/? /context un", {"/context undo"}),
        ("/help nosuch", set()),
    ],
)
async def test_help_offers_every_command_with_what_it_does(world: World, line: str, offered: set[str]) -> None:
    here = world.services
    found = completions(here.registry, here, line).candidates
    assert {each.text for each in found} == offered
    assert all(each.description for each in found)
