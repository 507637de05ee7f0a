"""The answers of commands: values that the terminal draws."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from chorus_cli.core.errors import CommandError
from chorus_cli.core.time import timestamps
from chorus_cli.threads.service.running_turn import RunningTurn

CURRENT = "●"
"""In a table, marks the row of the persona or thread in use; its column has no head."""

Row = TypeVar("Row")

_PLAIN_COLUMNS = 80


Data = Callable[[], Awaitable[object]]
"""Returns the values that an answer shows; called only for ``--json``."""


def data_of(value: object) -> Data:
    """Return a function that returns ``value``, which is known already."""

    async def data() -> object:
        return value

    return data


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence or a paragraph. If ``is_failure``, a shell gets exit code 1 and, without --json, the text on stderr.

    If it ``brings_exchange``, the chat shows the last exchange in context below it.
    """

    text: str
    data: Data | None = field(default=None, compare=False)
    is_failure: bool = False
    brings_exchange: bool = False


@dataclass(frozen=True, slots=True)
class Aside:
    """A text outside the conversation, such as thoughts, which the terminal shows dim."""

    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """Words of a persona in Markdown, shown like a reply, below the name of the ``speaker`` unless this is empty."""

    text: str
    speaker: str


@dataclass(frozen=True, slots=True)
class Output:
    """Lines of a program or of the log, shown as they are."""

    text: str
    data: Data | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under column heads; a cell of a column in ``cut`` is cut to one line within the terminal's width."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    cut: frozenset[str] = frozenset()
    data: Data | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A text that ``drawn`` returns for a width in columns."""

    drawn: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Report:
    """Several answers, one below the other."""

    parts: tuple[Text | Said | Table | Drawing, ...]
    data: Data | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Refill:
    """A sentence, and the text ``typed`` for the input line.

    A ``typed`` text that ``gives_way`` is in the log, so "/" or a line that was typed ahead may replace it.
    """

    text: str
    typed: str
    gives_way: bool = False


@dataclass(frozen=True, slots=True)
class Exit:
    """Quit the program."""


@dataclass(frozen=True, slots=True)
class PrivateChat:
    """Begin a private chat in the same terminal; when it ends, this chat goes on."""


@dataclass(frozen=True, slots=True)
class Question:
    """A yes-or-no question before an action. ``declined`` is the reply after a no, or if nobody can be asked.

    A no must lose nothing. ``discarded``, if given, deletes the draft that ``declined`` keeps. If the question
    is ``stoppable``, its actions leave nothing half-done when they are cancelled.
    """

    text: str
    confirmed: Callable[[], Awaitable[Reply]]
    declined: Text
    discarded: Callable[[], Awaitable[Reply]] | None = None
    stoppable: bool = False

    @property
    def choices(self) -> dict[str, Callable[[], Awaitable[Reply]] | None]:
        """The possible answers and their actions; ``n`` has none."""
        choices: dict[str, Callable[[], Awaitable[Reply]] | None] = {"y": self.confirmed, "n": None}
        return choices if self.discarded is None else choices | {"d": self.discarded}


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question. Any line answers it, even an empty line; in the chat, a command does not.

    ``declined`` is the reply after Ctrl-C or Ctrl-D. ``unasked`` returns the reply if nobody can be asked.
    """

    text: str
    answered: Callable[[str], Awaitable[Reply]]
    declined: Text
    unasked: Callable[[], Awaitable[Reply]]


async def unless_there(path: Path, write: Callable[..., Awaitable[Text]]) -> Text | Question:
    """Write a file, or ask first if it exists: ``write(replace=False)`` then raises a ``FileExistsError``."""
    try:
        return await write(replace=False)
    except FileExistsError:
        declined = Text(f"{path} is unchanged; nothing was written.")
        return Question(f"{path} already exists. Overwrite it?", partial(write, replace=True), declined)


def page_of(rows: Sequence[Row], page: int, size: int) -> tuple[Sequence[Row], tuple[Text, ...]]:
    """Return the rows of page ``page``, counted from 1, and a line if there are more pages; refuse a wrong number."""
    pages = -(-len(rows) // size)
    if not 1 <= page <= pages:
        raise CommandError(f"There is no page {page}; the last is {pages}.")
    told = Text(f"Page {page} of {pages}; a page number after the command shows another.")
    return rows[(page - 1) * size : page * size], (told,) if pages > 1 else ()


Reply = Text | Aside | Said | Output | Table | Drawing | Report | Question | Inquiry | Refill | Exit | PrivateChat
Answer = Reply | RunningTurn
"""The result of a command: a reply, or a running turn whose events the caller follows."""


async def as_json(reply: Reply) -> object:
    """Return the values of a reply for JSON: its ``data`` or, if it has none, its rows or its text."""
    if isinstance(reply, Text | Output | Table | Report) and reply.data is not None:
        return _plain_values(await reply.data())
    if isinstance(reply, Table):
        heads = [head.lower() or "mark" for head in reply.columns]
        if not any(reply.columns):
            return {row[0].lower(): row[1] for row in reply.rows}
        return [dict(zip(heads, row, strict=True)) for row in reply.rows]
    return {"text": plain(reply)}


def _plain_values(value: object) -> object:
    """Return a value in the types of JSON: objects become their fields by name, and times become texts."""
    if isinstance(value, datetime):
        return timestamps.to_text(value)
    names = [each.name for each in fields(value)] if is_dataclass(value) else getattr(value, "_fields", ())
    if names:
        return {name: _plain_values(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(name): _plain_values(each) for name, each in value.items()}
    if isinstance(value, list | tuple | AbstractSet):
        return [_plain_values(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def plain(reply: Reply) -> str:
    """Render a reply as text without colours or control sequences, for output that is not a terminal."""
    match reply:
        case Text(text) | Aside(text) | Said(text) | Output(text) | Refill(text):
            return text
        case Table():
            return _plain_table(reply)
        case Drawing(drawn):
            return drawn(_PLAIN_COLUMNS)
        case Report(parts):
            return "\n\n".join(plain(part) for part in parts)
        case Question(text, _, declined) | Inquiry(text, _, declined):
            return f"{text}\n{declined.text}"
        case Exit() | PrivateChat():
            return ""


def _plain_table(table: Table) -> str:
    rows = [[" ".join(cell.splitlines()) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([table.title, *lines] if table.title else lines)
