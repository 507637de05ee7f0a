"""A terminal to write to within a test, its screen, and turns whose events are shown on it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from typing import Any

from chorus_cli.log.rules.messages import Status
from chorus_cli.models.rules.events import Asking, TurnDone, TurnEvent
from chorus_cli.terminal.reply.stream import show_events
from chorus_cli.terminal.screen.output import Screen
from tests.terminal.markdown.markdown_screens import Size, Window

XTERM = {"TERM": "xterm-256color"}


class TerminalFile(io.StringIO):
    """A terminal that shows what it is sent; ``failure`` is what becomes of it then."""

    def __init__(self, size: Size | None = None, *, encoding: str = "utf-8", is_terminal: bool = True) -> None:
        super().__init__()
        self.window = Window(size or Size())
        self.written = ""
        self.failure: OSError | None = None
        self._encoding = encoding
        self._is_terminal = is_terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> int:
        if self.failure:
            raise self.failure
        self.written += text
        self.window.write(text)
        return len(text)


def on_terminal(environment: Mapping[str, str] = XTERM) -> tuple[TerminalFile, Screen]:
    file = TerminalFile()
    return file, Screen(file, environment)


async def stopped(work: asyncio.Task[Any]) -> None:
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work


async def seen(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - it is another task that writes
            await asyncio.sleep(0.01)


DONE = TurnDone(1, Status.COMPLETE)
ASKING = Asking("gpt-4o-mini")
HOSTILE = (
    "\x1b]52;c;Y3VybCBldmlsfHNo\x07\n\x1b[2J\x1b[H \x9b31m \x1b]8;;http://evil.example\x1b\\bank\x1b]8;;\x1b\\\n\n"
    "\x1b[6n \x1b[c a\u202eb &#x202e;c &rlm; &#27;[2J &#155;d <http://e.example/%1B%5B2J%E2%80%AE>\n\n"
    "hidden\U000e0068\U000e0069 &#xE0068;&#xE0069; [/foo] [red]\n\n"
    "[bank.example](http://evil.example) ![\x1b[2J](\x1b]52;c;eA==\x07) </kbd>\n\n"
    "```\x1b[2J\n\x1b[2J\x9b2J\n```\n\n" + "megabyte " * 12_000 + "\n\nlast words"
)


Step = TurnEvent | float | asyncio.Event | Callable[[], bool]


async def turn(*steps: Step) -> AsyncGenerator[TurnEvent, None]:
    """Yield events; numbers are seconds of silence, and other steps are waited for."""
    for step in steps:
        if isinstance(step, int | float):
            await asyncio.sleep(step)
        elif isinstance(step, asyncio.Event):
            await step.wait()
        elif callable(step):
            await seen(step)
        else:
            yield step


def begun(screen: Screen, *steps: Step, shows_thoughts: bool = False) -> asyncio.Task[TurnDone | None]:
    return asyncio.create_task(show_events(turn(*steps), screen, screen, shows_thoughts=shows_thoughts))


async def shown(*steps: Step, environment: Mapping[str, str] = XTERM, shows_thoughts: bool = False) -> TerminalFile:
    file, screen = on_terminal(environment)
    await show_events(turn(*steps), screen, screen, shows_thoughts=shows_thoughts)
    assert screen.guard.blocked == 0
    return file
