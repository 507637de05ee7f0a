"""Finds what is said in the thread in focus by other processes, on this machine or others."""

from __future__ import annotations

from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from chorus_cli.core.errors import StorageError
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.messages import Message, Role, Status
from chorus_cli.log.rules.run_names import host_of
from chorus_cli.log.rules.threads import Exchange, last_exchange

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from chorus_cli.context.service.current import Current
    from chorus_cli.storage.store import Store

_SAME_MACHINE = "in another Chorus"


class Elsewhere:
    """What runs other than ``run`` say; ``notifications`` yields a thread whenever another run has stored a message."""

    def __init__(
        self, store: Store, current: Current, run: str, notifications: Callable[[], AsyncGenerator[int, None]]
    ) -> None:
        self._store = store
        self._current = current
        self._run = run
        self._notifications = notifications
        self._newest: int | None = None
        self._unfinished: set[int] = set()

    async def exchanges(self) -> AsyncGenerator[Exchange, None]:
        """Yield each question when it is stored, and what answers it when that is finished."""
        # If the server is out of reach, the first notification says that it is back.
        with suppress(StorageError):
            await self._said()
        async with aclosing(self._notifications()) as notifications:
            async for _ in notifications:
                # When the line is back, the next notification finds what this read would have found.
                with suppress(StorageError):
                    for exchange in await self._said():
                        yield exchange

    async def _said(self) -> Sequence[Exchange]:
        thread, read = self._current.thread_id, message_rows.newer
        self._newest, rows = await self._store.read(read, thread, self._newest, self._unfinished)
        turns: dict[int, list[Message]] = {}
        for row in rows:
            turns.setdefault(row.turn_id, []).append(row)
        self._unfinished = set()
        return [exchange for turn in turns.values() for exchange in self._of_turn(turn)]

    def _of_turn(self, turn: Sequence[Message]) -> Iterator[Exchange]:
        is_own = any(row.run == self._run for row in turn)
        others = [row for row in turn if row.run != self._run and not (is_own and row.role is Role.USER)]
        if any(row.status is Status.STREAMING for row in others):
            self._unfinished |= {row.id for row in others if row.role is not Role.USER}
        finished = [row for row in others if row.id not in self._unfinished]
        if exchange := last_exchange(finished):
            host = host_of(next((row.run for row in turn if row.run), ""))
            place = f"on {host}" if host and host != host_of(self._run) else _SAME_MACHINE
            yield exchange._replace(place=place)
