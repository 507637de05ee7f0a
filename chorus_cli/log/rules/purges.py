"""The act by which messages, and all that is derived from them, are overwritten for good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from chorus_cli.core.text.phrases import counted, enumerated
from chorus_cli.log.rules.act import Act
from chorus_cli.log.rules.id_ranges import expanded, runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.core.json.jsonc import JsonValue


class PurgedIds(NamedTuple):
    """The rows that a purge concerns, by their ids.

    ``titles`` are threads that lose their title, ``preambles`` messages that lose theirs. Checkpoints, and operations
    on the memory, follow from ``items``.
    """

    messages: frozenset[int] = frozenset()
    items: frozenset[int] = frozenset()
    summaries: frozenset[int] = frozenset()
    inputs: frozenset[int] = frozenset()
    titles: frozenset[int] = frozenset()
    preambles: frozenset[int] = frozenset()

    @classmethod
    def from_json(cls, detail: Mapping[str, Any]) -> PurgedIds:
        """Read the ids of each table, written as runs."""
        found = (tuple((int(first), int(last)) for first, last in detail.get(name, ())) for name in cls._fields)
        return cls(*(frozenset(expanded(ids)) for ids in found))

    def as_json(self) -> dict[str, JsonValue]:
        """Write the ids of each table that has some, as runs."""
        named = {name: runs(sorted(ids)) for name, ids in self._asdict().items() if ids}
        return {name: [[first, last] for first, last in ids] for name, ids in named.items()}

    def united(self, other: PurgedIds) -> PurgedIds:
        """Return the rows of both."""
        return PurgedIds(*(own | others for own, others in zip(self, other, strict=True)))


NO_IDS = PurgedIds()


@dataclass(frozen=True, slots=True)
class Purge(Act):
    """Rows overwritten for good; no undo takes that back."""

    kind = "purge"
    is_final = True
    purged: PurgedIds

    @classmethod
    def from_detail(cls, detail: Mapping[str, Any], _members: tuple[int, ...]) -> Purge:
        """Read the ids."""
        return cls(PurgedIds.from_json(detail))

    def detail(self) -> dict[str, JsonValue]:
        """Write the ids, which are all that remains."""
        return self.purged.as_json()

    def describe(self) -> str:
        """Name the act with the numbers of messages and memory items."""
        numbers = {"message": len(self.purged.messages), "memory item": len(self.purged.items)}
        parts = [counted(number, thing) for thing, number in numbers.items() if number]
        return f"purged {enumerated(parts) or 'texts'} for good"
