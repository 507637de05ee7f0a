"""Messages that a connection has read and that will not change any more, so that a turn reads only what is new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.log.rules.messages import Message, Status

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

_MOST = 5_000
_MOST_CHARACTERS = 1 << 24


class FinishedRows:
    """The complete and counted messages that were read last, by their ids.

    They are forgotten when one of such messages was changed after all, by whichever program: the database counts that;
    and when they are more than 5,000, or have more than ``most_characters`` together, so that memory stays bounded.
    """

    def __init__(self, most_characters: int = _MOST_CHARACTERS) -> None:
        self._messages: dict[int, Message] = {}
        self._characters = 0
        self._most_characters = most_characters
        self._changes: object = None

    def forget(self) -> None:
        """Forget all messages: a rollback may have taken back what was read."""
        self._messages, self._characters = {}, 0

    def read(
        self, connection: sqlite3.Connection, ids: Sequence[int], read: Callable[[Iterable[int]], list[Message]]
    ) -> list[Message]:
        """Return the messages of ``ids`` in their order; ``read`` returns those that are not known.

        Those that it does not return are passed over.
        """
        changes = connection.execute("SELECT count FROM changed_rows").fetchone()
        if changes != self._changes or len(self._messages) > _MOST or self._characters > self._most_characters:
            self.forget()
            self._changes = changes
        known = self._messages
        missing = [id_ for id_ in ids if id_ not in known]
        fresh = {message.id: message for message in read(missing)} if missing else {}
        found = [message for id_ in ids if (message := fresh.get(id_) or known.get(id_))]
        for message in fresh.values():
            if message.status is Status.COMPLETE and message.token_count is not None:
                known[message.id] = message
                self._characters += len(message.content) + len(message.preamble) + len(message.tool_calls or "")
        return found
