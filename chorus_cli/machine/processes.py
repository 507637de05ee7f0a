"""Processes of this machine that carry a mark in their environment, as far as ``/proc`` tells."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from chorus_cli.machine.states import Leftover

_PROCESSES = Path("/proc")
_ENDED = {"Z", "X"}


class _Status(NamedTuple):
    name: str
    state: str
    group: int


def marked_processes(mark: str, ignored: str, group: int) -> tuple[Leftover, ...]:
    """Return the processes whose environment has the variable ``mark`` and none that begins with ``ignored``.

    ``group`` is the process group of their job.
    """
    found = (_marked(folder, mark.encode(), ignored.encode(), group) for folder in _folders())
    return tuple(sorted(filter(None, found), key=lambda leftover: leftover.process_id))


def _folders() -> list[Path]:
    try:
        return [folder for folder in _PROCESSES.iterdir() if folder.name.isdecimal()]
    except OSError:
        return []


def _marked(folder: Path, mark: bytes, ignored: bytes, group: int) -> Leftover | None:
    try:
        variables = (folder / "environ").read_bytes().split(b"\0")
        if mark not in variables or any(variable.startswith(ignored) for variable in variables):
            return None
        status = _status((folder / "stat").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        # It has ended, or belongs to another user.
        return None
    if status.state in _ENDED:
        return None
    return Leftover(int(folder.name), status.name, is_in_group=status.group == group)


def _status(line: str) -> _Status:
    """Parse ``42 (name) S 1 42 …``, where the name may contain anything."""
    name, _, rest = line.partition("(")[2].rpartition(")")
    state, _parent, group, *_ = rest.split()
    return _Status(name, state, int(group))
