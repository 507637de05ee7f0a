"""The whole story over each strict provider, with another one in the middle: nothing is ever refused."""

from __future__ import annotations

import pytest

from tests.strict.by_services import Stage
from tests.strict.providers import PROVIDERS
from tests.strict.story import Story

NAMES = [*PROVIDERS]


def other_than(name: str) -> str:
    """Return the next provider whose address is another."""
    ring = NAMES[NAMES.index(name) + 1 :] + NAMES
    return next(each for each in ring if PROVIDERS[each].variable != PROVIDERS[name].variable)


@pytest.mark.parametrize("name", NAMES)
async def test_a_talk_of_many_turns(name: str, stage: Stage) -> None:
    async with stage.players(name, other_than(name)) as (player, (main, other)):
        await Story(player, main, other).play()
    assert {*player.notices} <= {"From memory: #1 Look for the ring."}
