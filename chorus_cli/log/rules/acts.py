"""Acts on a context, with one class for each kind.

``journal`` decides which operations count, and ``context/rules/view`` computes their effect. ``log_acts`` has the base
class of all acts, and the acts on the memory and the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.log.rules.log_acts import (
    Act,
    Flash,
    Greeting,
    Import,
    Inclusion,
    MemoryChange,
    Purge,
    Stored,
    Unreadable,
    pairs,
)
from chorus_cli.log.rules.messages import Runs, expanded, runs


@dataclass(frozen=True)
class Clear(Act):
    """A new conversation. With ``begins``, the persona is new, and sees no rows of an earlier persona of its folder."""

    kind = "clear"
    stored: ClassVar = {"begins": Stored("begins", bool)}
    is_boundary = True
    begins: bool = False

    def _name(self) -> str:
        return "this persona was made" if self.begins else "new conversation"

    @property
    def start(self) -> str:
        """The words that name this act as the start of a context."""
        return "the creation of this persona on" if self.begins else "your /new of"


@dataclass(frozen=True)
class Edit(Inclusion):
    """An edit of the context, or of one ``message`` alone, given by its id."""

    kind = "edit"
    is_boundary = True
    start = "your edit of"
    words = "edit of the context, {} kept"
    stored: ClassVar = {"message": Stored("message", int)}
    message: int = 0

    def _name(self) -> str:
        return f"edit of message #{self.message}" if self.message else super()._name()


@dataclass(frozen=True)
class Restore(Inclusion):
    """A restored session, which replaces the context of every thread.

    ``threads`` pairs each thread with its number of ``members``, in order; if it is empty, members keep their threads.
    """

    kind = "restore"
    start = "the session restored on"
    words = "restored session, {}"
    stored: ClassVar = {"threads": pairs("threads")}
    is_boundary = True
    threads: tuple[tuple[int, int], ...] = ()

    def members_by_thread(self) -> Mapping[int, tuple[int, ...]] | None:
        """Return the members that go into each thread; ``None`` if ``threads`` is empty."""
        found: dict[int, tuple[int, ...]] = {}
        first = 0
        for thread, number in self.threads:
            found[thread] = found.get(thread, ()) + self.members[first : first + number]
            first += number
        return found if self.threads else None


@dataclass(frozen=True)
class Fork(Inclusion):
    """The beginning of a thread with the context of the thread ``origin``, which the user knows by ``origin_number``.

    The members stay rows of the threads in which they were said. A summary covers the first ``summarised`` members.
    """

    kind = "fork"
    stored: ClassVar = {
        "origin": Stored("thread", int, required=True),
        "origin_number": Stored("number", int, required=True),
        "summarised": Stored("summarised", int),
    }
    is_boundary = True
    origin: int = 0
    origin_number: int = 0
    summarised: int = 0

    @property
    def folded(self) -> Runs:
        """The members that the summary covers."""
        return runs(self.members[: self.summarised])

    def _name(self) -> str:
        return f"fork of thread #{self.origin_number}, {counted(len(self.members), 'message')}"

    @property
    def start(self) -> str:
        """The words that name this act as the start of a context."""
        return f"the fork of thread #{self.origin_number} on"


class Way(StrEnum):
    """How the last message was replaced: by another reply, by the user's wording, or by a longer reply."""

    AGAIN = ""
    EDIT = "edit"
    CONTINUE = "continue"


_WAYS = {
    Way.AGAIN: "another reply to the last message",
    Way.EDIT: "another wording of the last message",
    Way.CONTINUE: "continuation of the last reply",
}


@dataclass(frozen=True)
class Retry(Act):
    """Another reply to the last message, or another wording of it, or a continuation of the last reply (see ``way``).

    It takes the messages with the ids ``replaced`` out of the context. ``wording`` is the id of the message with the
    new wording, and ``message`` the id of the message that the user edited, each 0 if there is none.
    """

    kind = "retry"
    stored: ClassVar = {
        "replaced": Stored("replaced", frozenset, lambda replaced: [*sorted(replaced)]),
        "way": Stored("way", Way),
        "wording": Stored("wording", int),
        "message": Stored("message", int),
    }
    replaced: frozenset[int] = frozenset()
    way: Way = Way.AGAIN
    wording: int = 0
    message: int = 0

    def _name(self) -> str:
        return f"edit of message #{self.message}" if self.message else _WAYS[self.way]


class Pin(Inclusion):
    """Messages that stay in context word for word, whatever their age, while all pinned messages fit into a request."""

    __slots__ = ()
    kind = "pin"

    def _name(self) -> str:
        return f"pinned {', '.join(f'#{member}' for member in self.members)}"


@dataclass(frozen=True)
class Unpin(Act):
    """The end of the pinning of a message."""

    kind = "unpin"
    stored: ClassVar = {"message": Stored("message", int, required=True)}
    message: int = 0

    def _name(self) -> str:
        return f"unpinned #{self.message}"


@dataclass(frozen=True)
class Window(Act):
    """A change of ``context_hours`` in the persona's file; ``None`` means that the key is absent."""

    kind = "window"
    changes_messages = False
    before: JsonValue
    after: JsonValue

    @classmethod
    def from_detail(cls, detail: Mapping[str, Any], _members: tuple[int, ...]) -> Window:
        """Read the act from the JSON of its row."""
        return cls(detail["context_hours"]["before"], detail["context_hours"]["after"])

    def detail(self) -> dict[str, JsonValue]:
        """Return the JSON of the row."""
        return {"context_hours": {"before": self.before, "after": self.after}}

    def _name(self) -> str:
        return f"window {_hours(self.before)} → {_hours(self.after)}"

    def result(self, *, is_undone: bool) -> str:
        """Name the window that is in force after an undo of the change (``is_undone``), or after a redo."""
        value = self.before if is_undone else self.after
        return "the default" if value is None else _hours(value)

    @property
    def inverse(self) -> Window:
        """The opposite change."""
        return Window(self.after, self.before)


_ENTRIES = {"mcpServers": "server", "mcp_allow": "permission"}  # as the user calls them
ASKS = "ask"
"""A persona's permission with this value overrides a permission for all personas: Chorus asks the user again."""


@dataclass(frozen=True)
class SettingChange(Act):
    """A change of one entry in the persona's file, such as ``("mcpServers", "time")``; ``None`` means no such entry."""

    kind = "setting"
    changes_messages = False
    stored: ClassVar = {
        "keys": Stored("keys", tuple, list, required=True),
        "before": Stored("before", lambda value: value, required=True),
        "after": Stored("after", lambda value: value, required=True),
    }
    keys: tuple[str, ...]
    before: JsonValue
    after: JsonValue

    def _name(self) -> str:
        done = "removed" if self.after in (None, ASKS) else "added" if self.before in (None, ASKS) else "changed"
        return f'{_ENTRIES.get(self.keys[0], self.keys[0])} "{".".join(self.keys[1:])}" {done}'

    @property
    def inverse(self) -> SettingChange:
        """The opposite change."""
        return SettingChange(self.keys, self.after, self.before)


@dataclass(frozen=True)
class Fold(Act):
    """An act that puts the oldest messages (``folded``) into the summary, or only rewords the summary (``rewords``)."""

    kind = "compact"
    stored: ClassVar = {"folded": pairs("folds"), "rewords": Stored("rewords", bool)}
    changes_messages = False
    breaks_prefix = False
    folded: Runs = ()
    rewords: bool = False

    def _name(self) -> str:
        if self.rewords:
            return "another wording of the summary"
        return f"{counted(len(expanded(self.folded)), 'message')} summarised"


class Subject(NamedTuple):
    """The object of an undo or a redo: an operation, or a turn, whose id is the id of its first message."""

    operation_id: int | None = None
    turn_id: int | None = None

    @classmethod
    def from_json(cls, found: Mapping[str, int]) -> Subject:
        """Read the subject from the row of a reversal."""
        return cls(found.get("operation"), found.get("turn"))

    def as_json(self) -> JsonValue:
        """Return the JSON of the subject for the row of a reversal."""
        return {"turn": self.turn_id} if self.operation_id is None else {"operation": self.operation_id}


@dataclass(frozen=True)
class Reversal(Act):
    """An undo or a redo of its ``subject``."""

    subject: Subject

    def describe(self, said: str = "", number: int | None = None) -> str:
        """Name the act by its subject: an operation by its ``number``, or a turn by ``said``, the user's message."""
        if self.subject.operation_id is not None:
            return f"{self.kind} of operation {number or self.subject.operation_id}"
        return f'{self.kind} of "{shortened(said)}"' if said else f"{self.kind} of a message"


class Undo(Reversal):
    """The undo of an operation or a turn."""

    __slots__ = ()
    kind = "undo"
    stored: ClassVar = {"subject": Stored("undoes", Subject.from_json, Subject.as_json, required=True)}


class Redo(Reversal):
    """The redo of an operation or a turn."""

    __slots__ = ()
    kind = "redo"
    stored: ClassVar = {"subject": Stored("redoes", Subject.from_json, Subject.as_json, required=True)}


_CONTEXT = (Clear, Edit, Pin, Unpin, Restore, Fork, Greeting, Retry, Window, SettingChange, Fold, Import)
_EVERY = (*_CONTEXT, Flash, MemoryChange, Purge, Unreadable, Undo, Redo)
ACTS: Mapping[str, type[Act]] = {act.kind: act for act in _EVERY}
"""The classes of acts by their ``kind``."""


def _hours(value: JsonValue) -> str:
    """Write a value of the window, which may be of any type because users edit the file by hand."""
    return "default" if value is None else f"{value}h" if isinstance(value, int) else shortened(str(value))
