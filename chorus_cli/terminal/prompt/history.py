"""The typed lines as prompt_toolkit's history; they are read when they are first needed, and again after a purge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial

from prompt_toolkit.history import History

from chorus_cli.core.errors import StorageError

Stored = tuple[list[str], str]  # lines, newest first, and the mark of the newest purge
Read = Callable[[], Awaitable[list[str]]]
Write = Callable[[str], Awaitable[None]]

_PATIENCE_SECONDS = 0.1


class InputHistory(History):
    """Lines typed to one persona. If the stored lines cannot be read, there are only new ones until the next prompt.

    The log reads and writes in the order of the calls, so that a reading finds exactly the lines typed before it.
    """

    def __init__(self, read: Read, write: Write) -> None:
        super().__init__()
        self._read = read
        self._write = write
        self._reading: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Future[None]] = set()

    async def load(self) -> AsyncGenerator[str, None]:
        """Yield the lines, newest first."""
        if not self._loaded:
            if self._reading is None or self._reading.done():
                self._reading = self._begun(self._take_stored(len(self._loaded_strings)))
            # If the prompt ends, only this wait is cancelled, and the next prompt waits for the same reading.
            await asyncio.shield(self._reading)
        for line in list(self._loaded_strings):
            yield line

    def load_history_strings(self) -> Iterable[str]:
        """Return nothing, because `load` reads the lines itself."""
        return ()

    def store_string(self, string: str) -> None:
        """Write a line in the background."""
        self._begun(self._write(string))

    def remember(self, line: str) -> None:
        """Offer a line that was not sent, as the newest, until the program ends or the lines are read anew."""
        self._loaded_strings.insert(0, line)

    async def read_anew(self) -> None:
        """Forget the lines, and read the stored ones again."""
        if self._reading is not None:
            await asyncio.wait({self._reading})
        self._loaded = False
        self._loaded_strings.clear()
        async for _ in self.load():
            pass

    async def settled(self) -> None:
        """Wait until everything is read and written."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _begun(self, work: Awaitable[None]) -> asyncio.Future[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _take_stored(self, known: int) -> None:
        with suppress(StorageError):
            stored = await self._read()
            # The lines known before the reading are at the end of the list; the stored lines include and replace them.
            self._loaded_strings[len(self._loaded_strings) - known :] = stored
            self._loaded = True


def remember(history: History, line: str) -> None:
    """Let Up bring back a line that was not sent; no later run knows the line."""
    if isinstance(history, InputHistory):
        history.remember(line)


class InputHistories:
    """The history of each persona, by slug. ``mark`` returns an id of the newest purge, because purges delete lines."""

    def __init__(
        self,
        read: Callable[[str], Awaitable[Stored]],
        write: Callable[[str, str], Awaitable[None]],
        mark: Callable[[], Awaitable[str]],
    ) -> None:
        self._read = read
        self._write = write
        self._mark = mark
        self._marked: str | None = None
        self._histories: dict[str, InputHistory] = {}

    def of(self, slug: str) -> InputHistory:
        """Return the history of a persona; its lines are read when they are first needed."""
        if slug not in self._histories:
            self._histories[slug] = InputHistory(partial(self._lines, slug), partial(self._write, slug))
        return self._histories[slug]

    async def settled(self) -> None:
        """Wait until everything is read and written."""
        for history in self._histories.values():
            await history.settled()

    async def forget_purged(self) -> None:
        """Read the lines again if there was a purge since they were read; if the log is busy, the next call does so."""
        with suppress(StorageError, TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                mark = await self._mark()
            if self._marked not in {None, mark}:
                self._marked = mark
                for history in self._histories.values():
                    await history.read_anew()

    async def _lines(self, slug: str) -> list[str]:
        lines, mark = await self._read(slug)
        if self._marked is None:
            self._marked = mark
        return lines
