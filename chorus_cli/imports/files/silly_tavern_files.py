"""Chats of SillyTavern: one file each, with a line for the chat and one for each message."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.json_lines import values_in
from chorus_cli.imports.files.source import Format, Source
from chorus_cli.imports.rules import silly_tavern
from chorus_cli.imports.rules.conversation import Skipped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chorus_cli.imports.files.source import Opening
    from chorus_cli.imports.rules.conversation import ForeignConversation

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
