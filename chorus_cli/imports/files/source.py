"""The interface of an import format, access to the files of an archive or a folder, and the values in a JSON file.

JSON is read piece by piece: lines, the items of an array, or one object over many lines.
"""

from __future__ import annotations

import bisect
import codecs
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import cached_property, partial
from itertools import islice, pairwise, takewhile
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, ParamSpec

from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.assembly import FileFacts
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Skipped
from chorus_cli.storage.files import read_within

_Given = ParamSpec("_Given")


class Source(NamedTuple):
    """A file or a folder of another program. One worker thread reads it.

    ``conversations`` yields each conversation, or a ``Skipped`` in place of an unreadable one. ``bytes_of`` returns the
    bytes of a file that a message only names, ``None`` if the export lacks them. ``close`` closes open files.
    """

    conversations: Callable[[], Iterator[ForeignConversation | Skipped]]
    bytes_of: Callable[[ForeignFile], bytes | None] = lambda _file: None
    close: Callable[[], None] = ExitStack().close


class Format(NamedTuple):
    """An import format. For the user, ``title`` names the format and ``files`` lists its files.

    ``opened`` returns the source of a file or a folder, ``None`` if the file or the folder has another format.
    """

    title: str
    files: str
    opened: Callable[[Opening], Source | None]


_LOOKED_AT_FILES, _LOOKED_AT_VALUES = 5, 20
_CONVERSATIONS = re.compile(r"conversations(?:-(\d{1,9}))?\.json")

_MOST_ENTRIES = limits.IMPORTED_ENTRIES.most
_HIGHEST_RATIO = 250
"""The largest factor by which an entry may grow when it is unpacked; a usual factor for text is 5, a rare one 50."""
_LARGEST_FILE = limits.IMPORTED_ENTRY.most

_ENCRYPTED = 1
_ALWAYS_SMALL = 1 << 24
_ZIP_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06")
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


@dataclass
class Container:
    """The files of an export by their names. A name in a message is only looked up among these, never opened as a path.

    ``listed`` returns the names, with slashes between their parts. ``opened`` opens the file with a listed name.
    """

    listed: Callable[[], Iterable[str]]
    opened: Callable[[str], AbstractContextManager[IO[bytes]]]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the files."""
        return tuple(self.listed())

    def bytes_of(self, id_: str) -> bytes | None:
        """Return the bytes of the file whose bare name is ``id_``, or begins with ``id_`` and a sign such as a dot.

        Return ``None`` if no file has that name, or if the file is empty, too large or cannot be read.
        """
        listed = self._by_last_part if id_ else []
        for last_part, name in listed[bisect.bisect_left(listed, (id_, "")) :]:
            if not last_part.startswith(id_):
                break
            if not last_part[len(id_) : len(id_) + 1].isalnum():
                with suppress(ImportFormatError), self.opened(name) as file:
                    data = file.read(_LARGEST_FILE + 1)
                    return data if 0 < len(data) <= _LARGEST_FILE else None
        return None

    def values(self, name: str) -> Iterator[object]:
        """Yield the values in the JSON file with a listed name, and a ``Skipped`` where the file cannot be read."""
        try:
            with self.opened(name) as file:
                yield from json_items(file)
        except ImportFormatError as error:
            yield Skipped(str(error))

    @cached_property
    def _by_last_part(self) -> list[tuple[str, str]]:
        return sorted((name.rpartition("/")[2], name) for name in self.names)


@dataclass
class Opening:
    """A file or a folder whose format is not known yet. ``beginning`` has the first bytes of a file, none for a folder.

    ``zone`` is for times without a zone (``None``: the system's). ``resources`` closes the files that a format opens.
    """

    path: Path
    beginning: bytes
    zone: tzinfo | None = None
    resources: ExitStack = field(default_factory=ExitStack)

    @property
    def is_archive(self) -> bool:
        """Whether the file is a zip archive."""
        return self.beginning.startswith(_ZIP_BEGINNINGS)

    @cached_property
    def container(self) -> Container:
        """The files in the archive or the folder; for any other file, the files beside it."""
        if self.is_archive:
            return archive(self.path, self.resources)
        return folder(self.path.parent if self.beginning else self.path)

    def values(self) -> Iterator[tuple[Iterator[object], FileFacts]]:
        """Yield the values of each JSON file, and facts about the file."""
        if self.beginning and not self.is_archive:
            yield values_of(self.path, self.beginning), FileFacts(self.path.stem, self.zone)
            return
        for name in self.names:
            yield self.container.values(name), FileFacts(Path(name).stem, self.zone)

    @cached_property
    def first_values(self) -> Sequence[object]:
        """The first values in the first JSON files, by which a format is recognised."""
        files = islice(self.values(), _LOOKED_AT_FILES)
        return [value for found, _ in files for value in islice(found, _LOOKED_AT_VALUES)]

    @cached_property
    def names(self) -> Sequence[str]:
        """The files such as ``conversations-2.json``, sorted by number; if an archive has none, all JSON files."""
        own = takewhile(lambda file: file.parent == self.path, files_below(self.path))
        names = self.container.names if self.is_archive else [each.name for each in own]
        matches = ((_CONVERSATIONS.fullmatch(name.rpartition("/")[2]), name) for name in names)
        found = sorted((int(match[1] or -1), name) for match, name in matches if match)
        others = (name for name in names if self.is_archive and name.endswith(".json"))
        return [name for _, name in found] or [*others]


def archive(
    path: Path, resources: ExitStack, most_entries: int = _MOST_ENTRIES, most_bytes: int = limits.IMPORTED_ARCHIVE.most
) -> Container:
    """Open a zip archive, which ``resources`` then closes; refuse a damaged, locked or far too large archive."""
    try:
        zipped = resources.enter_context(zipfile.ZipFile(path))
    except _UNREADABLE as error:
        raise ImportFormatError(f"{path} is a damaged archive: {error}.") from error
    entries = zipped.infolist()
    if problem := _problem(entries, most_entries, most_bytes):
        raise ImportFormatError(f"{path} {problem}.")
    return Container(lambda: (entry.filename for entry in entries if not entry.is_dir()), partial(_entry, zipped))


def folder(path: Path) -> Container:
    """Return the files below a folder, except links and hidden files, which no name in an export may reach."""
    files = islice(files_below(path, is_export=True), _MOST_ENTRIES)
    return Container(lambda: (file.relative_to(path).as_posix() for file in files), lambda name: opened(path / name))


def or_skipped(
    read: Callable[_Given, ForeignConversation], *given: _Given.args, **named: _Given.kwargs
) -> ForeignConversation | Skipped:
    """Read a conversation, or return the reason why it cannot be read."""
    try:
        return read(*given, **named)
    except ImportFormatError as error:
        return Skipped(str(error))


@contextmanager
def _entry(zipped: zipfile.ZipFile, name: str) -> Iterator[IO[bytes]]:
    """Open an entry of an archive. Refuse it if its stated size is far too large; never unpack more than this size."""
    entry = zipped.getinfo(name)
    if entry.file_size > max(_ALWAYS_SMALL, entry.compress_size * _HIGHEST_RATIO):
        raise ImportFormatError(f"file of an archive that unpacks to more than {_HIGHEST_RATIO} times its size")
    try:
        with zipped.open(entry) as file:
            yield file
    except _UNREADABLE as error:
        raise ImportFormatError("file that is damaged") from error


def _problem(entries: Sequence[zipfile.ZipInfo], most_entries: int, most_bytes: int) -> str:
    if len(entries) > most_entries:
        return f"has more than {most_entries:,} files"
    if sum(entry.file_size for entry in entries) > most_bytes:
        return f"is larger than {most_bytes:,} bytes when it is unpacked"
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        return "is locked by a password: unpack it, and import the folder"
    return ""


def files_below(folder: Path, *, is_export: bool = False) -> Iterator[Path]:
    """Yield the files below a folder, its own files first. With ``is_export``, leave out links and hidden files.

    A file that reports a size of 0 is left out: files in /proc report that size, and some of these never end.
    """
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not (is_export and name.startswith(".")))
        for path in (Path(where, name) for name in sorted(names) if not (is_export and name.startswith("."))):
            with suppress(OSError):
                found = path.lstat() if is_export else path.stat()
                if stat.S_ISREG(found.st_mode) and found.st_size:
                    yield path


NOT_JSON = "file that is not JSON"

_LEAST_READ = 1 << 20
_MOST_READ = 1 << 23

_BLANKS = re.compile(r"[ \t\r\n,]*")
_BROKEN = "conversation that is too long or not valid JSON, with the rest of its file"
# A control character within a string is no reason to lose a conversation.
_DECODER = json.JSONDecoder(strict=False)


def json_items(file: IO[bytes], largest: int = limits.IMPORTED_CONVERSATION.most) -> Iterator[object]:
    """Yield the items of an array, or the single object of a file; ``Skipped`` where the JSON is broken."""
    text = _Text(file, largest)
    first = text.next_sign()
    if first not in {"[", "{"}:
        raise ImportFormatError(NOT_JSON)
    text.position += first == "["
    while (sign := text.next_sign()) not in {"", "]"}:
        yield (item := text.item())
        if isinstance(item, Skipped):
            return
        if first == "{":
            break
    if not sign:
        yield Skipped("file that is cut off")
    text.position += sign == "]"
    if sign and text.next_sign():
        yield Skipped("text after the end of the JSON in its file")


class _Text:
    """The part of a file that is in memory, and the ``position`` in this part, in characters."""

    def __init__(self, file: IO[bytes], largest: int) -> None:
        self.position = 0
        self._buffer = ""
        self._largest = largest
        self._file = file
        self._is_at_end = False
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")

    def next_sign(self) -> str:
        """Move over blanks and commas, and return the character after them, ``""`` at the end of the file."""
        while True:
            found = _BLANKS.match(self._buffer, self.position)
            self.position = found.end() if found else self.position
            if self.position < len(self._buffer):
                return self._buffer[self.position]
            if not self._read_on():
                return ""

    def item(self) -> object:
        """Return the value at the position and move behind it; if it is incomplete, read more of the file first."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self.position)
            except (ValueError, RecursionError) as error:
                if self._is_at_end or not isinstance(error, json.JSONDecodeError):
                    return Skipped(_BROKEN)
            else:
                # A number at the end of the buffer may go on in the file.
                if end < len(self._buffer) or self._is_at_end:
                    self.position = end
                    return value
            if len(self._buffer) - self.position > self._largest:
                return Skipped(_BROKEN)
            self._read_on()

    def _read_on(self) -> bool:
        """Drop the text before the position and read the next part of the file; return whether there was one."""
        self._buffer, self.position = self._buffer[self.position :], 0
        wanted = min(max(len(self._buffer), _LEAST_READ), _MOST_READ)
        data = self._file.read(wanted)
        self._buffer += self._decoder.decode(data, final=not data)
        self._is_at_end = not data
        return bool(data)


_CHUNK_BYTES = 1 << 20


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading; an ``OSError`` becomes an ``ImportFormatError``."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise ImportFormatError(f"{path} cannot be read: {error.strerror}.") from error


def values_in(path: Path, longest: int = limits.IMPORTED_LINE.most) -> Iterator[object]:
    """Yield the value in each line, ``None`` for a line that is too long or not JSON; leave out empty lines."""
    with opened(path) as file:
        while line := file.readline(longest):
            if len(line) == longest and not line.endswith(b"\n"):
                while (rest := file.readline(_CHUNK_BYTES)) and not rest.endswith(b"\n"):
                    pass
                yield None
            elif line.strip():
                yield parsed(line)


def values_of(path: Path, beginning: bytes) -> Iterator[object]:
    """Yield the values of a file with this beginning: one value in each line, the items of an array, or one object."""
    text = beginning.removeprefix(codecs.BOM_UTF8).lstrip()
    lines = [line for line in map(bytes.strip, text.split(b"\n")) if line]
    # Within one value over many lines, a line with a whole object or list follows a bracket, a comma or a colon.
    alone = (parsed(line) for before, line in pairwise((b"", *lines)) if not before.endswith((b"[", b",", b":")))
    # The first line may be longer than the beginning.
    if any(isinstance(each, dict | list) for each in alone) if len(lines) > 1 else text.startswith(b"{"):
        yield from values_in(path)
    elif text.startswith((b"{", b"[")):
        with opened(path) as file:
            yield from json_items(file)


def parsed(line: bytes) -> object:
    """Return the value in a line, ``None`` if the line is not JSON."""
    return values.parsed(line.decode("utf-8-sig", "replace"))


def whole_text(path: Path) -> str:
    """Return the text of a file, with replacement characters for bytes that are not UTF-8."""
    try:
        return read_within(path, limits.IMPORTED_FILE).decode("utf-8-sig", "replace")
    except OSError as error:
        raise ImportFormatError(f"{path} cannot be read: {error.strerror}.") from error
