"""Changes of settings, and those of this process that the journal does not hold.

``/undo`` takes back what the journal and the log hold. Without a memory of what was done beside them it would pass
over that in silence and take back something older than the user means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.core.settings.jsonc import JsonValue
    from chorus_cli.core.settings.table import Setting


@dataclass(frozen=True, slots=True)
class Change:
    """What a persona's file said of a setting and what it says now; ``None`` where it says nothing."""

    setting: Setting
    before: JsonValue
    after: JsonValue
    changed: bool = True


class UnrecordedChanges:
    """Changes that are no operation of the journal, also attempts that changed nothing, by persona, oldest first."""

    def __init__(self) -> None:
        self._made: dict[str, list[tuple[datetime, Change]]] = {}

    def add(self, slug: str, change: Change, made_at: datetime) -> None:
        """Remember a change."""
        self._made.setdefault(slug, []).append((made_at, change))

    def newest(self, slug: str, since: datetime | None) -> Change | None:
        """Return the newest change, unless it is older than ``since``."""
        made = self._made.get(slug, [])
        return made[-1][1] if made and (since is None or made[-1][0] >= since) else None

    def forget(self, slug: str, since: datetime) -> None:
        """Forget the changes that are not older than ``since``: the user has gone back before them."""
        self._made[slug] = [(made_at, change) for made_at, change in self._made.get(slug, []) if made_at < since]
