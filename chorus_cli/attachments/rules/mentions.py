r"""Files that a message names: ``@photo.png``, ``@"my photo.png"``, ``@my\ photo.png``; ``\@`` is an at sign.

A mention begins a word. The model is sent the text with its mentions; only the backslash of ``\@`` is removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

_BEFORE = r"(?<![^\s(\[{'\"])"
_QUOTED = r'"(?P<double>[^"\n]+)"|\'(?P<single>[^\'\n]+)\''
_BARE = r"(?P<bare>(?:\\.|[^\s\\])+)"
_MENTION = re.compile(rf"{_BEFORE}@(?:{_QUOTED}|{_BARE})")
_AT = re.compile(rf"{_BEFORE}@")
_ESCAPED_AT = re.compile(rf"{_BEFORE}\\@")
_ESCAPED = re.compile(r"\\(.)")
_TO_ESCAPE = re.compile(r"([\s\\'\"])")
_BEGUN = re.compile(rf'{_BEFORE}@(?:"(?P<double>[^"\n]*)|(?P<bare>(?:\\.|[^\s\\"])*))\Z')
_LONGEST_BEGUN = 2_000
_LONGEST, _MOST_CLOSING = 10_000, 16
"""The most characters of a path without quotes, and of the punctuation that may follow it in a sentence."""
_CLOSING = ".,;:!?…)]}'\""
_OF_CODE = frozenset("()[]{}<>=\"'`")
"""A word with one of these signs is taken for code, such as a decorator, and not for the name of a file."""
_ENDINGS = (
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif", ".svg", ".pdf"),
    *(".txt", ".md", ".markdown", ".rst", ".tex", ".log", ".csv", ".tsv", ".docx", ".xlsx", ".pptx", ".odt", ".zip"),
    *(".json", ".jsonl", ".jsonc", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".xml", ".html", ".css", ".sql", ".sh"),
    *(".py", ".js", ".ts", ".go", ".rs", ".c", ".h", ".cpp", ".java", ".rb"),
)
"""A word with one of these endings is taken for the name of a file."""
_BEGINNINGS = ("/", "./", "../", "~/")
"""A word with one of these beginnings is taken for a path; a slash elsewhere is often a package's: ``@types/node``."""


class Mentions(NamedTuple):
    """The text of a message as it is sent, and the paths of the files that it names, without repetitions."""

    text: str
    paths: tuple[str, ...]


def is_address(text: str) -> bool:
    """Return whether a text is the address of a file on the web."""
    return text.casefold().startswith(("http://", "https://"))


class Begun(NamedTuple):
    """A mention that is being typed: its path so far, its length in characters as typed, and whether it is quoted."""

    path: str
    length: int
    is_quoted: bool


def mentions(text: str, is_file: Callable[[str], bool]) -> Mentions:
    """Return ``text`` as it is sent, and the mentioned paths for which ``is_file`` holds."""
    paths: dict[str, None] = {}
    for candidates in _candidates(text):
        found = next(filter(is_file, candidates), None)
        paths |= {found: None} if found is not None else {}
    return Mentions(_ESCAPED_AT.sub("@", text), tuple(paths))


def is_resource(path: str, servers: Collection[str]) -> bool:
    """Return whether a path is a server's name, a colon and an address without punctuation at its end."""
    server, _, uri = path.partition(":")
    return bool(uri) and server in servers and path[-1] not in _CLOSING


def missing_files(text: str, is_file: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the paths that ``text`` mentions and for which ``is_file`` does not hold, without repetitions.

    A word counts as a path if it begins like a path or ends like a common kind of file, and if it is not code.
    """
    missing: dict[str, None] = {}
    for candidates in _candidates(text):
        path = candidates[-1]
        looks_like_path = path.startswith(_BEGINNINGS) or path.casefold().endswith(_ENDINGS)
        if looks_like_path and _OF_CODE.isdisjoint(path) and not any(map(is_file, candidates)):
            missing[path] = None
    return tuple(missing)


def escaped(text: str, typed: Collection[int] = ()) -> str:
    """Put a backslash before each at sign that could begin a mention, except at the positions ``typed``."""
    return _AT.sub(lambda match: "@" if match.start() in typed else r"\@", text)


def mention_of(path: str) -> str:
    """Return the mention of a path, with the quotes or backslashes that the path needs."""
    if not _TO_ESCAPE.search(path):
        return f"@{path}"
    return f'@"{path}"' if '"' not in path else "@" + _TO_ESCAPE.sub(r"\\\1", path)


def may_follow(text: str) -> bool:
    """Return whether a mention may follow a text directly."""
    return _AT.search(f"{text}@", len(text)) is not None


def begun_mention(before_cursor: str) -> Begun | None:
    """Return the unfinished mention that ends at the cursor, ``None`` if there is none or it is very long."""
    # Only the end is searched: this runs at each key press, and its time grows with the square of the at signs.
    found = _BEGUN.search(before_cursor, max(0, len(before_cursor) - _LONGEST_BEGUN))
    if found is None:
        return None
    quoted = found["double"]
    path = _ESCAPED.sub(r"\1", found["bare"]) if quoted is None else quoted
    return Begun(path, len(found[0]), quoted is not None)


def _candidates(text: str) -> Iterator[list[str]]:
    """Yield for each mention the paths that it may mean, the longest first."""
    for match in _MENTION.finditer(text):
        if match["bare"] is None:
            yield [match["double"] or match["single"]]
            continue
        bare = match["bare"]
        if len(bare) > _LONGEST:
            continue
        closing = min(len(bare) - 1, len(bare) - len(bare.rstrip(_CLOSING)), _MOST_CLOSING)
        yield [_ESCAPED.sub(r"\1", bare[: len(bare) - count]) for count in range(closing + 1)]
