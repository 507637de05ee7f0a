r"""Reads and completes paths that are typed or dropped on the terminal, and writes exports to such paths.

A path may be bare, in quotes, with backslashes before blanks, or a ``file://`` address. If a file has the whole text
as its name, the text is read as a bare path: ``my export.zip`` is then one name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from chorus_cli.core.errors import CommandError, OutputError
from chorus_cli.core.text.phrases import enumerated
from chorus_cli.storage.files import write_atomically
from chorus_cli.storage.permissions import is_there

_WORD = re.compile(r""""[^"]*"(?!\S)|'[^']*'(?!\S)|(?:\\.|[^\s\\]|\\$)+""")
_ESCAPED = re.compile(r"\\(.)")
_SPECIAL = re.compile(r"""([\s\\"'])""")
_SHORTEST_QUOTED = 2
_WRITTEN = frozenset({".md", ".markdown", ".json"})
# Completions are computed after each key press, so these limits keep them fast.
_MOST_LOOKED_AT = 4_000
_MOST_OFFERED = 100
# Names with these beginnings are offered only once the beginning is typed: they are hidden or read differently.
_NOT_OFFERED_UNASKED = (".", "~", " ")


def typed_path(typed: str) -> Path:
    """Return the path that the whole text names; quotes and backslashes stay only if a file has them in its name."""
    return _expanded(bare(typed))


def typed_paths(typed: str) -> list[Path]:
    """Return the paths in a text: the whole text if such a path exists, or else each word, which may be quoted."""
    whole = typed_path(typed)
    return [whole] if is_there(whole) else [typed_path(word) for word in _WORD.findall(typed)]


def bare(typed: str) -> str:
    """Return a typed path without its quotes, backslashes or ``file://``, unless a file has them in its name."""
    if is_there(_expanded(typed)):
        return typed
    if len(typed) >= _SHORTEST_QUOTED and typed[0] == typed[-1] and typed[0] in "'\"":
        return typed[1:-1]
    if typed.startswith("file://"):
        return unquote(urlsplit(typed).path)
    return _ESCAPED.sub(r"\1", typed)


def escaped(words: Sequence[str]) -> str:
    """Write paths so that `typed_paths` reads them back."""
    return " ".join(_SPECIAL.sub(r"\\\1", word) for word in words)


def _expanded(typed: str) -> Path:
    try:
        return Path(typed).expanduser()
    except RuntimeError:
        raise CommandError(f"There is no home folder for {typed}.") from None


def file_for(typed: str, new_name: str, endings: frozenset[str] = _WRITTEN) -> Path:
    """Return the typed file, with the ending of ``new_name`` if it has none, or ``new_name`` in a typed folder."""
    path = typed_path(typed)
    if bare(typed).endswith("/") or _is_folder(path):
        return path / new_name
    if not path.suffix:
        return path.with_name(path.name + Path(new_name).suffix)
    if path.suffix.lower() not in endings:
        possible = enumerated(sorted(endings), "or")
        raise CommandError(f"{path.name} cannot end in {path.suffix}: write {possible}.")
    return path


def offered(typed: str, endings: frozenset[str] | None = _WRITTEN) -> list[str]:
    """Return the completions of a path: folders with a slash, and files with one of ``endings`` (``None``: any file).

    A folder that cannot be read yields no completions, and a very large folder yields only some.
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
    """Write ``path`` whole, or raise `OutputError`; unless ``replace``, raise `FileExistsError` if it exists."""
    try:
        if path.exists() and not path.is_file():
            raise OutputError(f"{path} is not a regular file, so nothing was written.")
        with ExitStack() as taken:
            if not replace:
                # An empty file takes the name first, so that no file of another program can be overwritten.
                path.touch(mode=0o600, exist_ok=False)
                taken.callback(path.unlink, missing_ok=True)
            write_atomically(path, text)
            taken.pop_all()
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
