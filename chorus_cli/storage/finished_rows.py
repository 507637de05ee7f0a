"""Rows that a connection has read and that will not change any more, so that a turn reads only what is new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Mapping, Sequence

T = TypeVar("T")

_MOST = 5_000
_MOST_CHARACTERS = 1 << 24


class FinishedRows(Generic[T]):
    """The finished rows of messages that were read last, by their ids.

    They are forgotten when one of them was changed after all, by whichever program: the database counts that;
    and when they are more than 5,000, or have more than ``most_characters`` together, so that memory stays bounded.
    """

    def __init__(self, most_characters: int = _MOST_CHARACTERS) -> None:
        self._rows: dict[int, T] = {}
        self._characters = 0
        self._most_characters = most_characters
        self._changes: object = None

    def forget(self) -> None:
        """Forget all rows: a rollback may have taken back what was read."""
        self._rows, self._characters = {}, 0

    def read(
        self,
        connection: sqlite3.Connection,
        ids: Sequence[int],
        read: Callable[[Iterable[int]], Mapping[int, T]],
        size: Callable[[T], int | None],
    ) -> list[T]:
        """Return the rows of ``ids`` in their order; ``read`` returns those that are not known.

        Those that it does not return are passed over. ``size`` returns the characters of a row that is finished,
        ``None`` for one that may change.
        """
        changes = connection.execute("SELECT count FROM changed_rows").fetchone()
        if changes != self._changes or len(self._rows) > _MOST or self._characters > self._most_characters:
            self.forget()
            self._changes = changes
        known = self._rows
        missing = [id_ for id_ in ids if id_ not in known]
        fresh = read(missing) if missing else {}
        found = [row for id_ in ids if (row := fresh.get(id_) or known.get(id_))]
        for id_, row in fresh.items():
            if (characters := size(row)) is not None:
                known[id_] = row
                self._characters += characters
        return found
