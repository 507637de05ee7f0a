"""The bases of acts: each class has a kind, declares how its row keeps it, and describes itself to the user."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from chorus_cli.core.json.jsonc import JsonValue


class Stored(NamedTuple):
    """How the JSON of a row keeps a field of an act: its key, and how its value is read and written.

    A field that is not ``required`` is left out of the row if it is empty, and then has its default.
    """

    key: str
    read: Callable[[Any], Any]
    write: Callable[[Any], JsonValue] = lambda value: value
    required: bool = False


def pairs(key: str) -> Stored:
    """Keep pairs of numbers, such as runs of ids."""
    return Stored(
        key,
        lambda found: tuple((int(first), int(last)) for first, last in found),
        lambda written: [[first, last] for first, last in written],
    )


class Act(ABC):
    """An act, by default without detail and members and no boundary.

    ``changes_messages`` says whether the act changes which messages are in context, ``breaks_prefix`` whether the next
    request begins anew after it, ``is_final`` that no undo takes it back.
    """

    __slots__ = ()
    kind: ClassVar[str]
    stored: ClassVar[Mapping[str, Stored]] = MappingProxyType({})
    """The fields that the row keeps, by their names."""
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
        """Return the members for each thread; ``None`` for an act that puts each into the thread it was said in."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """Name the act to the user."""

    @property
    def start(self) -> str:
        """The words for a context that starts at a boundary, to be followed by its time."""
        return ""


@dataclass(frozen=True)
class Inclusion(Act):
    """An act that puts ``members``, the ids of messages, into the context.

    The members of a boundary begin the context in their order and are as old as the boundary. Those of any other act
    stay whatever their age, after those of the boundary, until the act is undone or a boundary follows.
    """

    members: tuple[int, ...] = ()
