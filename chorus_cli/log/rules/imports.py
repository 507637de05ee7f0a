"""The act by which conversations of other programs come into the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chorus_cli.core.text.phrases import counted, enumerated
from chorus_cli.log.rules.act import Act

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.log.rules.id_ranges import Runs

_IDS = ("supersedes", "revives", "hidden")


@dataclass(frozen=True, slots=True)
class Import(Act):
    """Conversations of other programs, each in a thread of its own; ``sources`` names the programs.

    The rows say which import put them in. A newer export may show that a conversation went on from another branch:
    ``supersedes`` are earlier rows that left the live branch, ``revives`` those that came back to it.
    ``hidden`` are rows off the live branch that the other program had hidden from the model. ``unfinished`` names the
    files of an import that has not come to its end.
    """

    kind = "import"
    breaks_prefix = False
    sources: tuple[str, ...] = ()
    conversations: int = 0
    messages: int = 0
    supersedes: Runs = ()
    revives: Runs = ()
    hidden: Runs = ()
    unfinished: str = ""

    @classmethod
    def from_detail(cls, detail: Mapping[str, Any], _members: tuple[int, ...]) -> Import:
        """Read the counts and the ids."""
        supersedes, revives, hidden = (
            tuple((int(first), int(last)) for first, last in detail.get(key, ())) for key in _IDS
        )
        return cls(
            sources=tuple(detail.get("sources", ())),
            conversations=int(detail["conversations"]),
            messages=int(detail["messages"]),
            supersedes=supersedes,
            revives=revives,
            hidden=hidden,
            unfinished=str(detail.get("unfinished", "")),
        )

    def detail(self) -> dict[str, JsonValue]:
        """Write the counts and the ids."""
        counts: dict[str, JsonValue] = {
            "sources": [*self.sources],
            "conversations": self.conversations,
            "messages": self.messages,
        }
        lists = zip(_IDS, (self.supersedes, self.revives, self.hidden), strict=True)
        if self.unfinished:
            counts["unfinished"] = self.unfinished
        return counts | {key: [[first, last] for first, last in ids] for key, ids in lists if ids}

    def describe(self) -> str:
        """Name the act with the numbers of conversations and messages."""
        amount = f"{counted(self.messages, 'message')} in {counted(self.conversations, 'conversation')}"
        return f"import of {amount} from {enumerated(self.sources)}"
