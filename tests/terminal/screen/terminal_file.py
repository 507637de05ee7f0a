"""A terminal to write to within a test, and its screen."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

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
