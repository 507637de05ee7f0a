r"""Files that a message names: ``@photo.png``, ``@"my photo.png"``, ``@my\ photo.png``; ``\@`` is an at sign.

A mention begins a word. It stays in the text, as the model reads it there; only the backslash of ``\@`` goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

_BEFORE = r"(?<![^\s(\[{'\"])"
_QUOTED = r'"(?P<double>[^"\n]+)"|\'(?P<single>[^\'\n]+)\''
_BARE = r"(?P<bare>(?:\\.|[^\s\\])+)"
_MENTION = re.compile(rf"{_BEFORE}@(?:{_QUOTED}|{_BARE})")
_AT = re.compile(rf"{_BEFORE}@")
_ESCAPED_AT = re.compile(rf"{_BEFORE}\\@")
_ESCAPED = re.compile(r"\\(.)")
_TO_ESCAPE = re.compile(r"([\s\\'\"])")
_BEGUN = re.compile(rf'{_BEFORE}@(?:"(?P<double>[^"\n]*)|(?P<bare>(?:\\.|[^\s\\"])*))\Z')
_LONGEST, _MOST_CLOSING = 10_000, 16
"""The longest path without quotes, and the most signs after it that may belong to the sentence."""
_CLOSING = ".,;:!?…)]}'\""
_OF_CODE = frozenset("()[]{}<>=\"'`")
"""Signs in a word that is code, such as a decorator, rather than the name of a file."""
_ENDINGS = (
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif", ".svg", ".pdf"),
    *(".txt", ".md", ".markdown", ".rst", ".tex", ".log", ".csv", ".tsv", ".docx", ".xlsx", ".pptx", ".odt", ".zip"),
    *(".json", ".jsonl", ".jsonc", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".xml", ".html", ".css", ".sql", ".sh"),
    *(".py", ".js", ".ts", ".go", ".rs", ".c", ".h", ".cpp", ".java", ".rb"),
)
"""Endings of names by which a word is taken for a file's name."""
_BEGINNINGS = ("/", "./", "../", "~/")
"""Beginnings of paths; a slash elsewhere is often in the name of a package or a team, such as ``@types/node``."""


class Mentions(NamedTuple):
    """The text of a message as it is sent, and the paths of the files that it names, each once."""

    text: str
    paths: tuple[str, ...]


def is_address(text: str) -> bool:
    """Return whether a text is the address of a file on the web."""
    return text.casefold().startswith(("http://", "https://"))


class Begun(NamedTuple):
    """A mention that is being typed: the path so far, the length of its written form, and whether it is quoted."""

    path: str
    length: int
    is_quoted: bool


def mentions(text: str, is_file: Callable[[str], bool]) -> Mentions:
    """Return the files that ``text`` names, by paths for which ``is_file`` holds; other words are text."""
    paths: dict[str, None] = {}
    for candidates in _candidates(text):
        found = next(filter(is_file, candidates), None)
        paths |= {found: None} if found is not None else {}
    return Mentions(_ESCAPED_AT.sub("@", text), tuple(paths))


def missing_files(text: str, is_file: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the paths after the at signs of ``text`` for which ``is_file`` does not hold, each once.

    A word is taken for a path if it begins as one or has the ending of a common kind of file, and is not code.
    """
    missing: dict[str, None] = {}
    for candidates in _candidates(text):
        path = candidates[-1]
        looks_like_path = path.startswith(_BEGINNINGS) or path.casefold().endswith(_ENDINGS)
        if looks_like_path and _OF_CODE.isdisjoint(path) and not any(map(is_file, candidates)):
            missing[path] = None
    return tuple(missing)


def escaped(text: str, typed: Collection[int] = ()) -> str:
    """Return a text in which only the at signs at the positions ``typed`` can begin a mention.

    The others have backslashes, which `mentions` takes away again.
    """
    return _AT.sub(lambda match: "@" if match.start() in typed else r"\@", text)


def mention_of(path: str) -> str:
    """Return the mention of a path, quoted if it has to be."""
    if not _TO_ESCAPE.search(path):
        return f"@{path}"
    return f'@"{path}"' if '"' not in path else "@" + _TO_ESCAPE.sub(r"\\\1", path)


def begun_mention(before_cursor: str) -> Begun | None:
    """Return the mention that the text before the cursor ends with, ``None`` if it ends with none."""
    found = _BEGUN.search(before_cursor)
    if found is None:
        return None
    quoted = found["double"]
    path = _ESCAPED.sub(r"\1", found["bare"]) if quoted is None else quoted
    return Begun(path, len(found[0]), quoted is not None)


def dropped_path(pasted: str) -> str | None:
    """Return the path that a pasted text may be as a whole, as terminals paste a file that is dropped on them.

    They quote it, put backslashes before blanks, or paste an address of a file.
    """
    text = pasted.strip()
    if not text or "\n" in text:
        return None
    if text[0] == text[-1] and text[0] in "'\"" and len(text) > 1:
        return text[1:-1]
    if text.startswith("file://"):
        return unquote(urlsplit(text).path)
    return _ESCAPED.sub(r"\1", text) if text.startswith(("/", "~/")) else None


def _candidates(text: str) -> Iterator[list[str]]:
    """Yield the paths that each mention may mean, the longest first."""
    for match in _MENTION.finditer(text):
        if match["bare"] is None:
            yield [match["double"] or match["single"]]
            continue
        bare = match["bare"]
        if len(bare) > _LONGEST:
            continue
        closing = min(len(bare) - 1, len(bare) - len(bare.rstrip(_CLOSING)), _MOST_CLOSING)
        yield [_ESCAPED.sub(r"\1", bare[: len(bare) - count]) for count in range(closing + 1)]
