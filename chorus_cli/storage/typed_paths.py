r"""Paths as typed or dropped on the terminal: bare, quoted, with backslashes before blanks, or an address of a file.

The bare reading comes first: in a line without quoting ``my export.zip`` is one name, blanks and all.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from chorus_cli.core.errors import CommandError

_WORD = re.compile(r""""[^"]*"(?!\S)|'[^']*'(?!\S)|(?:\\.|[^\s\\]|\\$)+""")
_ESCAPED = re.compile(r"\\(.)")
_SHORTEST_QUOTED = 2


def typed_path(typed: str) -> Path:
    """Return the path that a whole text names; its own reading with quotes and backslashes is taken if that exists.

    Raises:
        CommandError: there is no home folder for ``~``.
    """
    return _expanded(bare(typed))


def typed_paths(typed: str) -> list[Path]:
    """Return the paths that a text names: the whole text if it is one path, or else each word, which may be quoted.

    Raises:
        CommandError: there is no home folder for ``~``.
    """
    whole = typed_path(typed)
    return [whole] if _exists(whole) else [typed_path(word) for word in _WORD.findall(typed)]


def bare(typed: str) -> str:
    """Return a path without its quotes and backslashes, unless a file has them in its name."""
    if _exists(_expanded(typed)):
        return typed
    if len(typed) >= _SHORTEST_QUOTED and typed[0] == typed[-1] and typed[0] in "'\"":
        return typed[1:-1]
    if typed.startswith("file://"):
        return unquote(urlsplit(typed).path)
    return _ESCAPED.sub(r"\1", typed)


def _expanded(typed: str) -> Path:
    try:
        return Path(typed).expanduser()
    except RuntimeError:
        raise CommandError(f"There is no home folder for {typed}.") from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False
