"""Finds what other processes, on this machine or others, say and do in the thread in focus."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from typing import NamedTuple

from chorus_cli.context.service.current import Current
from chorus_cli.core.errors import StorageError
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.acts import Undo
from chorus_cli.log.rules.log_acts import Greeting
from chorus_cli.log.rules.messages import Message, Role, Status
from chorus_cli.log.rules.operations import Operation
from chorus_cli.log.rules.run_names import host_of
from chorus_cli.log.rules.threads import Exchange, last_exchange
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store

_SAME_MACHINE = "in another Chorus"


class _Newer(NamedTuple):
    """The ids of the log's newest message and operation, the thread's newer messages, and lines about newer operations.

    Each line comes with the id of the message that it follows.
    """

    message_id: int
    operation_id: int
    rows: Sequence[Message] = ()
    lines: Sequence[tuple[int, str]] = ()


class Elsewhere:
    """Finds the messages and operations of all runs but ``run``.

    ``notifications`` yields the id of a thread when another run has stored something there, 0 if it may be any thread.
    """

    def __init__(
        self, store: Store, current: Current, run: str, notifications: Callable[[], AsyncGenerator[int, None]]
    ) -> None:
        self._store = store
        self._current = current
        self._run = run
        self._notifications = notifications
        self._known: _Newer | None = None
        self._unfinished: set[int] = set()

    async def heard(self) -> AsyncGenerator[Exchange | str, None]:
        """Yield each question when it is stored, each reply when it is finished, and a line about each operation.

        Yield an empty line if something that has no line may have changed the context.
        """
        # If the server is out of reach, the first notification says that it is back.
        with suppress(StorageError):
            await self._newer()
        async with aclosing(self._notifications()) as notifications:
            async for thread_id in notifications:
                # If the connection is lost, the read after the next notification finds what this one missed.
                with suppress(StorageError):
                    heard = await self._newer()
                    for each in heard:
                        yield each
                    if not heard and thread_id in {0, self._current.thread_id}:
                        yield ""

    async def _newer(self) -> Sequence[Exchange | str]:
        """Return what was said and done since the last call, in order."""
        here = self._current.slug, self._current.thread_id
        self._known = found = await self._store.read(self._read, *here)
        turns: dict[int, list[Message]] = {}
        for row in found.rows:
            turns.setdefault(row.turn_id, []).append(row)
        self._unfinished = set()
        heard: list[tuple[int, Exchange | str]] = []
        heard += [(turn[-1].id, exchange) for turn in turns.values() for exchange in self._of_turn(turn)]
        heard += found.lines
        return [each for _, each in sorted(heard, key=lambda pair: pair[0])]

    def _read(self, connection: Connection, persona: str, thread_id: int) -> _Newer:
        newest_operation = operation_rows.newest_id_of_all(connection)
        message_id, rows = message_rows.newer(
            connection, thread_id, self._known and self._known.message_id, self._unfinished
        )
        if self._known is None:
            return _Newer(message_id, newest_operation, rows)
        found = operation_rows.newer(connection, persona, thread_id, self._known.operation_id, self._run)
        # The greeting of a new conversation belongs to the line about the conversation's beginning.
        made = [(each, run) for each, run in found if not (isinstance(each.act, Greeting) and each.act.cleared)]
        lines = [(operation.made_after, self._line(connection, operation, run)) for operation, run in made]
        return _Newer(message_id, newest_operation, rows, lines)

    def _of_turn(self, turn: Sequence[Message]) -> Iterator[Exchange]:
        is_own = any(row.run == self._run for row in turn)
        others = [row for row in turn if row.run != self._run and not (is_own and row.role is Role.USER)]
        if any(row.status is Status.STREAMING for row in others):
            self._unfinished |= {row.id for row in others if row.role is not Role.USER}
        finished = [row for row in others if row.id not in self._unfinished]
        if exchange := last_exchange(finished):
            yield exchange._replace(place=self._place(next((row.run for row in turn if row.run), "")))

    def _line(self, connection: Connection, operation: Operation, run: str) -> str:
        place, subject = self._place(run), operation.subject
        if subject is None:
            return f"{place[0].upper()}{place[1:]}: {operation_rows.name_of(connection, operation)}"
        done: Sequence[Message | Operation] = operation_rows.of_ids(connection, [subject.operation_id or 0])
        done = done or message_rows.rows(connection, [subject.turn_id or 0])
        name = operation_rows.name_of(connection, done[0]) if done else "a purged message"
        return f"{'Undone' if isinstance(operation.act, Undo) else 'Redone'} {place}: {name}"

    def _place(self, run: str) -> str:
        host = host_of(run)
        return f"on {host}" if host and host != host_of(self._run) else _SAME_MACHINE
