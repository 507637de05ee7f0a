"""The files and folders that a backup holds, and the folder of the backups."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Places(NamedTuple):
    """The paths of the log, the personas with their sessions, the defaults, the attachments, and the backups."""

    database: Path
    personas: Path
    config_file: Path
    attachments: Path
    backups: Path

    @property
    def kept_attachments(self) -> Path:
        """The attachments of the daily backups, each once."""
        return self.backups / "attachments"
