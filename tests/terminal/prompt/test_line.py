"""How long a line that Ctrl-C was pressed on waits for a second one."""

from __future__ import annotations

import asyncio

from chorus_cli.terminal.prompt.keys import Line

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
