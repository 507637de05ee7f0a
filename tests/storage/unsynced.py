"""A disk that writes files but does not confirm the names in its folders, and one that remembers what it confirmed."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import pytest


def confirm_folders(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let a folder be synced so many times; after that its sync fails."""
    confirmed, sync = iter(range(times)), os.fsync

    def synced(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) and next(confirmed, None) is None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)


@dataclass
class Confirmed:
    """What a power cut would leave: the sizes of files and the names in folders when they were last synced."""

    sizes: dict[int, int] = field(default_factory=dict)
    names: dict[int, dict[str, int]] = field(default_factory=dict)

    def note(self, descriptor: int) -> None:
        """Remember a file or a folder as it is now."""
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            with os.scandir(descriptor) as entries:
                self.names[found.st_ino] = {entry.name: entry.inode() for entry in entries}
        else:
            self.sizes[found.st_ino] = found.st_size

    def has_name(self, path: Path) -> bool:
        """Return whether the name of a file or a folder would be there, and lead to what it leads to now."""
        return self.names.get(path.parent.stat().st_ino, {}).get(path.name) == path.stat().st_ino

    def has_all(self, path: Path) -> bool:
        """Return whether a file would be there with all of its bytes."""
        found = path.stat()
        return self.has_name(path) and self.sizes.get(found.st_ino) == found.st_size


def confirmed_syncs(monkeypatch: pytest.MonkeyPatch) -> Confirmed:
    """Return a record of what is synced from now on."""
    confirmed, sync = Confirmed(), os.fsync

    def synced(descriptor: int) -> None:
        sync(descriptor)
        confirmed.note(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    return confirmed
