"""Stores and reads the open thread of each running Chorus, in the lock file of its run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from chorus_cli.storage.file_lock import is_locked


class OpenThreads:
    """The lock files in ``folder``; this process's file is named ``run``. Without a folder, no thread is shared.

    Only a notice depends on these files, so errors in reading and writing them are ignored.
    """

    def __init__(self, folder: Path | None, run: str) -> None:
        self._folder = folder
        self._run = run
        self._announced = b""

    def announce(self, persona: str, thread_id: int) -> None:
        """Announce to every other Chorus that this one has a thread open."""
        entry = _entry(persona, thread_id)
        # Writing empties the file for a moment, and then other processes find no thread; so only a change is written.
        if self._folder is not None and entry != self._announced:
            with suppress(OSError):
                (self._folder / self._run).write_bytes(entry)
                self._announced = entry

    def is_shared(self, persona: str, thread_id: int) -> bool:
        """Return whether another running Chorus has the thread open."""
        entry = _entry(persona, thread_id)
        with suppress(OSError):
            others = (path for path in self._folder.iterdir() if path.name != self._run) if self._folder else ()
            for path in filter(Path.is_file, others):
                # A file that vanishes or cannot be read does not hide the other files.
                with suppress(OSError), path.open("rb") as file:
                    if file.read(len(entry) + 1) == entry and is_locked(path):
                        return True
        return False


def _entry(persona: str, thread_id: int) -> bytes:
    return f"{thread_id} {persona}\n".encode(errors="surrogateescape")
