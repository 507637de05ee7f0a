"""The protocols of a database engine, SQLite or PostgreSQL. Statements are written for SQLite (see `postgres`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from chorus_cli.core.errors import StorageError

T = TypeVar("T")

Row: TypeAlias = Any
"""A tuple whose values have the types of the columns, or ``None`` where there is no row."""

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]


class ConstraintError(Exception):
    """A server refuses a row that contradicts other rows, or that has a value unfit for its column."""


class Rows(Protocol):
    """The rows that a statement returns, each as a tuple."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""

    def __iter__(self) -> Iterator[Row]: ...

    def fetchone(self) -> Row:
        """Return the next row; ``None`` if there is none."""

    def fetchall(self) -> list[Row]:
        """Return all remaining rows."""

    def close(self) -> object:
        """Read no more rows."""


class Connection(Protocol):
    """A connection within a transaction. Parameters are a sequence for ``?``, or a mapping for ``:name``."""

    def execute(self, sql: str, parameters: Parameters = ..., /) -> Rows:
        """Run one statement."""

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> Rows:
        """Run one statement with each set of parameters."""


class OpenConnection(Connection, Protocol):
    """A connection with its transactions, and a cache of the finished messages that it has read.

    ``has_begun`` is true from the beginning of a transaction until its commit or rollback ends.
    """

    finished_rows: FinishedRows[Any]
    has_begun: bool

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    def begin(self, *, to_write: bool) -> None:
        """Begin a transaction. A write excludes all other writes, so that ids become visible in their order."""

    def commit(self) -> None:
        """End the transaction; raise `DatabaseUnconfirmedError` if it may be lost."""

    def rollback(self) -> None:
        """Undo the transaction."""

    def continue_ids(self, table: str) -> None:
        """Let new ids follow the id of the newest row of a table; that row was stored with an explicit id."""

    def close(self) -> None:
        """End the connection."""


class Engine(Protocol):
    """A kind of database; ``server`` names the server of the log, and is empty if the log is on this machine."""

    errors: tuple[type[Exception], ...]
    server: str
    is_read_only: bool
    busy_timeout_seconds: float

    def open(self) -> OpenConnection:
        """Return a connection that brings the tables up to date before its first statement."""

    def apart(self) -> Engine:
        """Return an engine that connects to the same log again, but opens no further file of this machine."""

    def hurry(self) -> None:
        """From now on, wait only briefly for a database that does not answer, as the program is ending."""

    def told(self, error: BaseException) -> StorageError:
        """Return an error of the database as a sentence for the user."""

    def seal(self, connection: Connection) -> None:
        """Refuse additions to the log on this connection from now on."""

    def compact(self, connection: Connection) -> None:
        """Return the room of deleted rows to the file system."""


_MOST_FINISHED, _MOST_FINISHED_CHARACTERS = 5_000, 1 << 24


class FinishedRows(Generic[T]):
    """A cache of finished messages, by their ids.

    All rows are forgotten once any program has changed a finished message: the database counts such changes. To bound
    the memory, they are also forgotten once there are more than 5,000 rows or ``most_characters`` characters.
    """

    def __init__(self, most_characters: int = _MOST_FINISHED_CHARACTERS) -> None:
        self._rows: dict[int, T] = {}
        self._characters = 0
        self._most_characters = most_characters
        self._changes: object = None

    def forget(self) -> None:
        """Forget all rows; after a rollback they may be wrong."""
        self._rows, self._characters = {}, 0

    def read(
        self,
        connection: Connection,
        ids: Iterable[int],
        read: Callable[[Sequence[int]], Iterable[tuple[int, T, int | None]]],
    ) -> list[T]:
        """Return the rows of ``ids`` in their order; ``read`` is called with the ids that are not in the cache.

        ``read`` returns for each row its id, the row, and its number of characters, or ``None`` in place of the number
        if the row may still change. Ids for which it returns nothing are left out.
        """
        counting = connection.execute("SELECT count FROM changed_rows")
        # ``ids`` may be the result of a statement that is not sent yet; a server then answers both statements at once.
        ids, changes = [*ids], counting.fetchone()
        if changes != self._changes or len(self._rows) > _MOST_FINISHED or self._characters > self._most_characters:
            self.forget()
            self._changes = changes
        known, fresh = self._rows, dict[int, T]()
        missing = [id_ for id_ in ids if id_ not in known]
        for id_, row, characters in read(missing) if missing else ():
            fresh[id_] = row
            if characters is not None:
                known[id_] = row
                self._characters += characters
        return [found for id_ in ids if (found := fresh.get(id_) or known.get(id_))]
