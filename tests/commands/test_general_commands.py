"""The commands of one word, and how they are completed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.commands.command_line import completions

if TYPE_CHECKING:
    from tests.services.world import World


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
    here = world.commands
    found = completions(here.registry, here, line).candidates
    assert {each.text for each in found} == offered
    assert all(each.description for each in found)
