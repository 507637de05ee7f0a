"""A purge from its decision to its end.

The decision is stored first, so that a purge that is killed is carried on by the next start or the next purge. Then
files and rows are overwritten, in one transaction as far as the log is concerned, and all of it can be done again. In
the end the file of the log is made anew (`Store.compact`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.editing.lines import HUMAN
from chorus_cli.core.log.messages import Role
from chorus_cli.core.upkeep.purge_reports import MOST_SHOWN, Extent, ShownMessage
from chorus_cli.core.upkeep.purging import WantedPurge
from chorus_cli.storage.purges import files, overwriting, sessions
from chorus_cli.storage.purges.concerned import Concerned, concerned, repeated
from chorus_cli.storage.sqlite import meta_rows
from chorus_cli.storage.sqlite.log import message_rows, usage_rows

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.core.upkeep.traces import Watch
    from chorus_cli.storage.purges.files import StateFolders

_ROWS, _SPACE = "rows", "space"


class PurgedHome(NamedTuple):
    """The folders of the personas, of deleted ones, of attachments, and of drafts."""

    personas: Path
    deleted: Path
    attachments: Path
    state: StateFolders


def extent(connection: sqlite3.Connection, home: PurgedHome, found: Concerned, watch: Watch) -> Extent:
    """Return all that a purge would concern; nothing is changed."""
    rows = message_rows.rows(connection, found.ids.messages)
    shown = (row for row in rows if row.content)
    items = connection.execute(
        "SELECT id, content FROM context_items WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (json.dumps([*found.ids.items]),),
    ).fetchall()
    attached = _attachments(connection, home, found)
    texts = sessions.saved_texts(connection, found)
    changes = [change for folder in (home.personas, home.deleted) for change in sessions.changes(folder, texts)]
    return Extent(
        messages=len(rows),
        shown=tuple(
            ShownMessage(row.id, row.persona, row.timestamp, row.content, HUMAN if row.role is Role.USER else "")
            for row, _ in zip(shown, range(MOST_SHOWN), strict=False)
        ),
        first=min((row.timestamp for row in rows), default=None),
        last=max((row.timestamp for row in rows), default=None),
        repeated=tuple(repeated(connection, found, watch)),
        titles=len(found.ids.titles),
        summaries=len(found.ids.summaries),
        preambles=len(found.ids.preambles),
        items=tuple(items),
        inputs=len(found.ids.inputs),
        sessions=tuple(f"{each.persona}/{each.session_id}" for each in changes),
        attachments=len(attached),
        attachment_bytes=sum(attached.values()),
        drafts=tuple(path.name for path in files.texts_in_files(home.state, found)),
    )


def decide(connection: sqlite3.Connection, wanted: WantedPurge) -> None:
    """Store the decision."""
    meta_rows.store(connection, meta_rows.PURGE, json.dumps({"stage": _ROWS, "wanted": wanted.as_json()}))


def is_pending(connection: sqlite3.Connection) -> bool:
    """Return whether a purge that was decided is not complete."""
    return meta_rows.value(connection, meta_rows.PURGE) is not None


def overwrite(connection: sqlite3.Connection, home: PurgedHome, now: datetime) -> Concerned | None:
    """Overwrite the files and rows of the purge that was decided; ``None`` if that is done already.

    Raises:
        PurgeError: a file cannot be written, or one of the messages is being written again.
        SessionError: a session cannot be written.
    """
    stored = json.loads(meta_rows.value(connection, meta_rows.PURGE) or "{}")
    if stored.get("stage") != _ROWS:
        return None
    found = concerned(connection, WantedPurge.from_json(stored["wanted"]))
    _overwrite_sessions(connection, home, found)
    for path in files.texts_in_files(home.state, found):
        files.take_out(path, found)
    attached = _attachments(connection, home, found)
    overwriting.overwrite(connection, found.ids, now)
    usage_rows.forget(connection, found.wanted.threads, found.wanted.personas)
    files.delete_attachments(home.attachments, attached)
    # The words of a search are overwritten with the decision.
    meta_rows.store(connection, meta_rows.PURGE, json.dumps({"stage": _SPACE}))
    return found


def complete(connection: sqlite3.Connection) -> None:
    """Store that the purge is complete."""
    meta_rows.taken(connection, meta_rows.PURGE)


def _attachments(connection: sqlite3.Connection, home: PurgedHome, found: Concerned) -> dict[str, int]:
    lonely = files.lonely_attachments(connection, found)
    return lonely | files.unsent_attachments(connection, home.attachments, found)


def _overwrite_sessions(connection: sqlite3.Connection, home: PurgedHome, found: Concerned) -> None:
    texts = sessions.saved_texts(connection, found)
    for change in sessions.changes(home.personas, texts):
        sessions.store(connection, change, sessions.write(home.personas, change))
    for change in sessions.changes(home.deleted, texts):
        sessions.write(home.deleted, change)
    sessions.forget(connection, sessions.lost(connection, home.personas, texts))
