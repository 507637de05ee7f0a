"""The whole story in the real program."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.strict.by_terminal import InTerminal
from tests.strict.providers import PROVIDERS
from tests.strict.server import StrictServer, serving
from tests.strict.story import Actor, Story
from tests.terminal.driver import Home


@pytest.mark.parametrize(
    ("name", "other_name"),
    [
        ("claude", "gemini-3"),
        ("responses", "openrouter"),
    ],
)
async def test_a_talk_of_many_turns(name: str, other_name: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        names = (name, other_name)
        servers = [stack.enter_context(serving(StrictServer(each, PROVIDERS[each].protocol))) for each in names]
        main, other = (Actor(PROVIDERS[each], server) for each, server in zip(names, servers, strict=True))
        main.server.others, other.server.others = [other.server], [main.server]
        addresses = (actor.strict.environment(actor.server.address) for actor in (main, other))
        environment = {variable: value for each in addresses for variable, value in each.items()}
        player = stack.enter_context(closing(InTerminal(Home(tmp_path / "home"), environment)))
        player.open(main.strict)
        await Story(player, main, other).play()
