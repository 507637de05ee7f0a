"""Exports of whole logs: each conversation in a file of its own, which an import reads back exactly."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.errors import DatabaseDamagedError, OutputError
from chorus_cli.core.text.phrases import counted
from chorus_cli.imports.files import own_files
from chorus_cli.imports.rows import whole_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from chorus_cli.imports.rows.whole_threads import ThreadOfPersona
    from chorus_cli.machine.ports import Clock
    from chorus_cli.storage.store import Store

ENDINGS = ("md", "jsonl")
_TELLING_SECONDS = 5.0


@dataclass(slots=True)
class Exported:
    """The amounts of an export; ``missing`` counts attachments whose bytes are gone."""

    conversations: int = 0
    messages: int = 0
    attachments: int = 0
    missing: int = 0

    def sentence(self, folder: Path) -> str:
        """Return the report for the user about files in ``folder``."""
        amount = f"{counted(self.conversations, 'conversation')} with {counted(self.messages, 'message')}"
        attached = f" and {counted(self.attachments, 'attachment')}" if self.attachments else ""
        missing = f" {counted(self.missing, 'attachment')} could not be read." if self.missing else ""
        return f"Exported {amount}{attached} to {folder}. chorus import reads them back.{missing}"


@dataclass(frozen=True, slots=True)
class Exports:
    """Writes conversations to files; the bytes of attachments are in the folder ``attachments``."""

    store: Store
    clock: Clock
    attachments: Path

    async def export_all(self, folder: Path, ending: str, persona: str | None, tell: Callable[[str], None]) -> Exported:
        """Write every conversation of a persona, or of all, as Markdown (``md``) or ``jsonl``.

        Raises:
            OutputError: a file cannot be written; the sentence says how many conversations were.
            DatabaseDamagedError: a message cannot be read; likewise.
        """
        exported, told = Exported(), self.clock.monotonic()
        threads = await self.store.read(whole_threads.threads, persona)
        before = await asyncio.to_thread(own_files.files_of_before, folder, ending)
        try:
            for thread in threads:
                await self._export(exported, folder, ending, thread, before)
                if self.clock.monotonic() - told >= _TELLING_SECONDS:
                    told = self.clock.monotonic()
                    tell(f"{exported.conversations:,} of {len(threads):,} conversations are written.")
        except OutputError as error:
            raise OutputError(f"{error} {_written(exported)}") from error
        except DatabaseDamagedError as error:
            raise DatabaseDamagedError(f"{error} chorus doctor repairs the log. {_written(exported)}") from error
        return exported

    async def _export(
        self, exported: Exported, folder: Path, ending: str, thread: ThreadOfPersona, before: Mapping[str, Path]
    ) -> None:
        found = await self.store.read(whole_threads.conversation, thread)
        await asyncio.to_thread(own_files.write, folder, found, ending, before)
        exported.conversations += 1
        exported.messages += len(found.messages)
        for digest in {file.entry for message in found.messages for file in message.files}:
            is_there = await asyncio.to_thread(own_files.copy_attachment, folder, self.attachments, digest)
            exported.attachments += is_there
            exported.missing += not is_there


def _written(exported: Exported) -> str:
    """Say how far an export came that could not be completed."""
    if not exported.conversations:
        return "Nothing was written."
    written = counted(exported.conversations, "conversation")
    return f"{written} had been written. Once that is mended, the same export writes them all."
