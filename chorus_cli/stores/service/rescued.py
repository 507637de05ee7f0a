"""Texts that the database refused and that are kept in files, and unsent ones: found, brought in, or discarded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.errors import OutputError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.phrases import counted
from chorus_cli.editing.files import rescued_files
from chorus_cli.editing.files.rescued_files import Found, Rescued
from chorus_cli.editing.rows import outbox_rows
from chorus_cli.log.rows import rescued_rows
from chorus_cli.log.rows.rescued_rows import RescuedText
from chorus_cli.log.rules.messages import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.log.rows.rescued_rows import BroughtIn
    from chorus_cli.machine.ports import Clock
    from chorus_cli.storage.store import Connection, Store


@dataclass(frozen=True, slots=True)
class RescuedTexts:
    """The texts in the files of a folder, and those that no run has that ``is_alive``."""

    store: Store
    folder: Path
    clock: Clock
    is_alive: Callable[[str], bool]

    async def find(self) -> Found:
        """Return the texts, oldest first."""
        found = await asyncio.to_thread(rescued_files.find, self.folder)
        left = await self.store.read(outbox_rows.left_by_ended, self.is_alive)
        unsent = (Rescued(None, at, text.persona, Role.USER, text.content, "", id_) for id_, _, text, at in left)
        return found._replace(texts=tuple(sorted((*found.texts, *unsent), key=lambda each: each.at)))

    async def notice(self) -> str:
        """Return a sentence about the texts in files, empty if there are none."""
        found = await asyncio.to_thread(rescued_files.find, self.folder)
        if not found.texts:
            return ""
        verb = "is" if len(found.texts) == 1 else "are"
        texts = counted(len(found.texts), "text")
        return (
            f"{texts} that could not be stored {verb} kept in files; /rescue shows them and brings them into the log."
        )

    async def bring_in(self, texts: Sequence[Rescued]) -> tuple[BroughtIn, ...]:
        """Store texts in closed threads, delete their rows, and then their files.

        Raises:
            StorageError: they cannot be stored; the files are kept.
            OutputError: a file cannot be deleted; its text is stored.
        """
        rows = [RescuedText(each.persona, _role(each.role), cleaned_input(each.content)[0], each.at) for each in texts]
        brought = await self.store.write(_bring_in, rows, [each.row for each in texts if each.row], self.clock.now())
        await self._delete_files(texts)
        return brought

    async def discard(self, texts: Sequence[Rescued]) -> None:
        """Delete the rows and files of texts.

        Raises:
            StorageError: a row cannot be deleted.
            OutputError: a file cannot be deleted.
        """
        if rows := [each.row for each in texts if each.row]:
            await self.store.write(outbox_rows.drop, rows)
        await self._delete_files(texts)

    async def _delete_files(self, texts: Sequence[Rescued]) -> None:
        try:
            await asyncio.to_thread(rescued_files.delete, {each.path for each in texts if each.path})
        except OSError as error:
            raise OutputError(f"{error.filename} cannot be deleted: {error.strerror}.") from error


def _bring_in(
    connection: Connection, texts: Sequence[RescuedText], rows: Sequence[int], now: datetime
) -> tuple[BroughtIn, ...]:
    outbox_rows.drop(connection, rows)
    return rescued_rows.bring_in(connection, texts, now)


def _role(name: str) -> Role:
    return Role.USER if name == Role.USER else Role.ASSISTANT
