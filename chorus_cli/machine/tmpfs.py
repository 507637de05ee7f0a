"""A folder in memory, where a private chat puts texts for programs that only read files, such as an editor.

A watcher waits on a pipe that only this process can write to. When the pipe closes, even because this process was
killed, the watcher deletes the folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from chorus_cli.core.errors import HomeError
from chorus_cli.machine.environment import without_secrets

SHARED_MEMORY = Path("/dev") / "shm"
_IN_MEMORY = (SHARED_MEMORY, Path("/run"))
_SHELL = "/bin/sh"
_WATCHER = 'trap "" HUP INT QUIT TERM; read -r _; exec rm -rf -- "$1"'
_NONE = (
    "A private chat writes files only in memory, but there is no file system in memory (XDG_RUNTIME_DIR or /dev/shm). "
    "Change a setting with /set KEY VALUE --once, and type at the prompt instead of in an editor."
)


class MemoryFolder:
    """A folder in memory that only the user can read, made when it is first asked for.

    It is below ``XDG_RUNTIME_DIR`` if that folder is in memory and writable, else below ``shared_memory``.
    """

    def __init__(self, environment: Mapping[str, str], shared_memory: Path = SHARED_MEMORY) -> None:
        self._environment = environment
        runtime = Path(environment.get("XDG_RUNTIME_DIR", ""))
        self._parent = runtime if _is_usable(runtime) else shared_memory
        self._making = threading.Lock()
        self._path: Path | None = None
        self._watcher: subprocess.Popen[bytes] | None = None

    def path(self) -> Path:
        """Return the folder; raise a ``HomeError`` if it cannot be made in memory."""
        with self._making:
            if self._path is None:
                if not _is_usable(self._parent):
                    raise HomeError(_NONE)
                path = self._parent / f"chorus-private-{os.urandom(8).hex()}"
                try:
                    # The watcher is started first, so that this process leaves nothing if it is killed in between.
                    self._watcher = _watching(path, self._environment)
                    path.mkdir(mode=0o700)
                except OSError as error:
                    raise HomeError(f"No folder in memory can be made at {path}: {error.strerror}.") from error
                self._path = path
            return self._path

    def close(self) -> None:
        """Delete the folder; a second call does nothing."""
        with self._making:
            if self._path is not None:
                shutil.rmtree(self._path, ignore_errors=True)
            if self._watcher is not None:
                self._watcher.communicate()
            self._path = self._watcher = None


def _is_usable(folder: Path) -> bool:
    """Return whether a folder is writable and in memory: below a mount point in a place that Linux uses for tmpfs."""
    is_mounted = any(each.is_mount() for each in (folder, *folder.parents) if each != each.parent)
    is_in_memory = is_mounted and any(folder.is_relative_to(place) for place in _IN_MEMORY)
    return is_in_memory and os.access(folder, os.W_OK | os.X_OK)


def _watching(path: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the watcher in a session of its own; it waits on its standard input."""
    return subprocess.Popen(
        [_SHELL, "-c", _WATCHER, "chorus", str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=without_secrets(environment),
        start_new_session=True,
    )
