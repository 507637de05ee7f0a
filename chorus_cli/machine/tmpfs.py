"""A folder in memory for a private chat: for texts that another program, such as an editor, can only take as files.

A watcher waits on a pipe that only this process can write to. When the pipe closes, even because this process was
killed, the watcher deletes the folder.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import HomeError
from chorus_cli.machine.environment import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MOUNTS = Path("/proc/self/mountinfo")
_KINDS_IN_MEMORY = frozenset({"tmpfs", "ramfs"})
_SHARED_MEMORY = Path("/dev") / "shm"
_OCTAL = re.compile(r"\\([0-7]{3})")
_SHELL = "/bin/sh"
_WATCHER = 'trap "" HUP INT QUIT TERM; read -r _; exec rm -rf -- "$1"'
_NONE = (
    "This machine has no file system in memory (tmpfs at XDG_RUNTIME_DIR or /dev/shm), and a private chat writes no "
    "other file. /set KEY VALUE changes a setting, and a text can be typed at the prompt."
)


class _Watcher(NamedTuple):
    process_id: int
    held: int


class MemoryFolder:
    """A folder in memory that only the user can read, made when it is first asked for.

    ``mounts`` is the file in which the system lists its file systems.
    """

    def __init__(self, environment: Mapping[str, str], mounts: Path = _MOUNTS) -> None:
        self._environment = environment
        self._mounts = mounts
        self._making = threading.Lock()
        self._path: Path | None = None
        self._watcher: _Watcher | None = None

    def path(self) -> Path:
        """Return the folder.

        Raises:
            HomeError: this machine has no file system in memory, or it is full.
        """
        with self._making:
            if self._path is None:
                parent = in_memory(self._candidates(), _text(self._mounts))
                if parent is None:
                    raise HomeError(_NONE)
                self._path = self._made(parent / f"chorus-private-{os.urandom(8).hex()}")
            return self._path

    def close(self) -> None:
        """Delete the folder; a second call does nothing."""
        with self._making:
            if self._path is not None:
                shutil.rmtree(self._path, ignore_errors=True)
            if self._watcher is not None:
                os.close(self._watcher.held)
                with suppress(ChildProcessError):
                    os.waitpid(self._watcher.process_id, 0)
            self._path = self._watcher = None

    def _candidates(self) -> Iterable[Path]:
        own = self._environment.get("XDG_RUNTIME_DIR")
        return (Path(own), _SHARED_MEMORY) if own else (_SHARED_MEMORY,)

    def _made(self, path: Path) -> Path:
        try:
            # The watcher comes first: killed in between, this process leaves nothing.
            self._watcher = _watching(path, self._environment)
            path.mkdir(mode=0o700)
        except OSError as error:
            raise HomeError(f"No folder in memory can be made at {path}: {error.strerror}.") from error
        return path


def in_memory(candidates: Iterable[Path], mounts: str) -> Path | None:
    """Return the first folder that can be written and is in memory, by the text of ``/proc/self/mountinfo``."""
    kinds = dict(_kind_of(line) for line in mounts.splitlines())
    for folder in candidates:
        found = folder.resolve()
        mount = next((place for place in (found, *found.parents) if place in kinds), None)
        is_in_memory = mount is not None and kinds[mount] in _KINDS_IN_MEMORY
        if is_in_memory and found.is_dir() and os.access(found, os.W_OK | os.X_OK):
            return found
    return None


def _kind_of(mount: str) -> tuple[Path, str]:
    """Return where a file system is mounted, and its kind; a later line covers an earlier one."""
    before, _, after = mount.partition(" - ")
    place = _OCTAL.sub(lambda code: chr(int(code[1], 8)), before.split()[4])
    return Path(place), after.split()[0]


def _text(mounts: Path) -> str:
    try:
        return mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _watching(path: Path, environment: Mapping[str, str]) -> _Watcher:
    """Start the watcher in a session of its own: the keys that end this process do not end it."""
    watched, held = os.pipe()
    try:
        process_id = os.posix_spawn(
            _SHELL,
            [_SHELL, "-c", _WATCHER, "chorus", str(path)],
            without_secrets(environment),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, watched, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    except OSError:
        os.close(held)
        raise
    finally:
        os.close(watched)
    return _Watcher(process_id, held)
