"""The thread that each Chorus that runs has open, written into the lock file of its run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from chorus_cli.storage.file_lock import is_locked


class OpenThreads:
    """The lock files in ``folder``, of which ``run`` is this process's own; without a folder no thread is shared.

    They serve only a notice, so a file that cannot be read or written counts as no Chorus.
    """

    def __init__(self, folder: Path | None, run: str) -> None:
        self._folder = folder
        self._run = run
        self._announced = b""

    def announce(self, persona: str, thread_id: int) -> None:
        """Announce to every other Chorus that this one has a thread open."""
        entry = _entry(persona, thread_id)
        # Another process that read the file while it is written again would see no thread in it.
        if self._folder is not None and entry != self._announced:
            with suppress(OSError):
                (self._folder / self._run).write_bytes(entry)
                self._announced = entry

    def is_shared(self, persona: str, thread_id: int) -> bool:
        """Return whether another Chorus that runs has the thread open."""
        entry = _entry(persona, thread_id)
        with suppress(OSError):
            others = (path for path in self._folder.iterdir() if path.name != self._run) if self._folder else ()
            for path in filter(Path.is_file, others):
                # A file that vanishes meanwhile, or is damaged, hides no other.
                with suppress(OSError), path.open("rb") as file:
                    if file.read(len(entry) + 1) == entry and is_locked(path):
                        return True
        return False


def _entry(persona: str, thread_id: int) -> bytes:
    return f"{thread_id} {persona}\n".encode(errors="surrogateescape")
