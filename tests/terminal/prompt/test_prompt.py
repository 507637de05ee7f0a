"""Keys before the prompt, the first key of a text, and Ctrl-C on a line and on the work that Enter began."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input

from chorus_cli.terminal.prompt.keyboard import Foreground
from chorus_cli.terminal.prompt.keys import Line, presses, text_of
from chorus_cli.terminal.prompt.line import Prompt
from tests.world import World


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("", ""),
        ("half a line", "half a line"),
        ("one\rtwo", "one\ntwo"),
        ("one\ntwo", "one\ntwo"),
        ("typo\x7fe", "type"),
        ("\x7fa", "a"),
        ("a\x1b[D\x1b[Ab", "ab"),
        ("\x1b[200~pasted\nlines\x1b[201~ and more", "pasted\nlines and more"),
        ("\x01\x05\x0c", ""),
        ("香 ü", "香 ü"),
    ],
)
def test_keys_make_the_text_that_a_prompt_would_show(keys: str, text: str) -> None:
    assert text_of(presses(keys)) == text


async def test_work_that_ends_at_once_leaves_nothing_to_be_stopped_of_the_next() -> None:
    foreground = Foreground(nullcontext, lambda: False)

    async def quick() -> bool:
        return True

    async def slow() -> bool:
        await asyncio.sleep(0.01)
        return True

    foreground.stop()
    assert await foreground.carry_out(quick())
    assert await foreground.carry_out(slow())


@pytest.mark.parametrize("steps", range(4))
async def test_a_signal_stops_the_work_at_whatever_step_of_the_loop_it_comes(steps: int) -> None:
    foreground = Foreground(nullcontext, lambda: False)
    done: list[str] = []

    async def work() -> bool:
        done.append("begun")
        await asyncio.sleep(60)
        return True

    def signal(steps_left: int) -> None:
        if steps_left:
            asyncio.get_running_loop().call_soon(signal, steps_left - 1)
        else:
            foreground.stop()

    signal(steps)
    async with asyncio.timeout(5):
        assert not await foreground.carry_out(work())
    assert done == ["begun"]


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


_PATIENCE_SECONDS = 3.0


async def test_after_a_while_a_line_goes_on_by_itself() -> None:
    line, went_on = Line(leaving_seconds=0.01), asyncio.Event()
    line.end(went_on.set)
    assert line.is_over
    async with asyncio.timeout(_PATIENCE_SECONDS):
        await went_on.wait()
    assert not line.is_over


async def test_a_line_that_went_on_or_ended_anew_is_not_told_of_the_time_before() -> None:
    line, before, went_on = Line(leaving_seconds=0.01), asyncio.Event(), asyncio.Event()
    line.end(before.set)
    line.go_on()
    assert not line.is_over
    line.go_on()
    line.end(before.set)
    line.end(went_on.set)
    assert line.is_over
    async with asyncio.timeout(_PATIENCE_SECONDS):
        await went_on.wait()
    assert not before.is_set()
