"""Keys that were typed before the prompt become text, and Ctrl-C stops the work that Enter began."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import pytest

from chorus_cli.terminal.prompt.keyboard import Foreground
from chorus_cli.terminal.prompt.keys import presses, text_of


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
