"""The interface of a format's reader, and the files of an archive or a folder."""

from __future__ import annotations

import bisect
import os
import zipfile
import zlib
from abc import ABC, abstractmethod
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import tzinfo

    from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Skipped


class Source(ABC):
    """A file or a folder of another program, read by one thread and never on the event loop.

    Files that stay open are entered into ``resources``.
    """

    def __init__(self) -> None:
        self.resources = ExitStack()

    @abstractmethod
    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the conversations one by one; one that cannot be read is skipped."""

    def bytes_of(self, file: ForeignFile) -> bytes | None:
        """Return the bytes of a file of a message, ``None`` if the export does not have them."""
        return file.data

    def close(self) -> None:
        """Close the files that are open."""
        self.resources.close()


class Opening(NamedTuple):
    """A file to be recognised by its ``beginning``, or a folder, whose beginning is empty.

    ``zone`` is that of times without one, ``None`` being the system's.
    """

    path: Path
    beginning: bytes
    zone: tzinfo | None = None


class Format(NamedTuple):
    """A format: ``name`` for programs, as in the ``source`` of its conversations; ``title`` and ``files`` for people.

    ``opened`` returns the source of a file or folder, ``None`` if that is of another format.
    """

    name: str
    title: str
    files: str
    opened: Callable[[Opening], Source | None]


MOST_ENTRIES = limits.IMPORTED_ENTRIES.most
MOST_BYTES = limits.IMPORTED_ARCHIVE.most
"""The most bytes that the entries of an archive may have together when they are unpacked."""
HIGHEST_RATIO = 250
"""How many times its packed size an entry may have, and all entries; text is packed to a fifth, rarely a fiftieth."""
LARGEST_FILE = limits.IMPORTED_ENTRY.most
"""The most bytes of a file of a message."""

_ENCRYPTED = 1
_ALWAYS_SMALL, _ALWAYS_SMALL_TOGETHER = 1 << 24, 1 << 26
_ZIP_BEGINNING = b"PK\x03\x04"
_EMPTY_ZIP_BEGINNING = b"PK\x05\x06"
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


class Container(ABC):
    """The files of an export, by their names; a name is a key alone, and no path is ever made of one."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names, with slashes between their parts."""
        return tuple(self._listed())

    @abstractmethod
    def _listed(self) -> Iterable[str]: ...

    @abstractmethod
    def opened(self, name: str) -> IO[bytes]:
        """Open a file."""

    @abstractmethod
    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""

    @abstractmethod
    def close(self) -> None:
        """Close the container."""

    def named_after(self, id_: str) -> str | None:
        """Return the name whose last part is ``id_`` or begins with it and a sign, ``None`` if there is none."""
        at = bisect.bisect_left(self._by_last_part, (id_, ""))
        for last_part, name in self._by_last_part[at:] if id_ else ():
            if not last_part.startswith(id_):
                break
            if not last_part[len(id_) : len(id_) + 1].isalnum():
                return name
        return None

    @cached_property
    def _by_last_part(self) -> list[tuple[str, str]]:
        return sorted((name.rpartition("/")[2], name) for name in self.names)

    def beginning_of(self, name: str, number_of_bytes: int) -> bytes:
        """Return the first bytes of a file, none if it cannot be read."""
        try:
            with self.opened(name) as file:
                return file.read(number_of_bytes)
        except (ImportFormatError, *_UNREADABLE):
            return b""

    def bytes_of(self, name: str) -> bytes | None:
        """Return the bytes of a file, ``None`` if it is too large or cannot be read."""
        return self.beginning_of(name, LARGEST_FILE) or None if self.size(name) <= LARGEST_FILE else None


class Archive(Container):
    """A zip archive.

    Raises:
        ImportFormatError: it is damaged, locked, or beyond a limit.
    """

    def __init__(self, path: Path, most_entries: int = MOST_ENTRIES, most_bytes: int = MOST_BYTES) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
        except _UNREADABLE as error:
            raise ImportFormatError(f"{path} is a damaged archive: {error}.") from error
        problem = _problem(self._zip.infolist(), path.stat().st_size, most_entries, most_bytes)
        if problem:
            self._zip.close()
            raise ImportFormatError(f"{path} {problem}.")

    def _listed(self) -> Iterable[str]:
        return (entry.filename for entry in self._zip.infolist() if not entry.is_dir())

    def opened(self, name: str) -> IO[bytes]:
        """Open an entry, of which no more is unpacked than it declares."""
        entry = self._zip.getinfo(name)
        if _is_bomb(entry):
            raise ImportFormatError(f"file of an archive that is packed more than {HIGHEST_RATIO} times")
        try:
            return self._zip.open(entry)
        except _UNREADABLE as error:
            raise ImportFormatError("file of an archive that is damaged") from error

    def size(self, name: str) -> int:
        """Return the unpacked size of an entry."""
        return self._zip.getinfo(name).file_size

    def close(self) -> None:
        """Close the archive."""
        self._zip.close()


class Folder(Container):
    """The regular files below a folder but for hidden ones; links are not followed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _listed(self) -> Iterable[str]:
        return _names_below(self._path)

    def opened(self, name: str) -> IO[bytes]:
        """Open a file of the folder."""
        try:
            return (self._path / name).open("rb")
        except OSError as error:
            raise ImportFormatError("file that cannot be read") from error

    def size(self, name: str) -> int:
        """Return the size of a file."""
        try:
            return (self._path / name).stat().st_size
        except OSError:
            return 0

    def close(self) -> None:
        """Do nothing: each file is closed by its reader."""


@contextmanager
def reading() -> Iterator[None]:
    """Turn the errors of a damaged file into a sentence.

    Raises:
        ImportFormatError: the file is damaged.
    """
    try:
        yield
    except _UNREADABLE as error:
        raise ImportFormatError("file that is damaged") from error


def is_archive(beginning: bytes) -> bool:
    """Return whether a file that begins so is a zip archive."""
    return beginning.startswith((_ZIP_BEGINNING, _EMPTY_ZIP_BEGINNING))


def _problem(entries: Sequence[zipfile.ZipInfo], packed_bytes: int, most_entries: int, most_bytes: int) -> str:
    """Return the reason why an archive of so many packed bytes is not read, empty if there is none."""
    if len(entries) > most_entries:
        return f"has more than {most_entries:,} files"
    if sum(entry.file_size for entry in entries) > most_bytes:
        return f"has more than {most_bytes:,} bytes when it is unpacked"
    # A single entry that is packed too much is refused when it is opened.
    readable_bytes = sum(entry.file_size for entry in entries if not _is_bomb(entry))
    if readable_bytes > max(_ALWAYS_SMALL_TOGETHER, packed_bytes * HIGHEST_RATIO):
        return f"is packed more than {HIGHEST_RATIO} times"
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        return "is locked by a password: unpack it, and import the folder"
    return ""


def _is_bomb(entry: zipfile.ZipInfo) -> bool:
    return entry.file_size > max(_ALWAYS_SMALL, entry.compress_size * HIGHEST_RATIO)


def _names_below(path: Path) -> Iterator[str]:
    """Yield the names of the first files, in the order of their folders."""
    count = 0
    for where, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            file = Path(where, name)
            if name.startswith(".") or file.is_symlink() or not file.is_file():
                continue
            yield file.relative_to(path).as_posix()
            count += 1
            if count >= MOST_ENTRIES:
                return
