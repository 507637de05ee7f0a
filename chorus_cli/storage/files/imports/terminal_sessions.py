"""Sessions of other programs for the terminal, each in a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.imports import claude_code, codex
from chorus_cli.core.imports.conversation import Skipped
from chorus_cli.storage.files.imports.json_lines import first_values, values_in
from chorus_cli.storage.files.imports.source import Format, Opening, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from chorus_cli.core.imports.conversation import ForeignConversation


class _Session(Source):
    """A file with one session, read by ``reader`` from its lines and the name of the file."""

    def __init__(self, path: Path, reader: Callable[[Iterable[object], str], ForeignConversation]) -> None:
        super().__init__()
        self._path = path
        self._reader = reader

    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the session."""
        try:
            yield self._reader(values_in(self._path), self._path.stem)
        except ImportFormatError as error:
            yield Skipped(str(error))


def _claude_code(opening: Opening) -> Source | None:
    is_session = any(map(claude_code.is_line, first_values(opening.beginning))) or _begins_long(opening.beginning)
    return _Session(opening.path, claude_code.conversation_of) if is_session else None


def _codex(opening: Opening) -> Source | None:
    if not codex.is_beginning(first_values(opening.beginning)):
        return None
    return _Session(opening.path, codex.conversation_of)


def _begins_long(beginning: bytes) -> bool:
    """Return whether the first line is too long to be read as a whole, and Claude Code's."""
    names = (b'"parentUuid"', b'"sessionId"', b'"isSidechain"')
    return beginning.startswith(b"{") and b"\n" not in beginning and all(name in beginning for name in names)


CLAUDE_CODE = Format("claude-code", "sessions of Claude Code", "~/.claude/projects, a project in it or a session", _claude_code)
CODEX = Format("codex", "sessions of Codex CLI", "~/.codex/sessions, a folder in it or a session", _codex)
