"""The first key of each text is noticed, so that a connection to the model can be opened meanwhile."""

from __future__ import annotations

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input

from chorus_cli.terminal.prompt.line import Prompt
from tests.world import World


@pytest.mark.parametrize(
    ("texts", "times"),
    [(["hello"], 1), (["hello", "again"], 2), (["h\x7f\x7fhi"], 2), (["\x1b[200~pasted\x1b[201~ text"], 1)],
    ids=["a text", "two texts", "a text begun anew", "a pasted text"],
)
async def test_each_text_is_begun_once(world: World, texts: list[str], times: int) -> None:
    begun: list[str] = []
    with create_pipe_input() as source, create_app_session(input=source):
        prompt = Prompt(lambda: world.services, lambda _columns: [], lambda: begun.append("begun"))
        for text in texts:
            source.send_text(f"{text}\r")
            await prompt.read(world.services.current.target().persona, InMemoryHistory())
    assert len(begun) == times
