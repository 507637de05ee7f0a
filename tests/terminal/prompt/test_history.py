"""The input history: its stored lines are read once, however slowly, and typed lines come before them."""

from __future__ import annotations

import asyncio

import pytest

from chorus_cli.terminal.prompt.history import InputHistory


class SlowLog:
    """Stored lines, which are read when ``is_open`` is set; ``reads`` counts how often."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.is_open = asyncio.Event()
        self.reads = 0

    async def read(self) -> list[str]:
        """Return the lines as they were when the reading began, newest first."""
        self.reads += 1
        lines = list(self.lines)
        await self.is_open.wait()
        return lines

    async def write(self, line: str) -> None:
        """Store a line."""
        self.lines.insert(0, line)


async def test_a_line_that_is_typed_while_the_stored_ones_are_read_is_kept_once() -> None:
    log = SlowLog("older", "oldest")
    history = InputHistory(log.read, log.write)
    first_prompt = asyncio.ensure_future(shown(history))
    await asyncio.sleep(0)
    history.append_string("typed")
    first_prompt.cancel()
    second_prompt = asyncio.ensure_future(shown(history))
    await asyncio.sleep(0)
    history.append_string("typed later")
    log.is_open.set()
    assert await second_prompt == ["typed later", "typed", "older", "oldest"]
    await history.settled()
    assert await shown(history) == log.lines
    assert log.reads == 1


async def test_a_reading_that_failed_is_tried_again_at_the_next_prompt() -> None:
    log = SlowLog("old")
    log.is_open.set()
    failures = [OSError("locked")]

    async def read() -> list[str]:
        if failures:
            raise failures.pop()
        return await log.read()

    history = InputHistory(read, log.write)
    with pytest.raises(OSError, match="locked"):
        await shown(history)
    assert await shown(history) == ["old"]


async def test_the_end_waits_for_the_reading_that_a_prompt_gave_up() -> None:
    log = SlowLog("old")
    history = InputHistory(log.read, log.write)
    prompt = asyncio.ensure_future(shown(history))
    await asyncio.sleep(0)
    prompt.cancel()
    end = asyncio.ensure_future(history.settled())
    await asyncio.sleep(0)
    assert not end.done()
    log.is_open.set()
    await end
    assert await shown(history) == ["old"]


async def shown(history: InputHistory) -> list[str]:
    """Return the lines, newest first, as a prompt shows them."""
    return [line async for line in history.load()]
