"""The database of another Chorus, read from a copy, so that neither its tables nor its locks are touched."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.attachments.files import attachments
from chorus_cli.core.errors import AttachmentError, ImportFormatError, StorageError
from chorus_cli.imports.files.source import Format, Opening, Source
from chorus_cli.imports.rows import whole_threads
from chorus_cli.imports.rules.conversation import Skipped
from chorus_cli.storage import foreign_code, migrations, untrusted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile

_SQLITE = b"SQLite format 3\0"
_APPLICATION_ID = slice(68, 72)


class _OtherLog(Source):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the threads of every persona."""
        try:
            connection = self.resources.enter_context(closing(_copied(self._path)))
            untrusted.confine(connection)
            foreign_code.remove(connection)
            migrations.migrate(connection)
            yield from whole_threads.every_conversation(connection)
        except (sqlite3.Error, StorageError) as error:
            raise ImportFormatError(f"{self._path} cannot be read: {error}") from error

    def bytes_of(self, file: ForeignFile) -> bytes | None:
        """Return the bytes from the folder of attachments beside the database."""
        with suppress(AttachmentError):
            return attachments.read(self._path.parent / "attachments", file.entry)
        return None


class _OwnLog(Source):
    def conversations(self) -> Iterator[Skipped]:
        """Yield nothing but the reason."""
        yield Skipped("database of this very Chorus")

    def bytes_of(self, file: ForeignFile) -> None:
        """Return nothing: no message is read."""
        del file


def _copied(path: Path) -> sqlite3.Connection:
    """Copy a database to one without a name, whose pages the system frees even if this process is killed."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as theirs:
        connection = sqlite3.connect("", isolation_level=None)
        try:
            theirs.backup(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def format_without(own: Path) -> Format:
    """Return the format of other logs, which leaves out the database ``own`` when a folder has it."""
    return FORMAT._replace(opened=partial(_opened, own=own))


def _opened(opening: Opening, own: Path | None = None) -> Source | None:
    is_chorus = opening.beginning[_APPLICATION_ID] == migrations.APPLICATION_ID.to_bytes(4, "big")
    if not opening.beginning.startswith(_SQLITE) or not is_chorus:
        return None
    return _OwnLog() if own and own.exists() and own.samefile(opening.path) else _OtherLog(opening.path)


FORMAT = Format("chorus", "another Chorus", "its chorus.db, with the folder of attachments beside it", _opened)
