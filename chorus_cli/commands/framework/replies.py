"""What a command answers with: values that say what to show and leave the drawing to whoever shows it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from chorus_cli.core.models.events import TurnEvent


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence or a paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under column heads; every row has as many cells as there are columns.

    Cells of the columns named in ``cut`` stay in one line, and end where the terminal has no more room for them.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    cut: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Report:
    """Several answers, one below the other."""

    parts: tuple[Text | Table, ...]


@dataclass(frozen=True, slots=True)
class Refill:
    """A sentence, and a text that comes back to where the user types.

    One that the log has anyway ``gives_way`` when a command is typed instead.
    """

    text: str
    typed: str
    gives_way: bool = False


@dataclass(frozen=True, slots=True)
class Exit:
    """Leave the program."""


@dataclass(frozen=True, slots=True)
class Question:
    """Asks yes or no before something is done.

    ``confirmed`` does it and is awaited on yes. ``declined`` is answered on no, and where nobody can be asked: it must
    be what loses nothing. Where that keeps something, ``discarded`` may offer to throw it away, and is awaited then.
    ``kept_as_text`` may offer to take what looks like something else for plain text.
    """

    text: str
    confirmed: Callable[[], Awaitable[Reply]]
    declined: Text
    discarded: Callable[[], Awaitable[Reply]] | None = None
    kept_as_text: Callable[[], Awaitable[Reply]] | None = None

    @property
    def choices(self) -> dict[str, Callable[[], Awaitable[Reply]] | None]:
        """The answers that can be given, and what each does; ``n`` does nothing."""
        offered = {"t": self.kept_as_text, "d": self.discarded}
        return {"y": self.confirmed, "n": None, **{key: work for key, work in offered.items() if work is not None}}


Reply = Text | Table | Report | Question | Refill | Exit
Answer = Reply | AsyncGenerator[TurnEvent, None]
"""What awaiting a command gives: a reply, or the events of a turn it has begun."""


def plain(reply: Reply) -> str:
    """Render a reply as text without colours or control sequences, for output that is no terminal."""
    match reply:
        case Text(text) | Refill(text):
            return text
        case Table():
            return _plain_table(reply)
        case Report(parts):
            return "\n\n".join(plain(part) for part in parts)
        case Question(text, _, declined):
            return f"{text}\n{declined.text}"
        case Exit():
            return ""


def _plain_table(table: Table) -> str:
    rows = [[" ".join(cell.splitlines()) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([table.title, *lines] if table.title else lines)
