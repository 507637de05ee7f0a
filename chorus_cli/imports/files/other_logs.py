"""The database of another Chorus, with its attachments beside it; its copy is migrated, and it stays as it is."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING

from chorus_cli.attachments.files import attachments
from chorus_cli.core.errors import AttachmentError, ImportFormatError, StorageError
from chorus_cli.core.text.phrases import enumerated
from chorus_cli.imports.files.source import Format, Opening, Source
from chorus_cli.imports.rows.whole_threads import every_conversation
from chorus_cli.imports.rules.conversation import Skipped
from chorus_cli.storage import foreign_code, migrations, untrusted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile

_SQLITE = b"SQLite format 3\0"
_APPLICATION_ID = slice(68, 72)


class _OtherLog:
    def __init__(self, opening: Opening) -> None:
        self.resources = ExitStack()
        self._path = opening.path
        self._own = opening.own

    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the threads of every persona; the database of this very Chorus has none to add."""
        if self._own and self._own.exists() and self._own.samefile(self._path):
            yield Skipped("database of this very Chorus")
            return
        try:
            connection = self.resources.enter_context(closing(sqlite3.connect("", isolation_level=None)))
            self._copy_into(connection)
            yield from every_conversation(connection)
        except (sqlite3.Error, StorageError) as error:
            raise ImportFormatError(f"{self._path} cannot be read: {error}") from error

    def _copy_into(self, connection: sqlite3.Connection) -> None:
        """Copy the database into one without a name, whose pages the system frees even if this process is killed."""
        with closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)) as theirs:
            theirs.backup(connection)
        untrusted.confine(connection)
        foreign_code.remove(connection)
        if changed := foreign_code.changed_tables(connection):
            raise ImportFormatError(f"{self._path} cannot be read: it lacks {enumerated(changed)} as made by Chorus.")
        migrations.migrate(connection)

    def bytes_of(self, file: ForeignFile) -> bytes | None:
        """Return the bytes from the folder of attachments beside the database."""
        with suppress(AttachmentError):
            return attachments.read(self._path.parent / "attachments", file.entry)
        return None


def _opened(opening: Opening) -> Source | None:
    is_chorus = opening.beginning[_APPLICATION_ID] == migrations.APPLICATION_ID.to_bytes(4, "big")
    if not is_chorus or not opening.beginning.startswith(_SQLITE):
        return None
    log = _OtherLog(opening)
    return Source(log.conversations, log.bytes_of, log.resources.close)


CHORUS = Format("chorus", "another Chorus", "its chorus.db, with the folder of attachments beside it", _opened)
