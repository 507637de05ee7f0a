"""The database of another Chorus, with its attachments beside it; its copy is migrated, and it stays as it is."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.attachments.files import attachments
from chorus_cli.core.errors import AttachmentError, ImportFormatError, StorageError
from chorus_cli.core.text.phrases import enumerated
from chorus_cli.imports.files.source import Format, Opening, Source
from chorus_cli.imports.rows import whole_threads
from chorus_cli.storage import foreign_code, migrations, store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile

_SQLITE = b"SQLite format 3\0"
_APPLICATION_ID = slice(68, 72)


def _conversations(opening: Opening) -> Iterator[ForeignConversation]:
    """Yield the threads of every persona."""
    path = opening.path
    try:
        # A database without a name, whose pages the system frees even if this process is killed.
        with closing(sqlite3.connect("", isolation_level=None)) as connection:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as theirs:
                theirs.backup(connection)
            store.confine(connection)
            foreign_code.remove(connection)
            if changed := foreign_code.changed_tables(connection):
                raise ImportFormatError(f"{path} cannot be read: it lacks {enumerated(changed)} as made by Chorus.")
            migrations.migrate(connection)
            for thread in whole_threads.threads(connection):
                yield whole_threads.conversation(connection, thread)
    except (sqlite3.Error, StorageError) as error:
        way_out = "If it is damaged, chorus doctor repairs it where it is in use."
        raise ImportFormatError(f"{path} cannot be read: {str(error).rstrip('.')}. {way_out}") from error


def _attachment(path: Path, file: ForeignFile) -> bytes | None:
    """Return the bytes from the folder of attachments beside the database."""
    with suppress(AttachmentError):
        return attachments.read(path.parent / "attachments", file.entry)
    return None


def _opened(opening: Opening) -> Source | None:
    is_chorus = opening.beginning[_APPLICATION_ID] == migrations.APPLICATION_ID.to_bytes(4, "big")
    if not is_chorus or not opening.beginning.startswith(_SQLITE):
        return None
    return Source(partial(_conversations, opening), partial(_attachment, opening.path))


CHORUS = Format("chorus", "another Chorus", "its chorus.db, with the folder of attachments beside it", _opened)
