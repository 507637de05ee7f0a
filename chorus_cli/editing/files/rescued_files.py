"""Texts that the database refused: the files that `storage.files.rescue` has left."""

from __future__ import annotations

import json
import re
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.storage.files import home_mark, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NAME = re.compile(r"rescue-(\d{8}T\d{6}Z)(?:-([0-9a-f]{8}))?\.jsonl")
_MOST_BYTES = 64_000_000


class Rescued(NamedTuple):
    """A text that was not stored: its file, the time, its persona and role, and the reason."""

    path: Path
    at: datetime
    persona: str
    role: str
    content: str
    reason: str


class Found(NamedTuple):
    """The texts, oldest first, and the files that cannot be read whole."""

    texts: tuple[Rescued, ...]
    unreadable: tuple[Path, ...]


def exist(folder: Path) -> bool:
    """Return whether there may be texts; it is asked at every start."""
    return any(True for _ in files(folder))


def find(folder: Path) -> Found:
    """Return the texts in ``folder`` and in the system's temporary folder, where they go if that one is full."""
    texts: list[Rescued] = []
    unreadable = []
    for path in sorted(files(folder)):
        try:
            texts += _read(path)
        except (OSError, ValueError, KeyError, TypeError):
            unreadable.append(path)
    return Found(tuple(sorted(texts, key=lambda each: each.at)), tuple(unreadable))


def files(folder: Path) -> Iterator[Path]:
    """Yield the files of texts, in ``folder`` and in the system's temporary folder."""
    own = _owner(folder)
    for place, mark in ((folder, None), (Path(tempfile.gettempdir()), home_mark(folder))):
        with suppress(OSError):
            for path in place.iterdir():
                # In the temporary folder of a machine, other homes and other users have files too.
                match = _NAME.fullmatch(path.name)
                if match and match[2] == mark and not path.is_symlink() and path.is_file() and _owner(path) == own:
                    yield path


def delete(paths: Iterable[Path]) -> None:
    """Delete files whose texts are stored, or not wanted.

    Raises:
        OSError: one cannot be deleted.
    """
    for path in {*paths}:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)


def _owner(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_uid
    return None


def _read(path: Path) -> list[Rescued]:
    match = _NAME.fullmatch(path.name)
    if match is None or path.stat().st_size > _MOST_BYTES:
        raise ValueError(path)
    at = datetime.strptime(match[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    records = [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
    return [
        Rescued(path, at, each["persona"], each["role"], each["content"], each.get("error", "")) for each in records
    ]
