"""The bases of acts: each class has a kind, reads and writes the JSON of its row, and describes itself to the user."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from chorus_cli.core.json.jsonc import JsonValue


class Act(ABC):
    """An act, by default without detail and members and no boundary.

    ``changes_messages`` says whether the act changes which messages are in context, ``breaks_prefix`` whether the next
    request begins anew after it, ``is_final`` that no undo takes it back.
    """

    __slots__ = ()
    kind: ClassVar[str]
    is_boundary: ClassVar[bool] = False
    changes_messages: ClassVar[bool] = True
    breaks_prefix: ClassVar[bool] = True
    is_final: ClassVar[bool] = False

    @property
    def members(self) -> tuple[int, ...]:
        """The messages that the act puts into the context, by their ids."""
        return ()

    @classmethod
    def from_detail(cls, _detail: Mapping[str, Any], _members: tuple[int, ...]) -> Self:
        """Read the act from the JSON of its row and the ids of its members."""
        return cls()

    def detail(self) -> dict[str, JsonValue]:
        """Return the JSON of the row."""
        return {}

    def members_by_thread(self) -> Mapping[int, tuple[int, ...]] | None:
        """Return the members for each thread; ``None`` for an act that puts each into the thread it was said in."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """Name the act to the user."""

    @property
    def start(self) -> str:
        """The words for a context that starts at the act, to be followed by its time; empty for no boundary."""
        return ""


@dataclass(frozen=True)
class Inclusion(Act):
    """An act that puts ``members``, the ids of messages, into the context.

    The members of a boundary begin the context in their order and are as old as the boundary. Those of any other act
    stay whatever their age, after those of the boundary, until the act is undone or a boundary follows.
    """

    members: tuple[int, ...] = ()

    @classmethod
    def from_detail(cls, _detail: Mapping[str, Any], members: tuple[int, ...]) -> Self:
        """Take the members."""
        return cls(members)
