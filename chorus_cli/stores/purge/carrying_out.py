"""A purge from its decision to its end.

One transaction overwrites the rows and stores what is left to do, so that a purge that is killed is carried on by the
next start or the next purge. Then files are changed, which can be done again, the file of the log is made anew
(`Store.compact`), and backups are rewritten if that was asked for.
"""

from __future__ import annotations

import json
import os
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from chorus_cli.attachments.files import attachments as attachment_files
from chorus_cli.attachments.rows import named_attachments
from chorus_cli.core.errors import PurgeError
from chorus_cli.editing.rules.format import HUMAN
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.log_acts import NO_IDS, PurgedIds
from chorus_cli.log.rules.messages import Role
from chorus_cli.personas.files import DOCUMENTS_FOLDER
from chorus_cli.sessions.files import SESSIONS_FOLDER
from chorus_cli.storage import meta_rows, permissions
from chorus_cli.stores.listing import AMONG
from chorus_cli.stores.purge import files, overwriting, sessions
from chorus_cli.stores.purge.concerned import Concerned, concerned, repeating
from chorus_cli.stores.purge.files import FileChange
from chorus_cli.stores.rules.purge_reports import MOST_SHOWN, Extent, ShownMessage
from chorus_cli.stores.rules.purging import NO_CRITERIA, WantedPurge

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from chorus_cli.stores.purge.files import Home
    from chorus_cli.stores.purge.sessions import SessionChange

_ROWS, _FILES, _SPACE, _BACKUPS = "rows", "files", "space", "backups"


class Changes(NamedTuple):
    """All that a purge changes in a home, or in a backup that was unpacked.

    ``sessions`` are those of personas, ``deleted_sessions`` those of deleted ones; ``lost_sessions`` are rows without
    files. ``lonely`` are the sizes of attachments that only purged messages name, ``unsent`` those of attachments that
    none names, by their SHA-256.
    """

    found: Concerned
    sessions: tuple[SessionChange, ...]
    deleted_sessions: tuple[SessionChange, ...]
    lost_sessions: tuple[tuple[str, str], ...]
    texts: tuple[FileChange, ...]
    lonely: Mapping[str, int]
    unsent: Mapping[str, int]

    def files(self, home: Home) -> list[FileChange]:
        """Return the changes of files but for attachments."""
        kept = (sessions.file_change(home.paths.personas, each) for each in self.sessions)
        deleted = (sessions.file_change(home.paths.deleted_personas, each) for each in self.deleted_sessions)
        return [*kept, *deleted, *self.texts]


def changes(connection: sqlite3.Connection, home: Home, wanted: WantedPurge, also: PurgedIds = NO_IDS) -> Changes:
    """Return all that a purge would change; nothing is changed."""
    found = concerned(connection, wanted, also)
    texts = sessions.saved_texts(connection, found)
    return Changes(
        found,
        tuple(sessions.changes(home.paths.personas, texts)),
        tuple(sessions.changes(home.paths.deleted_personas, texts)),
        tuple(sessions.lost(connection, home.paths.personas, texts)),
        tuple(files.texts_in_files(home, found)),
        files.lonely_attachments(connection, found),
        files.unsent_attachments(connection, home, found),
    )


def change_rows(connection: sqlite3.Connection, wanted: Changes, now: datetime) -> None:
    """Overwrite the rows of a purge."""
    sessions.forget(connection, wanted.lost_sessions)
    for change in wanted.sessions:
        sessions.store(connection, change)
    overwriting.overwrite(connection, wanted.found.ids, now)


def extent(connection: sqlite3.Connection, home: Home, wanted: Changes) -> Extent:
    """Return the extent of a purge, for the user to agree to."""
    ids = wanted.found.ids
    rows = message_rows.rows(connection, ids.messages)
    shown = (row for row in rows if row.content)
    items = connection.execute(
        f"SELECT id, content FROM context_items WHERE id {AMONG} ORDER BY id", {"ids": json.dumps([*ids.items])}
    ).fetchall()
    attached = {**wanted.lonely, **wanted.unsent}
    return Extent(
        ids,
        shown=tuple(
            ShownMessage(row.id, row.persona, row.timestamp, row.content, HUMAN if row.role is Role.USER else "")
            for row, _ in zip(shown, range(MOST_SHOWN), strict=False)
        ),
        first=min((row.timestamp for row in rows), default=None),
        last=max((row.timestamp for row in rows), default=None),
        repeated=tuple(repeating(connection, wanted.found)),
        documents=tuple(files.documents(home, wanted.found)),
        items=tuple(items),
        sessions=tuple(f"{each.persona}/{each.session_id}" for each in chain(wanted.sessions, wanted.deleted_sessions)),
        attachments=len(attached),
        attachment_bytes=sum(attached.values()),
        drafts=tuple(each.path.name for each in wanted.texts),
        unsearched_pdfs=files.unsearched_pdfs(connection, home, wanted.found),
    )


def decide(
    connection: sqlite3.Connection, home: Home, wanted: WantedPurge, now: datetime, *, with_backups: bool = False
) -> None:
    """Overwrite the rows of a purge, and store what follows: changes of files, and whether backups are rewritten."""
    require_access(home)
    decided = changes(connection, home, wanted)
    change_rows(connection, decided, now)
    # The words of a search are not stored, unless they are to be found in backups.
    criteria = wanted.criteria() if with_backups else NO_CRITERIA
    # A home may be moved before this is carried on.
    paths = [
        (*(os.path.relpath(path, home.paths.personas) for path in each[:2]), each.text) for each in decided.files(home)
    ]
    attached = [*decided.lonely, *decided.unsent]
    left = {"wanted": criteria.as_json(), "with_backups": with_backups, "files": paths, "attachments": attached}
    _store(connection, _FILES, left)


def is_pending(connection: sqlite3.Connection) -> bool:
    """Return whether a purge that was decided is not complete."""
    return meta_rows.value(connection, meta_rows.PURGE) is not None


def take_up(connection: sqlite3.Connection, home: Home, now: datetime) -> None:
    """Decide a purge anew of which an older Chorus has stored that it was decided, and overwritten nothing yet."""
    stored = _stored(connection)
    if stored.get("stage") == _ROWS:
        wanted = WantedPurge.from_json(stored["wanted"])
        decide(connection, home, wanted, now, with_backups=bool(stored.get("with_backups")))


def change_files(connection: sqlite3.Connection, home: Home) -> None:
    """Change the files of the purge that was decided; nothing is done if that is done already.

    Raises:
        PurgeError: one cannot be written or deleted.
    """
    stored = _stored(connection)
    if stored.get("stage") != _FILES:
        return
    for *paths, text in stored["files"]:
        path, after = (Path(os.path.normpath(home.paths.personas / each)) for each in paths)
        try:
            files.change(FileChange(path, after, text))
        except OSError as error:
            raise PurgeError(f"{path} cannot be changed: {error.strerror or error}.") from error
    # Another chat may have sent one of them again meanwhile.
    attachment_files.delete(home.paths.attachments, {*stored["attachments"]} - named_attachments(connection))
    _store(connection, _SPACE, {name: stored[name] for name in ("wanted", "with_backups")})


def _store(connection: sqlite3.Connection, stage: str, left: Mapping[str, Any]) -> None:
    meta_rows.store(connection, meta_rows.PURGE, json.dumps({**left, "stage": stage}))


def _stored(connection: sqlite3.Connection) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(meta_rows.value(connection, meta_rows.PURGE) or "{}")
    return stored


def is_compact(connection: sqlite3.Connection) -> bool:
    """Return whether only backups are left to do."""
    return _stored(connection).get("stage") == _BACKUPS


def complete_log(connection: sqlite3.Connection) -> WantedPurge | None:
    """Store that the log is done; return the criteria for the backups, ``None`` if none are to be rewritten."""
    stored = _stored(connection)
    if not stored.get("with_backups"):
        complete(connection)
        return None
    _store(connection, _BACKUPS, stored)
    return WantedPurge.from_json(stored["wanted"])


def complete(connection: sqlite3.Connection) -> None:
    """Store that the purge is complete."""
    meta_rows.taken(connection, meta_rows.PURGE)


def require_access(home: Home) -> None:
    """Refuse to purge a home with texts that cannot be read.

    Raises:
        PurgeError: there is a file or folder of that kind.
    """
    closed = [*dict.fromkeys(map(permissions.barrier, filter(permissions.is_refused, _searched(home))))]
    if closed:
        names, them = permissions.closed_paths(closed), "it" if len(closed) == 1 else "them"
        told = f"{names} cannot be read, so a purge cannot look for the words in {them}."
        raise PurgeError(f"{told} {permissions.access_advice(*closed)}")


def _searched(home: Home) -> Iterator[Path]:
    """Yield the folders and files that a purge reads, each folder before its files."""
    for personas in (home.paths.personas, home.paths.deleted_personas):
        yield personas
        yield from personas.glob("*")
        for name in (SESSIONS_FOLDER, DOCUMENTS_FOLDER):
            yield from (*personas.glob(f"*/{name}"), *personas.glob(f"*/{name}/*"))
    for folder in (*home.attachments, home.paths.drafts, home.paths.rescue):
        yield folder
        yield from folder.rglob("*")
