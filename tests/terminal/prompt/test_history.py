"""The input history: its stored lines are read once, however slowly, and typed lines come before them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from chorus_cli.core.errors import StorageError
from chorus_cli.terminal.prompt.history import Browsing, InputHistories, InputHistory


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


async def test_a_line_that_is_typed_before_the_first_prompt_is_kept_once() -> None:
    log = SlowLog("older")
    log.is_open.set()
    history = InputHistory(log.read, log.write)
    history.append_string("typed early")
    await history.settled()
    assert await shown(history) == ["typed early", "older"] == log.lines


async def test_two_prompts_at_once_show_each_line_once() -> None:
    log = SlowLog("old")
    history = InputHistory(log.read, log.write)
    prompts = [asyncio.ensure_future(shown(history)) for _ in range(2)]
    await asyncio.sleep(0)
    log.is_open.set()
    assert [await prompt for prompt in prompts] == [["old"], ["old"]]


async def test_a_reading_that_failed_is_tried_again_at_the_next_prompt() -> None:
    log = SlowLog("old")
    log.is_open.set()
    failures = [StorageError("locked")]

    async def read() -> list[str]:
        if failures:
            raise failures.pop()
        return await log.read()

    history = InputHistory(read, log.write)
    assert await shown(history) == []
    history.append_string("typed")
    await history.settled()
    assert await shown(history) == ["typed", "old"]


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


class Marks:
    """The mark of purges: each is told until the next one comes; an error is raised, and ``None`` never told."""

    def __init__(self, *marks: str | StorageError | None) -> None:
        self.marks = list(marks)

    async def now(self) -> str:
        mark = self.marks[0]
        if isinstance(mark, StorageError):
            raise mark
        if mark is None:
            await asyncio.Event().wait()
        return str(mark)


async def test_purged_lines_are_forgotten_and_those_just_typed_stay() -> None:
    log, marks = SlowLog("secret", "older"), Marks("1", "2")
    log.is_open.set()

    async def write(_slug: str, line: str) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        await log.write(line)

    histories = InputHistories(marked(log, marks), write, marks.now)
    history = histories.of("chorus")
    assert await shown(history) == ["secret", "older"]
    log.lines.remove("secret")
    await histories.forget_purged()
    assert await shown(history) == ["secret", "older"], "read once until something is purged"
    marks.marks.pop(0)
    history.append_string("typed")
    await histories.forget_purged()
    await histories.forget_purged()
    assert await shown(history) == ["typed", "older"]
    assert log.reads == 2


@pytest.mark.parametrize("mark", [StorageError("locked"), None])
async def test_lines_are_kept_while_nothing_is_known_about_purges(mark: StorageError | None) -> None:
    log, marks = SlowLog("old"), Marks("1", mark, "2")
    log.is_open.set()
    histories = InputHistories(marked(log, marks), lambda _slug, line: log.write(line), marks.now)
    assert await shown(histories.of("chorus")) == ["old"]
    for reads in (1, 2):
        marks.marks.pop(0)
        async with asyncio.timeout(10):
            await histories.forget_purged()
        assert log.reads == reads
    assert await shown(histories.of("chorus")) == ["old"]


def marked(log: SlowLog, marks: Marks) -> Callable[[str], Awaitable[tuple[list[str], str]]]:
    async def read(_slug: str) -> tuple[list[str], str]:
        return await log.read(), await marks.now()

    return read


async def shown(history: InputHistory) -> list[str]:
    return [line async for line in history.load()]


def test_steps_through_the_history_are_no_changes_of_the_line_being_typed() -> None:
    browsing = Browsing()
    browsing.begin()
    assert browsing.is_typing(0, "I am")
    browsing.before_key(2)
    assert not browsing.is_typing(1, "the last line")
    browsing.before_key(1)
    assert not browsing.is_typing(1, "the last line, edited")
    assert browsing.is_typing(2, "I am")
    # Edited, a line of the history is the line being typed if there is no other.
    browsing.begin()
    browsing.before_key(2)
    assert not browsing.is_typing(1, "the last line")
    browsing.before_key(1)
    assert browsing.is_typing(1, "the last line, edited")
    assert browsing.is_typing(2, "")
