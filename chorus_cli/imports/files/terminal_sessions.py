"""Sessions of programs for the terminal, and chats of SillyTavern, each in a file of its own."""

from __future__ import annotations

from codecs import BOM_UTF8
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.json_exports import first_values, value_in, values_in
from chorus_cli.imports.files.source import Format, Opening, Source
from chorus_cli.imports.rules import claude_code, codex, gemini_cli, qwen_code, silly_tavern
from chorus_cli.imports.rules.conversation import Skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from chorus_cli.imports.rules.conversation import ForeignConversation

_Reader: TypeAlias = "Callable[[Iterable[object], str], ForeignConversation]"

_LINE_OF_CODEX = (b'"session_meta"', b'"payload"')
_HEAD_OF_GEMINI_CLI = (b'"sessionId"', b'"projectHash"')
_HEAD_BYTES = 512
"""Older versions of Gemini CLI write one object over many lines, and these names first."""


class _Form(NamedTuple):
    """The form of a program whose lines tell it: the test of a line, the names in a very long one, and the reader."""

    is_line: Callable[[object], bool]
    names: tuple[bytes, ...]
    read: _Reader


class _Session(Source):
    """A file with one session, read by ``reader`` from its lines and the name of the file."""

    def __init__(self, path: Path, lines: Iterator[object], reader: _Reader) -> None:
        super().__init__()
        self._name = path.stem
        self._lines = lines
        self._reader = reader

    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the session."""
        try:
            yield self._reader(self._lines, self._name)
        except ImportFormatError as error:
            yield Skipped(str(error))


def _by_line(form: _Form, opening: Opening) -> Source | None:
    beginning = opening.beginning
    if not (any(map(form.is_line, first_values(beginning))) or _is_one_line(beginning, form.names)):
        return None
    return _Session(opening.path, values_in(opening.path), form.read)


def _codex(opening: Opening) -> Source | None:
    beginning = opening.beginning
    if not (codex.is_beginning(first_values(beginning)) or _is_one_line(beginning, _LINE_OF_CODEX)):
        return None
    return _Session(opening.path, values_in(opening.path), codex.conversation_of)


def _gemini_cli(opening: Opening) -> Source | None:
    if any(map(gemini_cli.is_beginning, first_values(opening.beginning, 1))):
        return _Session(opening.path, values_in(opening.path), gemini_cli.conversation_of)
    head = opening.beginning[:_HEAD_BYTES]
    if head.lstrip().startswith(b"{") and all(name in head for name in _HEAD_OF_GEMINI_CLI):
        return _Session(opening.path, value_in(opening.path), gemini_cli.conversation_of)
    return None


def _is_one_line(beginning: bytes, names: tuple[bytes, ...]) -> bool:
    """Return whether a file begins with one line, very long or the only one, that has these names in it."""
    return (
        beginning.removeprefix(BOM_UTF8).startswith(b"{")
        and b"\n" not in beginning
        and all(name in beginning for name in names)
    )


QWEN_CODE = Format(
    qwen_code.SOURCE,
    "sessions of Qwen Code",
    "~/.qwen/projects, a project in it or a session",
    partial(
        _by_line, _Form(qwen_code.is_line, (b'"parentUuid"', b'"sessionId"', b'"parts"'), qwen_code.conversation_of)
    ),
)
CLAUDE_CODE = Format(
    claude_code.SOURCE,
    "sessions of Claude Code",
    "~/.claude/projects, a project in it or a session",
    partial(
        _by_line,
        _Form(claude_code.is_line, (b'"parentUuid"', b'"sessionId"', b'"isSidechain"'), claude_code.conversation_of),
    ),
)
CODEX = Format("codex", "sessions of Codex CLI", "~/.codex/sessions, a folder in it or a session", _codex)
GEMINI_CLI = Format("gemini-cli", "sessions of Gemini CLI", "~/.gemini/tmp, a folder in it or a session", _gemini_cli)


_LONGEST_LINE = limits.IMPORTED_LINE.most
_MOST_BYTES = limits.IMPORTED_FILE.most
_SIGNS = (b'"chat_metadata"', b'"character_name"')


class _Chat(Source):
    def __init__(self, opening: Opening) -> None:
        super().__init__()
        self._path = opening.path
        self._zone = opening.zone

    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the chat.

        Raises:
            ImportFormatError: the file cannot be read, or is too large.
        """
        with suppress(OSError):
            # One that is gone is refused by its reader.
            if self._path.stat().st_size > _MOST_BYTES:
                raise ImportFormatError(f"{self._path} is larger than {_MOST_BYTES >> 20} MB.")
        header, *lines = values_in(self._path, _LONGEST_LINE)
        try:
            yield silly_tavern.conversation_of(header, lines, name=self._path.stem, zone=self._zone)
        except ImportFormatError as error:
            yield Skipped(str(error))

    def header(self) -> object:
        """Return the first line, ``None`` if it cannot be read."""
        return next(values_in(self._path, _LONGEST_LINE), None)


def _opened(opening: Opening) -> Source | None:
    if not any(sign in opening.beginning for sign in _SIGNS):
        return None
    chat = _Chat(opening)
    return chat if silly_tavern.is_header(chat.header()) else None


SILLY_TAVERN = Format(silly_tavern.SOURCE, "SillyTavern's chats", "a chat's .jsonl file, or a folder of them", _opened)
