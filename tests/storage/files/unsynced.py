"""A disk that writes files but does not confirm the names in its folders."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def confirm_folders(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let a folder be synced so many times; after that its sync fails."""
    confirmed, sync = iter(range(times)), os.fsync

    def synced(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) and next(confirmed, None) is None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
