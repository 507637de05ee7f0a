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
from chorus_cli.editing.rows import outbox_rows
from chorus_cli.editing.rules.lines import HUMAN
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.messages import Role
from chorus_cli.personas.files import DOCUMENTS_FOLDER
from chorus_cli.sessions.files import SESSIONS_FOLDER
from chorus_cli.storage import meta_rows, permissions
from chorus_cli.stores.purge import files, overwriting, repetitions, sessions
from chorus_cli.stores.purge.concerned import Concerned, concerned
from chorus_cli.stores.purge.files import FileChange
from chorus_cli.stores.rules.purge_reports import MOST_SHOWN, Extent, Repetition, ShownMessage
from chorus_cli.stores.rules.purging import NO_CRITERIA, WantedPurge

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from chorus_cli.stores.purge.files import StateFolders
    from chorus_cli.stores.purge.sessions import SessionChange
    from chorus_cli.stores.rules.traces import Watch

_UNSENT = "message not sent"
_ROWS, _FILES, _SPACE, _BACKUPS = "rows", "files", "space", "backups"


class PurgedHome(NamedTuple):
    """The folders of the personas, of deleted ones, of attachments, and of drafts."""

    personas: Path
    deleted: Path
    attachments: Path
    state: StateFolders


def extent(connection: sqlite3.Connection, home: PurgedHome, found: Concerned, watch: Watch) -> Extent:
    """Return all that a purge would concern; nothing is changed.

    Raises:
        PurgeError: a file or folder cannot be read.
    """
    _require_access(home)
    rows = message_rows.rows(connection, found.ids.messages)
    shown = (row for row in rows if row.content)
    items = connection.execute(
        "SELECT id, content FROM context_items WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (json.dumps([*found.ids.items]),),
    ).fetchall()
    attached = _attachments(connection, home, found)
    texts = sessions.saved_texts(connection, found)
    changes = {folder: [*sessions.changes(folder, texts)] for folder in (home.personas, home.deleted)}
    return Extent(
        messages=len(rows),
        shown=tuple(
            ShownMessage(row.id, row.persona, row.timestamp, row.content, HUMAN if row.role is Role.USER else "")
            for row, _ in zip(shown, range(MOST_SHOWN), strict=False)
        ),
        first=min((row.timestamp for row in rows), default=None),
        last=max((row.timestamp for row in rows), default=None),
        repeated=tuple(repetitions.repeated(connection, found, watch)),
        elsewhere=tuple(_elsewhere(connection, home, found, changes, watch)),
        titles=len(found.ids.titles),
        summaries=len(found.ids.summaries),
        preambles=len(found.ids.preambles),
        items=tuple(items),
        inputs=len(found.ids.inputs),
        sessions=tuple(f"{each.persona}/{each.session_id}" for each in chain(*changes.values())),
        attachments=len(attached),
        attachment_bytes=sum(attached.values()),
        drafts=(
            *(each.path.name for each in files.texts_in_files(home.state, found)),
            *(f"{_UNSENT} #{id_}" for id_ in outbox_rows.those(connection, found.takes)),
        ),
        unsearched_pdfs=files.unsearched_pdfs(connection, home.attachments, found),
    )


def _elsewhere(
    connection: sqlite3.Connection,
    home: PurgedHome,
    found: Concerned,
    changes: Mapping[Path, Sequence[SessionChange]],
    watch: Watch,
) -> Iterator[Repetition]:
    yield from repetitions.elsewhere(connection, found, watch)
    for folder in changes:
        yield from repetitions.in_documents(folder, found)
    if found.traces.are_of_short_texts:
        for folder, changed in changes.items():
            yield from repetitions.in_sessions(folder, found, changed)
        yield from files.repetitions(connection, home.state, home.attachments, found)
        for id_, text in outbox_rows.those(connection, lambda *row: not found.takes(*row)).items():
            if found.traces.have_run_in(text.content):
                yield Repetition(_UNSENT, f"#{id_}", text.persona, text.content)


def decide(
    connection: sqlite3.Connection, home: PurgedHome, wanted: WantedPurge, now: datetime, *, with_backups: bool = False
) -> None:
    """Overwrite the rows of a purge, and store the changes of files that follow, and whether backups are rewritten too.

    Raises:
        PurgeError: a file cannot be read, or one of the messages is being written.
    """
    _require_access(home)
    found = concerned(connection, wanted)
    attached = _attachments(connection, home, found)
    changes = [*_change_sessions(connection, home, found), *files.texts_in_files(home.state, found)]
    overwriting.overwrite(connection, found.ids, now)
    outbox_rows.drop(connection, outbox_rows.those(connection, found.takes))
    # The words of a search are not stored, unless they are to be found in backups.
    criteria = wanted.criteria() if with_backups else NO_CRITERIA
    # A home may be moved before this is carried on.
    paths = [(*(os.path.relpath(path, home.personas) for path in each[:2]), each.text) for each in changes]
    left = {"wanted": criteria.as_json(), "with_backups": with_backups, "files": paths, "attachments": [*attached]}
    _store(connection, _FILES, left)


def is_pending(connection: sqlite3.Connection) -> bool:
    """Return whether a purge that was decided is not complete."""
    return meta_rows.value(connection, meta_rows.PURGE) is not None


def take_up(connection: sqlite3.Connection, home: PurgedHome, now: datetime) -> None:
    """Decide a purge anew of which an older Chorus has stored that it was decided, and overwritten nothing yet.

    Raises:
        PurgeError: a file cannot be read, or one of the messages is being written.
    """
    stored = _stored(connection)
    if stored.get("stage") == _ROWS:
        wanted = WantedPurge.from_json(stored["wanted"])
        decide(connection, home, wanted, now, with_backups=bool(stored.get("with_backups")))


def change_files(connection: sqlite3.Connection, home: PurgedHome) -> None:
    """Change the files of the purge that was decided; nothing is done if that is done already.

    Raises:
        PurgeError: one cannot be written or deleted.
    """
    stored = _stored(connection)
    if stored.get("stage") != _FILES:
        return
    for *paths, text in stored["files"]:
        path, after = (Path(os.path.normpath(home.personas / each)) for each in paths)
        try:
            files.change(FileChange(path, after, text))
        except OSError as error:
            raise PurgeError(f"{path} cannot be changed: {error.strerror or error}.") from error
    # Another chat may have sent one of them again meanwhile.
    attachment_files.delete(home.attachments, {*stored["attachments"]} - named_attachments(connection))
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


def _require_access(home: PurgedHome) -> None:
    closed = [*dict.fromkeys(map(permissions.barrier, filter(permissions.is_refused, _searched(home))))]
    if closed:
        names, them = permissions.closed_paths(closed), "it" if len(closed) == 1 else "them"
        told = f"{names} cannot be read, so a purge cannot look for the words in {them}."
        raise PurgeError(f"{told} {permissions.access_advice(*closed)}")


def _searched(home: PurgedHome) -> Iterator[Path]:
    """Yield the folders and files that a purge reads, each folder before its files."""
    for personas in (home.personas, home.deleted):
        yield personas
        yield from personas.glob("*")
        for name in (SESSIONS_FOLDER, DOCUMENTS_FOLDER):
            yield from (*personas.glob(f"*/{name}"), *personas.glob(f"*/{name}/*"))
    for folder in (home.attachments, home.state.drafts, home.state.rescue):
        yield folder
        yield from folder.rglob("*")


def _attachments(connection: sqlite3.Connection, home: PurgedHome, found: Concerned) -> dict[str, int]:
    lonely = files.lonely_attachments(connection, found)
    return lonely | files.unsent_attachments(connection, home.attachments, found)


def _change_sessions(connection: sqlite3.Connection, home: PurgedHome, found: Concerned) -> list[FileChange]:
    """Change the rows of sessions, and return the changes of their files."""
    texts = sessions.saved_texts(connection, found)
    sessions.forget(connection, sessions.lost(connection, home.personas, texts))
    kept, deleted = ([*sessions.changes(folder, texts)] for folder in (home.personas, home.deleted))
    for change in kept:
        sessions.store(connection, change)
    return [
        sessions.file_change(folder, change)
        for folder, changes in ((home.personas, kept), (home.deleted, deleted))
        for change in changes
    ]
