"""Flash saves: cold items are archived under a checkpoint, and come back by a restore or an undo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import MemoryItemError
from chorus_cli.core.text.phrases import counted
from chorus_cli.memory.rows import checkpoint_rows, item_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chorus_cli.log.rules.operations import Operation
    from chorus_cli.memory.rows.checkpoint_rows import CheckpointRow, FlashSave
    from chorus_cli.memory.service.access import MemoryAccess


class RequestFigures(NamedTuple):
    """Tokens of the next request, and the budget's mark from which on a flash save needs no force."""

    tokens: int
    mark: int


@dataclass(frozen=True, slots=True)
class FlashSaves:
    """Flash saves and checkpoints of memories."""

    access: MemoryAccess

    async def save(self, slug: str, figures: RequestFigures, *, force: bool = False) -> FlashSave:
        """Archive the COLD items of a persona under a checkpoint, and report it.

        Raises:
            MemoryItemError: the next request is below the mark and nothing forces it, or the memory is empty.
        """
        if figures.tokens < figures.mark and not force:
            raise MemoryItemError(
                f"The next request has {counted(figures.tokens, 'token')}, below the {figures.mark:,} from which on "
                "memory is archived. Nothing was changed; /memory flash --force archives COLD items anyway."
            )
        saved = await self._save(slug, automatic=False)
        if saved is None:
            raise MemoryItemError("The memory has no active items, so there is nothing to save.")
        return saved

    async def save_automatically(self, slug: str) -> FlashSave | None:
        """Archive the COLD items of a persona; ``None`` if there are none. Only an undo by number takes it back.

        Scores are not renewed for it, unless they are due: a long talk may ask for it with each message.
        """
        await self.access.renew_if_due(slug)
        if not await self.access.read(item_rows.has_cold, slug):
            return None
        return await self._save(slug, automatic=True)

    async def checkpoints(self, slug: str) -> Sequence[CheckpointRow]:
        """Return the last checkpoints of a persona, newest first."""
        return await self.access.read(checkpoint_rows.checkpoints, slug)

    async def restore(self, slug: str, checkpoint_id: int) -> Operation | None:
        """Bring the archived items of a checkpoint back; ``None`` if none of them is archived.

        Raises:
            MemoryItemError: there is no such checkpoint, or it cannot be read.
        """
        return await self.access.write(checkpoint_rows.restore, slug, checkpoint_id, self.access.clock.now())

    async def _save(self, slug: str, *, automatic: bool) -> FlashSave | None:
        await self.access.count_missing(slug)
        return await self.access.write(checkpoint_rows.flash, slug, self.access.clock.now(), automatic=automatic)
