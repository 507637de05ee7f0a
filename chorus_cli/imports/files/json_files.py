"""The sources of formats that are JSON: exports of many conversations, and files of lines with one each."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from contextlib import ExitStack, closing
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.json_values import NOT_JSON, first_values, json_items, value_in, values_in
from chorus_cli.imports.files.source import Format, Source, archive, folder, is_archive, reading
from chorus_cli.imports.rules.conversation import Skipped
from chorus_cli.imports.rules.forms import FileFacts

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from chorus_cli.imports.files.source import Container, Opening
    from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile
    from chorus_cli.imports.rules.forms import Items, Lines

_CONVERSATIONS = re.compile(r"conversations(?:-(\d{1,9}))?\.json")
_LOOKED_AT = 5
"""The number of items, and of files, among which the format is recognised."""


def items(form: Items) -> Format:
    """Return the format of exports."""
    return Format(form.name, form.title, form.files, partial(_export, form))


def lines(form: Lines) -> Format:
    """Return the format of files with one conversation each."""
    return Format(form.name, form.title, form.files, partial(_session, form))


class _Export(Source):
    """An export: the conversations are in the files ``names`` of the container, the files of messages in others."""

    def __init__(self, form: Items, container: Container, names: Sequence[str], resources: ExitStack) -> None:
        super().__init__()
        self.resources = resources
        self._form = form
        self._container = container
        self._names = names

    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the conversations, file by file; one file that is damaged does not keep the others away."""
        return (self._read(value) for name in self._names for value in _values(self._container, name))

    def bytes_of(self, file: ForeignFile) -> bytes | None:
        """Return the bytes of a file, whose name in the export begins with its id."""
        return self._container.bytes_of(file.entry) if file.data is None else file.data

    def _read(self, value: object) -> ForeignConversation | Skipped:
        if isinstance(value, Skipped):
            return value
        if not self._form.is_item(value):
            return Skipped("entry that is no conversation")
        try:
            return self._form.read(value)
        except ImportFormatError as error:
            return Skipped(str(error))


def _values(container: Container, name: str) -> Generator[object, None, None]:
    try:
        with reading(), container.opened(name) as file:
            yield from json_items(file)
    except ImportFormatError as error:
        yield Skipped(str(error))


def _export(form: Items, opening: Opening) -> Source | None:
    with ExitStack() as resources:
        container, names = _located(opening, resources)
        found = [value for name in names[:_LOOKED_AT] for value in _first_values(container, name)]
        if any(map(form.is_item, found)):
            return _Export(form, container, names, resources.pop_all())
    reasons = [value.reason for value in found if isinstance(value, Skipped) and value.reason != NOT_JSON]
    if names and is_archive(opening.beginning) and len(reasons) == len(found):
        reason = reasons[-1] if reasons else "it has no conversations"
        raise ImportFormatError(f"Nothing can be imported from {opening.path}: {reason}.")
    return None


def _first_values(container: Container, name: str) -> list[object]:
    with closing(_values(container, name)) as found:
        return list(islice(found, _LOOKED_AT))


def _located(opening: Opening, resources: ExitStack) -> tuple[Container, Sequence[str]]:
    """Return the container of an export, and the names of the files that may hold its conversations."""
    path = opening.path
    if is_archive(opening.beginning):
        container = archive(path, resources)
        return container, _names_of_conversations(container.names)
    if opening.beginning:
        is_json = opening.beginning.removeprefix(BOM_UTF8).lstrip().startswith((b"[", b"{"))
        return folder(path.parent), (path.name,) if is_json else ()
    names = _names_of_conversations(_files_in(path))
    return folder(path), names if names and _CONVERSATIONS.fullmatch(names[0]) else ()


def _files_in(path: Path) -> list[str]:
    try:
        return [each.name for each in path.iterdir() if each.is_file()]
    except OSError:
        return []


def _names_of_conversations(names: Sequence[str]) -> list[str]:
    """Return the shards in their order, or in an archive without those all files of JSON."""
    matches = ((_CONVERSATIONS.fullmatch(name.rpartition("/")[2]), name) for name in names)
    found = [(int(match[1] or -1), name) for match, name in matches if match]
    return [name for _, name in sorted(found)] or [name for name in names if name.endswith(".json")]


class _Session(Source):
    """A file with one conversation, read from its values."""

    def __init__(self, form: Lines, opening: Opening, values: Iterator[object]) -> None:
        super().__init__()
        self._form = form
        self._file = FileFacts(opening.path.stem, opening.zone)
        self._values = values

    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the conversation."""
        try:
            yield self._form.read(self._values, self._file)
        except ImportFormatError as error:
            yield Skipped(str(error))


def _session(form: Lines, opening: Opening) -> Source | None:
    beginning = opening.beginning.removeprefix(BOM_UTF8)
    first = first_values(beginning)
    if form.is_beginning(first):
        return _Session(form, opening, values_in(opening.path))
    is_whole_line = bool(first) and first[0] is not None
    if is_whole_line or not beginning.lstrip().startswith(b"{") or not all(name in beginning for name in form.names):
        return None
    return _Session(form, opening, value_in(opening.path) if b"\n" in beginning else values_in(opening.path))
