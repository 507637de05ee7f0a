"""The bytes of attachments on the server of a log, where other machines find them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from chorus_cli.attachments import rows
from chorus_cli.attachments.files import attachments
from chorus_cli.storage.store import Store


class SharedFiles(NamedTuple):
    """Copies attachments between the ``folder`` of this machine and the server of ``store``."""

    store: Store
    folder: Path

    async def offer(self, digests: Iterable[str]) -> None:
        """Copy to the server the files that it lacks."""
        for digest in digests:
            if not await self.store.read(rows.is_on_server, digest):
                data = await asyncio.to_thread(attachments.read, self.folder, digest)
                await self.store.write(rows.store_on_server, digest, data)

    async def fetch(self, digest: str) -> bool:
        """Copy a file from the server, and return whether the server had it whole."""
        data = await self.store.read(rows.on_server, digest)
        if data is None:
            return False
        return await asyncio.to_thread(attachments.store, self.folder, data) == digest
