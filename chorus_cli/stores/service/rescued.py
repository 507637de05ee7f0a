"""Texts that the database refused and that are kept in files: found, brought into the log, or discarded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.errors import OutputError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.phrases import counted
from chorus_cli.editing.files import rescued_files
from chorus_cli.log.rows import rescued_rows
from chorus_cli.log.rows.rescued_rows import RescuedText
from chorus_cli.log.rules.messages import Role

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from chorus_cli.editing.files.rescued_files import Found, Rescued
    from chorus_cli.log.rows.rescued_rows import BroughtIn
    from chorus_cli.machine.ports import Clock
    from chorus_cli.storage.store import Store


@dataclass(frozen=True, slots=True)
class RescuedTexts:
    """The texts in the files of a folder."""

    store: Store
    folder: Path
    clock: Clock

    async def find(self) -> Found:
        """Return the texts, oldest first."""
        return await asyncio.to_thread(rescued_files.find, self.folder)

    async def notice(self) -> str:
        """Return a sentence about the texts, empty if there are none."""
        found = await self.find()
        if not found.texts:
            return ""
        verb = "is" if len(found.texts) == 1 else "are"
        texts = counted(len(found.texts), "text")
        return (
            f"{texts} that could not be stored {verb} kept in files; /rescue shows them and brings them into the log."
        )

    async def bring_in(self, texts: Sequence[Rescued]) -> tuple[BroughtIn, ...]:
        """Store texts in closed threads, and then delete their files.

        Raises:
            StorageError: they cannot be stored; the files are kept.
            OutputError: a file cannot be deleted; its text is stored.
        """
        rows = [RescuedText(each.persona, _role(each.role), cleaned_input(each.content)[0], each.at) for each in texts]
        brought = await self.store.write(rescued_rows.bring_in, rows, self.clock.now())
        await self.discard(texts)
        return brought

    async def discard(self, texts: Sequence[Rescued]) -> None:
        """Delete the files of texts.

        Raises:
            OutputError: one cannot be deleted.
        """
        try:
            await asyncio.to_thread(rescued_files.delete, {each.path for each in texts})
        except OSError as error:
            raise OutputError(f"{error.filename} cannot be deleted: {error.strerror}.") from error


def _role(name: str) -> Role:
    return Role.USER if name == Role.USER else Role.ASSISTANT
