"""Acts on the log and the memory, and the base class of all acts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.core.text.phrases import counted, enumerated, shortened
from chorus_cli.log.rules.messages import Runs, expanded, runs


class Stored(NamedTuple):
    """How the JSON of a row keeps a field of an act: its key, and how its value is read and written.

    An empty field that is not ``required`` is left out of the row. A field that is not in the row has its default.
    """

    key: str
    read: Callable[[Any], Any]
    write: Callable[[Any], JsonValue] = lambda value: value
    required: bool = False


def pairs(key: str) -> Stored:
    """Return how a row keeps pairs of numbers, such as runs of ids."""
    return Stored(
        key,
        lambda found: tuple((int(first), int(last)) for first, last in found),
        lambda written: [[first, last] for first, last in written],
    )


class Act:
    """An act, which an operation of the journal stores. By default it has no detail and no members.

    A context begins at an act that ``is_boundary``. ``changes_messages`` says that the act changes which messages are
    in context, and ``breaks_prefix`` that the next request has another prefix. An act that ``is_final`` cannot be
    undone. ``words`` name the act to the user; the number of its members replaces ``{}`` in them.
    """

    __slots__ = ()
    kind: ClassVar[str]
    stored: ClassVar[Mapping[str, Stored]] = MappingProxyType({})
    """The fields that the row keeps, by their names."""
    words: ClassVar[str]
    is_boundary: ClassVar[bool] = False
    changes_messages: ClassVar[bool] = True
    breaks_prefix: ClassVar[bool] = True
    is_final: ClassVar[bool] = False

    @property
    def members(self) -> tuple[int, ...]:
        """The messages that the act puts into the context, by their ids."""
        return ()

    @classmethod
    def from_detail(cls, detail: Mapping[str, Any], members: tuple[int, ...]) -> Self:
        """Read the act from the JSON of its row and the ids of its members."""
        fields: dict[str, Any] = {
            name: each.read(detail[each.key])
            for name, each in cls.stored.items()
            if each.required or detail.get(each.key) is not None
        }
        return cls(**fields | ({"members": members} if issubclass(cls, Inclusion) else {}))

    def detail(self) -> dict[str, JsonValue]:
        """Return the JSON of the row."""
        values = ((each, getattr(self, name)) for name, each in self.stored.items())
        return {each.key: each.write(value) for each, value in values if value or each.required}

    def members_by_thread(self) -> Mapping[int, tuple[int, ...]] | None:
        """Return the members for each thread; ``None`` if the act does not assign its members to threads."""
        return None

    def describe(self) -> str:
        """Name the act to the user."""
        return self._name()

    def _name(self) -> str:
        return self.words.format(counted(len(self.members), "message"))

    @property
    def start(self) -> str:
        """The words that name the boundary at which a context starts; the time of the boundary follows them."""
        return ""


@dataclass(frozen=True)
class Inclusion(Act):
    """An act that puts ``members``, the ids of messages, into the context.

    The members of a boundary come first in the context, in their order, and have the age of the boundary. The members
    of other acts follow, and stay at any age until another operation takes them out.
    """

    members: tuple[int, ...] = ()


_DONE = {
    "accept": "accepted",
    "add": "remembered",
    "capture": "captured",
    "decline": "kept apart",
    "drop": "dropped",
    "edit": "edited",
    "forget": "forgot",
    "import": "imported",
    "pin": "pinned",
    "propose": "proposed",
    "reject": "dropped",
    "replace": "replaced",
    "restore": "restored",
    "unpin": "unpinned",
}


class ItemUse(NamedTuple):
    """The age and use of an item: its times, in UTC as text, and the number of its accesses."""

    created_at: str
    last_accessed: str
    access_count: int

    def changed(self, before: ItemUse, after: ItemUse) -> ItemUse:
        """Return this use after a change from ``before`` to ``after``; times and accesses since ``before`` stay."""
        return ItemUse(
            after.created_at if self.created_at == before.created_at else self.created_at,
            after.last_accessed if self.last_accessed == before.last_accessed else self.last_accessed,
            max(0, self.access_count + after.access_count - before.access_count),
        )


class ItemState(NamedTuple):
    """The parts of an item, as in its row; a part is ``None`` if an act does not concern it."""

    visible: bool | None = None
    archived: bool | None = None
    pinned: bool | None = None
    item_type: str | None = None
    content: str | None = None
    use: ItemUse | None = None
    replaced_by: int | None = None
    may_replace: int | None = None
    source: str | None = None

    @classmethod
    def from_json(cls, parts: Mapping[str, Any]) -> ItemState:
        """Read the parts that are in the JSON."""
        state = cls(*(parts.get(name) for name in cls._fields))
        return state if state.use is None else state._replace(use=ItemUse(*state.use))

    def as_json(self) -> dict[str, JsonValue]:
        """Write the parts that are not ``None``."""
        return {name: part for name, part in self._asdict().items() if part is not None}

    def agrees_with(self, present: ItemState) -> bool:
        """Return whether ``present`` has the same parts, except ``use`` and parts that are ``None`` here."""
        return all(part in {None, now} for part, now in zip(self._replace(use=None), present, strict=True))

    def over(self, present: ItemState) -> ItemState:
        """Return ``present``, overwritten by the parts of this state that are not ``None``."""
        concerned: dict[str, Any] = {name: part for name, part in self._asdict().items() if part is not None}
        return present._replace(**concerned)

    def differing(self, other: ItemState) -> ItemState:
        """Return this state with ``None`` for each part that equals the part of ``other``."""
        others = other._asdict()
        equal: dict[str, Any] = {name: None for name, part in self._asdict().items() if part == others[name]}
        return self._replace(**equal)


class ItemChange(NamedTuple):
    """An item by its id, and its state before and after an act."""

    item_id: int
    before: ItemState
    after: ItemState

    @classmethod
    def all_from_json(cls, items: Sequence[Mapping[str, Any]]) -> tuple[ItemChange, ...]:
        """Read the changes of an act."""
        read = ItemState.from_json
        return tuple(cls(int(each["id"]), read(each["before"]), read(each["after"])) for each in items)

    @staticmethod
    def all_as_json(changes: Sequence[ItemChange]) -> JsonValue:
        """Write the changes of an act."""
        return [
            {"id": each.item_id, "before": each.before.as_json(), "after": each.after.as_json()} for each in changes
        ]

    def fits(self, present: ItemState) -> bool:
        """Return whether the change can be made to ``present``; only an undo of a replacement reopens the old item."""
        reopens = self.after.visible and present.replaced_by and self.before.replaced_by is None
        return self.before.agrees_with(present) and not reopens

    def over(self, present: ItemState) -> ItemState:
        """Return the state that the change gives to an item whose state was ``present``."""
        state = self.after.over(present)
        if present.use and self.before.use and self.after.use:
            return state._replace(use=present.use.changed(self.before.use, self.after.use))
        return state

    @property
    def inverse(self) -> ItemChange:
        """The opposite change."""
        return ItemChange(self.item_id, self.after, self.before)


class MemoryAct(Act, ABC):
    """An act on memory items, which an undo changes back. The rows of the items show whether the prefix breaks."""

    __slots__ = ()
    changes_messages = False
    breaks_prefix = False
    passes_over: ClassVar[bool] = False
    """Whether an undo or redo passes over items that have changed since; otherwise such an item makes it fail."""

    @property
    @abstractmethod
    def changes(self) -> tuple[ItemChange, ...]:
        """The items with their states before and after the act."""

    @property
    @abstractmethod
    def inverse(self) -> MemoryAct:
        """The opposite act."""


@dataclass(frozen=True)
class MemoryChange(MemoryAct):
    """A change of items: ``change`` is a key of ``_DONE``.

    ``title`` has the first words of a single item, or names the source of several items. ``command`` is the hash of the
    command whose output was captured. ``distilled`` are the messages that a model read to propose the items.
    """

    kind = "memory"
    stored: ClassVar = {
        "change": Stored("change", str, required=True),
        "title": Stored("title", str),
        "changes": Stored("items", ItemChange.all_from_json, ItemChange.all_as_json, required=True),
        "command": Stored("command", str),
        "distilled": pairs("distilled"),
    }
    change: str
    changes: tuple[ItemChange, ...] = ()
    title: str = ""
    command: str = ""
    distilled: Runs = ()

    @property
    def inverse(self) -> MemoryChange:
        """The opposite change."""
        # The order is reversed, because an act may change an item twice.
        return replace(self, changes=tuple(change.inverse for change in reversed(self.changes)))

    def _name(self) -> str:
        done = _DONE.get(self.change, self.change)
        # The words leave out the successors in a replacement, and the items that an accepted proposal closes.
        if self.change == "accept":
            changed = [each for each in self.changes if each.before.may_replace is not None]
        else:
            changed = [each for each in self.changes if each.after.replaced_by] or [*self.changes]
        if len(changed) == 1:
            # Only a purge empties the title, because every item has words.
            title = f'"{shortened(self.title)}"' if self.title.strip() else "(a purged text)"
            by = f" by #{changed[0].after.replaced_by}" if changed[0].after.replaced_by else ""
            return f"{done} #{changed[0].item_id}{by} {title}"
        source = f" from {shortened(self.title)}" if self.title else ""
        return f"{done} {counted(len(changed), 'memory item')}{source}"


@dataclass(frozen=True)
class Flash(MemoryAct):
    """A flash save of the memory: its checkpoint, and the ids of the items that it archived.

    The act keeps the ids itself, so it can be undone without the checkpoint. ``archives`` is false in its inverse.
    """

    kind = "flash"
    passes_over = True
    stored: ClassVar = {"checkpoint_id": Stored("checkpoint", int), "archived": Stored("archived", tuple, list)}
    checkpoint_id: int = 0
    archived: tuple[int, ...] = ()
    archives: bool = True

    @property
    def changes(self) -> tuple[ItemChange, ...]:
        """The archived items and their states; a redo does not archive an item that was pinned since."""
        before, after = ItemState(archived=False, pinned=False), ItemState(archived=True)
        if not self.archives:
            before, after = after, ItemState(archived=False)
        return tuple(ItemChange(item_id, before, after) for item_id in self.archived)

    @property
    def inverse(self) -> Flash:
        """The opposite act."""
        return replace(self, archives=not self.archives)

    def _name(self) -> str:
        return f"flash save, {counted(len(self.archived), 'memory item')} archived" if self.archived else "flash save"


@dataclass(frozen=True)
class Import(Act):
    """Conversations of other programs, each in a thread of its own; ``sources`` names the programs.

    Each imported row names its import. If another branch of a conversation is live in a newer export, ``supersedes``
    are earlier rows that left the live branch, and ``revives`` are rows that came back to it. ``hidden`` are rows off
    the live branch that the other program had hidden from the model.
    """

    kind = "import"
    stored: ClassVar = {
        "sources": Stored("sources", tuple, lambda names: [*names]),
        "conversations": Stored("conversations", int, required=True),
        "messages": Stored("messages", int, required=True),
        **{name: pairs(name) for name in ("supersedes", "revives", "hidden")},
    }
    breaks_prefix = False
    sources: tuple[str, ...] = ()
    conversations: int = 0
    messages: int = 0
    supersedes: Runs = ()
    revives: Runs = ()
    hidden: Runs = ()

    def _name(self) -> str:
        amount = f"{counted(self.messages, 'message')} in {counted(self.conversations, 'conversation')}"
        return f"import of {amount} from {enumerated(self.sources)}"


class PurgedIds(NamedTuple):
    """The ids of the rows that a purge concerns.

    Threads in ``titles`` lose their title, messages in ``preambles`` their preamble, and operations on the memory in
    ``acts`` their words. ``unsaid`` are unsent messages. ``checkpoints`` keep only the ids of their items.
    """

    messages: frozenset[int] = frozenset()
    items: frozenset[int] = frozenset()
    summaries: frozenset[int] = frozenset()
    inputs: frozenset[int] = frozenset()
    titles: frozenset[int] = frozenset()
    preambles: frozenset[int] = frozenset()
    unsaid: frozenset[int] = frozenset()
    acts: frozenset[int] = frozenset()
    checkpoints: frozenset[int] = frozenset()

    @classmethod
    def from_json(cls, detail: Mapping[str, Any]) -> PurgedIds:
        """Read the ids of each table, written as runs."""
        found = (tuple((int(first), int(last)) for first, last in detail.get(name, ())) for name in cls._fields)
        return cls(*(frozenset(expanded(ids)) for ids in found))

    def as_json(self) -> dict[str, JsonValue]:
        """Write the ids as runs, without tables that have none."""
        named = {name: runs(sorted(ids)) for name, ids in self._asdict().items() if ids}
        return {name: [[first, last] for first, last in ids] for name, ids in named.items()}

    def united(self, other: PurgedIds) -> PurgedIds:
        """Return these rows together with the rows of ``other``."""
        return PurgedIds(*(own | others for own, others in zip(self, other, strict=True)))


NO_IDS = PurgedIds()


@dataclass(frozen=True)
class Purge(Act):
    """The overwriting of rows, which cannot be undone."""

    kind = "purge"
    is_final = True
    purged: PurgedIds

    @classmethod
    def from_detail(cls, detail: Mapping[str, Any], _members: tuple[int, ...]) -> Purge:
        """Read the ids."""
        return cls(PurgedIds.from_json(detail))

    def detail(self) -> dict[str, JsonValue]:
        """Write the ids."""
        return self.purged.as_json()

    def _name(self) -> str:
        numbers = {"message": len(self.purged.messages), "memory item": len(self.purged.items)}
        parts = [counted(number, thing) for thing, number in numbers.items() if number]
        return f"purged {enumerated(parts) or 'texts'} for good"


@dataclass(frozen=True, slots=True)
class Unreadable(Act):
    """An act that cannot be read; it changes nothing. ``is_set_aside`` says that a salvage gave the row this kind."""

    kind = "unreadable"
    is_final = True
    changes_messages = False
    breaks_prefix = False
    words = "cannot be read, and is passed over"
    is_set_aside: bool = False

    @classmethod
    def from_detail(cls, _detail: Mapping[str, Any], _members: tuple[int, ...]) -> Unreadable:
        """Return an act that a salvage has set aside."""
        return cls(is_set_aside=True)


@dataclass(frozen=True)
class Greeting(Inclusion):
    """A greeting from the persona's character card; the persona says it before the user says anything.

    It takes the messages ``replaced`` out of the context: an earlier greeting that nobody has answered. An undo or redo
    of the operation ``cleared``, such as a new conversation, also applies to the greeting; 0 means no operation.
    """

    kind = "greeting"
    words = "greeting of the character card"
    stored: ClassVar = {
        "replaced": Stored("replaced", frozenset, lambda replaced: [*sorted(replaced)]),
        "cleared": Stored("cleared", int),
    }
    replaced: frozenset[int] = frozenset()
    cleared: int = 0
