"""The input history in prompt_toolkit's interface: read once, and written in the background."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from prompt_toolkit.history import History

from chorus_cli.core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

    Stored = tuple[list[str], str]
    """Lines, newest first, and the mark of the newest purge."""

    Read = Callable[[], Awaitable[list[str]]]
    Write = Callable[[str], Awaitable[None]]

_PATIENCE_SECONDS = 0.1


async def _unmarked() -> str:
    return ""


class InputHistory(History):
    """Lines typed to one persona. If they cannot be read, there are only those of this run until the next prompt."""

    def __init__(self, read: Read, write: Write) -> None:
        super().__init__()
        self._read = read
        self._write = write
        self._reading: asyncio.Task[list[str] | None] | None = None
        self._typed_before_reading = 0
        self._writing: set[asyncio.Task[None]] = set()

    async def load(self) -> AsyncGenerator[str, None]:
        """Yield the lines, newest first."""
        if not self._loaded:
            # A prompt that is over gives up waiting; read anew, the lines would be there twice.
            stored = await asyncio.shield(self._begun_reading(len(self._loaded_strings)))
            if stored is not None and not self._loaded:
                del self._loaded_strings[len(self._loaded_strings) - self._typed_before_reading :]
                self._loaded_strings += stored
                self._loaded = True
        for line in list(self._loaded_strings):
            yield line

    def load_history_strings(self) -> Iterable[str]:
        """Return nothing: ``load`` does not call this."""
        return ()

    def store_string(self, string: str) -> None:
        """Write a line in the background, after the reading of those before it has begun."""
        if not self._loaded:
            self._begun_reading(len(self._loaded_strings) - 1)
        task = asyncio.ensure_future(self._stored(string))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def read_anew(self) -> None:
        """Forget the lines and read the stored ones again, with those that were just typed."""
        while self._writing:
            await asyncio.wait(self._writing)
        self._loaded, self._reading = False, None
        self._loaded_strings.clear()
        async for _ in self.load():
            pass

    async def settled(self) -> None:
        """Wait until everything is read and written."""
        pending: set[asyncio.Future[Any]] = set(self._writing)
        if self._reading is not None:
            pending.add(self._reading)
        if pending:
            await asyncio.wait(pending)

    def _begun_reading(self, typed: int) -> asyncio.Task[list[str] | None]:
        """Begin to read, unless that is done; the oldest ``typed`` lines of this run are among the stored ones then."""
        if self._reading is None or (self._reading.done() and self._reading.result() is None):
            self._typed_before_reading = typed
            self._reading = asyncio.create_task(self._stored_lines())
        return self._reading

    async def _stored_lines(self) -> list[str] | None:
        with suppress(StorageError):
            return await self._read()
        return None

    async def _stored(self, line: str) -> None:
        await self._write(line)


class Browsing:
    """Tells changes of the line being typed from steps through the history; lines are known by their position in it.

    The line being typed is the newest. The history is loaded all at once, which raises its position, and before that
    no step is possible: so it has the highest position at any key press.
    """

    def __init__(self) -> None:
        self._newest = 0
        self._before = 0
        self._typed = ""

    def begin(self, typed: str = "") -> None:
        """Begin a line anew, with the text ``typed``, before the history is loaded."""
        self._newest = self._before = 0
        self._typed = typed

    def before_key(self, position: int) -> None:
        """Note the position of the line that is shown before each key press."""
        self._before = position
        self._newest = max(self._newest, position)

    def is_typing(self, position: int, text: str) -> bool:
        """Return whether a change to ``text`` is one of the line being typed.

        It may be a line of the history that is edited, as long as nothing else was typed.
        """
        if position == self._newest:
            self._typed = text
            return True
        return not self._typed and position == self._before


class InputHistories:
    """The history of each persona, by its slug; ``read`` and ``write`` reach the lines that are stored.

    ``mark`` changes with every purge, which may have deleted some of them.
    """

    def __init__(
        self,
        read: Callable[[str], Awaitable[Stored]],
        write: Callable[[str, str], Awaitable[None]],
        mark: Callable[[], Awaitable[str]] = _unmarked,
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
        """Read the lines again if something was purged since; a log that is busy is asked the next time."""
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
