"""Exports as JSON arrays of conversations: in a zip archive, an unpacked folder, or one file."""

from __future__ import annotations

import codecs
import re
from contextlib import closing
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.archive import Archive, Folder, is_archive, reading
from chorus_cli.imports.files.json_arrays import json_items
from chorus_cli.imports.files.source import Format, Source
from chorus_cli.imports.rules import chatgpt, claude_ai, open_webui
from chorus_cli.imports.rules.conversation import Skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    from chorus_cli.imports.files.archive import Container
    from chorus_cli.imports.files.source import Opening
    from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile

_CONVERSATIONS = re.compile(r"conversations(?:-(\d{1,9}))?\.json")
_LOOKED_AT = 5
"""The number of items, and of files, among which the format is recognised."""


class _Form(NamedTuple):
    """The form of one program's conversations, and the reader of one."""

    recognises: Callable[[object], bool]
    read: Callable[[object], ForeignConversation]


class JsonExport(Source):
    """An export: the conversations are in the files ``names`` of the container, the files of messages in others."""

    def __init__(self, container: Container, names: Sequence[str], form: _Form) -> None:
        super().__init__()
        self.resources.callback(container.close)
        self._container = container
        self._names = names
        self._form = form

    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the conversations, file by file; one file that is damaged does not keep the others away."""
        for name in self._names:
            try:
                yield from map(self._read, _values(self._container, name))
            except ImportFormatError as error:
                yield Skipped(str(error))

    def recognises(self) -> bool:
        """Return whether one of the first items has the form."""
        for name in self._names[:_LOOKED_AT]:
            try:
                with closing(_values(self._container, name)) as found:
                    if any(map(self._form.recognises, islice(found, _LOOKED_AT))):
                        return True
            except ImportFormatError:
                continue
        return False

    def problem(self) -> str:
        """Return the reason why its files cannot be unpacked, or have no items; empty if neither is so."""
        reason = "it has no conversations"
        for name in self._names:
            try:
                self._container.opened(name).close()
            except ImportFormatError as error:
                reason = str(error)
                continue
            try:
                with closing(_values(self._container, name)) as found:
                    if any(True for _ in found):
                        return ""
            except ImportFormatError:
                return ""
        return reason

    def bytes_of(self, file: ForeignFile) -> bytes | None:
        """Return the bytes of a file, whose name in the export begins with its id."""
        if file.data is not None:
            return file.data
        name = self._container.named_after(file.entry)
        return None if name is None else self._container.bytes_of(name)

    def _read(self, value: object) -> ForeignConversation | Skipped:
        if isinstance(value, Skipped):
            return value
        if not self._form.recognises(value):
            return Skipped("entry that is no conversation")
        try:
            return self._form.read(value)
        except ImportFormatError as error:
            return Skipped(str(error))


def _values(container: Container, name: str) -> Generator[object, None, None]:
    with reading(), container.opened(name) as file:
        yield from json_items(file)


def _opened(form: _Form, opening: Opening) -> Source | None:
    container, names = _located(opening)
    if container is None:
        return None
    source = JsonExport(container, names, form)
    if names and source.recognises():
        return source
    problem = source.problem() if names and is_archive(opening.beginning) else ""
    source.close()
    if problem:
        raise ImportFormatError(f"Nothing can be imported from {opening.path}: {problem}.")
    return None


def _located(opening: Opening) -> tuple[Container | None, Sequence[str]]:
    """Return the container of an export, and the names of the files that may hold its conversations."""
    if is_archive(opening.beginning):
        archive = Archive(opening.path)
        return archive, _names_of_conversations(archive.names)
    if opening.beginning:
        is_json = opening.beginning.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in {b"[", b"{"}
        return (Folder(opening.path.parent), (opening.path.name,)) if is_json else (None, ())
    names = _names_of_conversations(_files_in(opening.path)) if opening.path.is_dir() else ()
    return (Folder(opening.path), names) if names and _CONVERSATIONS.fullmatch(names[0]) else (None, ())


def _files_in(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir() if path.is_file()]
    except OSError:
        return []


def _names_of_conversations(names: Sequence[str]) -> list[str]:
    """Return the shards in their order, or in an archive without those all files of JSON."""
    found = [(int(match[1] or -1), name) for name in names if (match := _CONVERSATIONS.fullmatch(_last_part(name)))]
    return [name for _, name in sorted(found)] or [name for name in names if name.endswith(".json")]


def _last_part(name: str) -> str:
    return name.rpartition("/")[2]


def _format(name: str, title: str, files: str, form: _Form) -> Format:
    return Format(name, title, files, partial(_opened, form))


CHATGPT = _format(
    chatgpt.SOURCE,
    "ChatGPT's data export",
    "the zip, its unpacked folder, or one of its conversations files",
    _Form(chatgpt.is_conversation, chatgpt.conversation_of),
)
CLAUDE_AI = _format(
    claude_ai.SOURCE,
    "Claude.ai's data export",
    "the zip or its conversations.json",
    _Form(claude_ai.is_conversation, claude_ai.conversation_of),
)
OPEN_WEBUI = _format(
    open_webui.SOURCE,
    "Open WebUI's exported chats",
    "the JSON file of one chat or of all",
    _Form(open_webui.is_conversation, open_webui.conversation_of),
)
