"""The interface of a format, and the files of an archive or a folder."""

from __future__ import annotations

import bisect
import os
import zipfile
import zlib
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, ParamSpec

from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.json_values import values_of
from chorus_cli.imports.rules.conversation import Skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from datetime import tzinfo

    from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile

_Given = ParamSpec("_Given")


class Source(NamedTuple):
    """A file or a folder of another program, read by one thread and never on the event loop.

    ``conversations`` yields them one by one; one that cannot be read is skipped. ``bytes_of`` returns the bytes of a
    file that a message only names, ``None`` if the export does not have them. ``close`` closes what is open.
    """

    conversations: Callable[[], Iterator[ForeignConversation | Skipped]]
    bytes_of: Callable[[ForeignFile], bytes | None] = lambda _file: None
    close: Callable[[], None] = ExitStack().close


@dataclass
class Opening:
    """A file to be recognised by its ``beginning``, or a folder, whose beginning is empty.

    ``zone`` is that of times without one, ``None`` being the system's.
    """

    path: Path
    beginning: bytes
    zone: tzinfo | None = None

    @property
    def values(self) -> Iterator[object]:
        """The values in a file of JSON."""
        return values_of(self.path, self.beginning)

    @cached_property
    def first_values(self) -> Sequence[object]:
        """The first values in a file of JSON, by which its format is recognised."""
        with closing(self.values) as found:
            return list(islice(found, _LOOKED_AT))


class Format(NamedTuple):
    """A format: ``name`` for programs, as in the ``source`` of its conversations; ``title`` and ``files`` for people.

    ``opened`` returns the source of a file or folder, ``None`` if that is of another format.
    """

    name: str
    title: str
    files: str
    opened: Callable[[Opening], Source | None]


_LOOKED_AT = 20

_MOST_ENTRIES = limits.IMPORTED_ENTRIES.most
_MOST_BYTES = limits.IMPORTED_ARCHIVE.most
_HIGHEST_RATIO = 250
"""How many times its packed size an entry may have; text is packed to a fifth, rarely a fiftieth."""
_LARGEST_FILE = limits.IMPORTED_ENTRY.most

_ENCRYPTED = 1
_ALWAYS_SMALL = 1 << 24
_ZIP_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06")
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


@dataclass
class Container:
    """The files of an export, by their names; a name is a key alone, and no path is ever made of one.

    ``listed`` returns the names, with slashes between their parts, and ``opened`` opens the file of a name.
    """

    listed: Callable[[], Iterable[str]]
    opened: Callable[[str], AbstractContextManager[IO[bytes]]]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the files."""
        return tuple(self.listed())

    def bytes_of(self, id_: str) -> bytes | None:
        """Return the bytes of the file whose name's last part is ``id_`` or begins with it and a sign.

        ``None`` if there is none, or if it is too large or cannot be read.
        """
        at = bisect.bisect_left(self._by_last_part, (id_, ""))
        for last_part, name in self._by_last_part[at:] if id_ else ():
            if not last_part.startswith(id_):
                break
            if not last_part[len(id_) : len(id_) + 1].isalnum():
                return self._read(name)
        return None

    @cached_property
    def _by_last_part(self) -> list[tuple[str, str]]:
        return sorted((name.rpartition("/")[2], name) for name in self.names)

    def _read(self, name: str) -> bytes | None:
        try:
            with self.opened(name) as file:
                data = file.read(_LARGEST_FILE + 1)
        except ImportFormatError:
            return None
        return data if 0 < len(data) <= _LARGEST_FILE else None


def archive(
    path: Path, resources: ExitStack, most_entries: int = _MOST_ENTRIES, most_bytes: int = _MOST_BYTES
) -> Container:
    """Open a zip archive, which ``resources`` close."""
    try:
        opened = resources.enter_context(zipfile.ZipFile(path))
    except _UNREADABLE as error:
        raise ImportFormatError(f"{path} is a damaged archive: {error}.") from error
    entries = opened.infolist()
    if problem := _problem(entries, most_entries, most_bytes):
        resources.close()
        raise ImportFormatError(f"{path} {problem}.")
    return Container(lambda: (entry.filename for entry in entries if not entry.is_dir()), partial(_entry, opened))


def folder(path: Path) -> Container:
    """Return the regular files below a folder but for hidden ones; links are not followed."""
    return Container(lambda: islice(_names_below(path), _MOST_ENTRIES), partial(_file, path))


def or_skipped(
    read: Callable[_Given, ForeignConversation], *given: _Given.args, **named: _Given.kwargs
) -> ForeignConversation | Skipped:
    """Read a conversation, or return the reason why it cannot be read."""
    try:
        return read(*given, **named)
    except ImportFormatError as error:
        return Skipped(str(error))


def is_archive(beginning: bytes) -> bool:
    """Return whether a file that begins so is a zip archive."""
    return beginning.startswith(_ZIP_BEGINNINGS)


@contextmanager
def _entry(opened: zipfile.ZipFile, name: str) -> Iterator[IO[bytes]]:
    """Open an entry, of which no more is unpacked than it declares."""
    entry = opened.getinfo(name)
    if _is_bomb(entry):
        raise ImportFormatError(f"file of an archive that is packed more than {_HIGHEST_RATIO} times")
    try:
        with opened.open(entry) as file:
            yield file
    except _UNREADABLE as error:
        raise ImportFormatError("file that is damaged") from error


@contextmanager
def _file(path: Path, name: str) -> Iterator[IO[bytes]]:
    try:
        with (path / name).open("rb") as file:
            yield file
    except OSError as error:
        raise ImportFormatError("file that cannot be read") from error


def _problem(entries: Sequence[zipfile.ZipInfo], most_entries: int, most_bytes: int) -> str:
    """Return the reason why an archive is not read, empty if there is none."""
    if len(entries) > most_entries:
        return f"has more than {most_entries:,} files"
    if sum(entry.file_size for entry in entries) > most_bytes:
        return f"has more than {most_bytes:,} bytes when it is unpacked"
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        return "is locked by a password: unpack it, and import the folder"
    return ""


def _is_bomb(entry: zipfile.ZipInfo) -> bool:
    return entry.file_size > max(_ALWAYS_SMALL, entry.compress_size * _HIGHEST_RATIO)


def _names_below(path: Path) -> Iterator[str]:
    for where, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            file = Path(where, name)
            if not name.startswith(".") and not file.is_symlink() and file.is_file():
                yield file.relative_to(path).as_posix()
