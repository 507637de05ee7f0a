"""The files in which `storage.files.rescue` keeps texts that the database refused, until rows can store them."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.editing.rows.outbox_rows import NO_RUN, Left, Unsaid
from chorus_cli.storage.files import home_mark, sync_folder

_NAME = re.compile(r"rescue-(\d{8}T\d{6}Z)(?:-([0-9a-f]{8}))?\.jsonl")
_MOST_BYTES = 64_000_000


class Found(NamedTuple):
    """The texts that were found, the files that they were ``read`` from, and the files that cannot be read whole."""

    texts: tuple[Left, ...]
    read: tuple[Path, ...]
    unreadable: tuple[Path, ...]


def find(folder: Path) -> Found:
    """Return the texts in ``folder``, and those in the system's temporary folder that ``folder`` could not take."""
    texts: dict[Path, list[Left]] = {}
    unreadable = []
    for path in sorted(files(folder)):
        try:
            texts[path] = _read(path)
        except (OSError, ValueError, KeyError, TypeError):
            unreadable.append(path)
    return Found(tuple(each for left in texts.values() for each in left), tuple(texts), tuple(unreadable))


def files(folder: Path) -> Iterator[Path]:
    """Yield the rescue files in ``folder``, and those in the system's temporary folder that belong to ``folder``."""
    own = _owner(folder)
    for place, mark in ((folder, None), (Path(tempfile.gettempdir()), home_mark(folder))):
        with suppress(OSError):
            for path in place.iterdir():
                # The temporary folder may also have files of other homes and other users.
                match = _NAME.fullmatch(path.name)
                if match and match[2] == mark and not path.is_symlink() and path.is_file() and _owner(path) == own:
                    yield path


def delete(paths: Iterable[Path]) -> None:
    """Delete files durably; a missing file is no error."""
    for path in paths:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)


def _owner(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_uid
    return None


def _read(path: Path) -> list[Left]:
    match = _NAME.fullmatch(path.name)
    if match is None or path.stat().st_size > _MOST_BYTES:
        raise ValueError(path)
    at = datetime.strptime(match[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    left = []
    for record in map(json.loads, path.read_text(encoding="ascii").splitlines()):
        role = "user" if record["role"] == "user" else "assistant"
        text = Unsaid(record["persona"], cleaned_input(record["content"])[0], is_sent=True, role=role)
        left.append(Left(text, at, NO_RUN + path.stem))
    return left
