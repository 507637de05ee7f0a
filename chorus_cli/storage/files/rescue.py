"""The last resort: text that the database would not take is kept in a file of its own."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


def rescue(folder: Path, now: datetime, record: Mapping[str, str]) -> Path | None:
    """Append ``record`` as a line of JSON to a file in ``folder``, or in the system's temporary folder if need be.

    Returns the file, or ``None`` when nothing at all can be written any more.
    """
    name = f"rescue-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.jsonl"
    line = json.dumps(dict(record)) + "\n"
    return _kept(folder, name, line) or _kept(None, name, line)


def _kept(folder: Path | None, name: str, line: str) -> Path | None:
    try:
        path = (folder or Path(tempfile.gettempdir())) / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _append(path, line)
    except OSError:
        return None
    return path


def _append(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
