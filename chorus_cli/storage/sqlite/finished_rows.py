"""Messages that a connection has read and that will not change any more, so that a turn reads only what is new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.log.messages import Message, Status

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

_MOST = 5_000

Stamp = tuple[int, str]
"""The id and the stored time of a message, which an index holds."""


class FinishedRows:
    """The complete and counted messages that were read last, by their stamps.

    They are forgotten when another connection has written, for that may have changed any row. A row that a rollback
    took back, and another that got its id, differ in their stamps.
    """

    def __init__(self) -> None:
        self._messages: dict[Stamp, Message] = {}
        self._version: object = None

    def read(
        self, connection: sqlite3.Connection, stamps: Sequence[Stamp], read: Callable[[Iterable[int]], list[Message]]
    ) -> list[Message]:
        """Return the messages of ``stamps`` in their order; ``read`` returns those of ids that are not known."""
        version = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version or len(self._messages) > _MOST:
            self._messages, self._version = {}, version
        known = self._messages
        missing = {stamp[0]: stamp for stamp in stamps if stamp not in known}
        fresh = {message.id: message for message in read(missing)} if missing else {}
        found = [fresh.get(stamp[0]) or known[stamp] for stamp in stamps]
        for message in fresh.values():
            if message.status is Status.COMPLETE and message.token_count is not None:
                known[missing[message.id]] = message
        return found
