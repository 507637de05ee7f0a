"""Finds texts that were not sent or not stored, brings them into the log, or discards them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from chorus_cli.core.errors import ChorusError, OutputError, StorageError
from chorus_cli.core.text.phrases import counted, first_few
from chorus_cli.core.time.timeline import UNSENT_KEPT
from chorus_cli.editing.files import rescued_files
from chorus_cli.editing.files.rescued_files import Found
from chorus_cli.editing.rows import outbox_rows
from chorus_cli.editing.rows.outbox_rows import BroughtIn, Left
from chorus_cli.machine.paths import Paths
from chorus_cli.machine.ports import Clock
from chorus_cli.storage import drafts
from chorus_cli.storage.store import Store


@dataclass(frozen=True, slots=True)
class RescuedTexts:
    """The texts that processes left in the outbox when they ended. Texts in files are moved into the outbox first."""

    store: Store
    paths: Paths
    clock: Clock
    is_alive: Callable[[str], bool]

    async def find(self, *, must_be_rows: bool = False) -> Found:
        """Return the texts, oldest first. Texts in files stay there if they cannot be stored.

        Raises:
            StorageError: the outbox cannot be read, or texts in files ``must_be_rows`` and cannot be stored.
            OutputError: a file cannot be deleted after its texts were stored.
        """
        found = await asyncio.to_thread(rescued_files.find, self.paths.rescue)
        in_files = found.texts
        if found.read:
            with nullcontext() if must_be_rows else suppress(StorageError):
                await self.store.write(outbox_rows.take_over, in_files)
                in_files = ()
                await self._delete(found.read)
        left = await self.store.read(outbox_rows.left_by_ended, self.is_alive)
        return found._replace(texts=tuple(sorted((*left, *in_files), key=lambda each: each.at)))

    async def notices(self) -> list[str]:
        """Return sentences about the texts, and about edits that were not used."""
        told, number = [], 0
        # The command /rescue reports the same failure.
        with suppress(ChorusError):
            number = len((await self.find()).texts)
        if number:
            were = "was" if number == 1 else "were"
            told = [f"/rescue shows {counted(number, 'text')} that {were} not sent or not stored in an earlier run."]
        edits = await asyncio.to_thread(drafts.kept, self.paths.drafts, self.clock.now(), self.is_alive)
        if edits:
            them = "it if you do not want it" if len(edits) == 1 else "those that you do not want"
            kept = f"{counted(len(edits), 'unused edit')} {'is' if len(edits) == 1 else 'are'} kept"
            told.append(f"{kept} for {UNSENT_KEPT.days} days in {first_few(edits)}; delete {them}.")
        return told

    async def bring_in(self, texts: Sequence[Left]) -> tuple[BroughtIn, ...]:
        """Store texts in closed threads, and delete them from the outbox."""
        return await self.store.write(outbox_rows.bring_in, texts, self.clock.now())

    async def discard(self, texts: Sequence[Left]) -> None:
        """Delete texts from the outbox."""
        await self.store.write(outbox_rows.drop, [each.id for each in texts])

    async def _delete(self, paths: Sequence[Path]) -> None:
        try:
            await asyncio.to_thread(rescued_files.delete, paths)
        except OSError as error:
            raise OutputError(f"{error.filename} cannot be deleted: {error.strerror}.") from error
