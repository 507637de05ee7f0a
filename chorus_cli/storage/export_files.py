"""Files that the user exports a conversation to: their paths, the completions of these, and the writing."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import islice
from pathlib import Path

from chorus_cli.core.errors import CommandError, OutputError
from chorus_cli.storage.durable_files import write_atomically
from chorus_cli.storage.typed_paths import bare, typed_path

_WRITTEN = frozenset({".md", ".markdown", ".json"})

# Offers are made at every key.
_MOST_LOOKED_AT = 4_000
_MOST_OFFERED = 100

# Hidden files, and names that would be read as something else if they were typed.
_NOT_OFFERED_UNASKED = (".", "~", " ")


def file_for(typed: str, new_name: str) -> Path:
    """Return the path that was typed, relative to the current folder; for a folder, ``new_name`` in it.

    Raises:
        CommandError: the ending is neither that of Markdown nor that of JSON, or there is no home folder for ``~``.
    """
    path = typed_path(typed)
    if bare(typed).endswith("/") or _is_folder(path):
        return path / new_name
    if not path.suffix:
        return path.with_name(f"{path.name}.md")
    if path.suffix.lower() not in _WRITTEN:
        raise CommandError(f"{path.name} ends in {path.suffix}; write .md for Markdown or .json for JSON.")
    return path


def offered(typed: str, endings: frozenset[str] | None = _WRITTEN) -> list[str]:
    """Return the completions of a path: folders, with a slash, and files with one of the endings, ``None`` for any.

    There are none for a folder that cannot be read, and not all for a very large one.
    """
    if typed == "~":
        return ["~/"]
    lead = typed[: typed.rfind("/") + 1]
    begun = typed[len(lead) :].casefold()
    if not lead and begun.startswith("~"):
        return []
    try:
        with os.scandir(Path(lead).expanduser()) as entries:
            looked_at = islice(entries, _MOST_LOOKED_AT)
            found = [_name(entry) for entry in looked_at if _may_be_meant(entry, begun, endings)]
    except (OSError, ValueError, RuntimeError):
        return []
    return [lead + name for name in sorted(found, key=str.casefold)[:_MOST_OFFERED]]


def write(path: Path, text: str | bytes, *, replace: bool) -> None:
    """Write a document to a file, whole or not at all.

    Raises:
        FileExistsError: it is there already and was not to be replaced.
        OutputError: it cannot be written; an old file is as it was.
    """
    try:
        if path.exists() and not path.is_file():
            raise OutputError(f"{path} is not a regular file, so nothing was written.")
        if not replace:
            # The name is taken first, so that no file of another program can be overwritten.
            path.touch(mode=0o600, exist_ok=False)
        try:
            write_atomically(path, text)
        except BaseException:
            if not replace:
                with suppress(OSError):
                    path.unlink()
            raise
    except FileExistsError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise OutputError(f"{path} cannot be written: {reason}. Nothing was written.") from error


def _may_be_meant(entry: os.DirEntry[str], begun: str, endings: frozenset[str] | None) -> bool:
    name = entry.name
    if not name.casefold().startswith(begun) or not name.isprintable():
        return False
    if not begun and name.startswith(_NOT_OFFERED_UNASKED):
        return False
    return endings is None or Path(name).suffix.lower() in endings or _is_folder(entry)


def _name(entry: os.DirEntry[str]) -> str:
    return f"{entry.name}/" if _is_folder(entry) else entry.name


def _is_folder(path: Path | os.DirEntry[str]) -> bool:
    try:
        return path.is_dir()
    except OSError:
        # The error is reported when the file is written.
        return False
