"""Carries out a purge, from the decision on.

One transaction overwrites the rows and stores the steps that follow. These steps change files, rewrite the file of the
log (`Store.compact`), and rewrite backups if the user asked for it. Each step can be repeated. If the process is
killed, the next start or the next purge continues the purge.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from chorus_cli.attachments.files import attachments as attachment_files
from chorus_cli.attachments.rows import delete_on_server, named_attachments
from chorus_cli.context.rules.memory import ids_held, without_forgotten
from chorus_cli.core.errors import PurgeError
from chorus_cli.core.text.phrases import first_few
from chorus_cli.log.rows import message_rows, operation_rows, search_index
from chorus_cli.log.rows.words import IndexDamagedError
from chorus_cli.log.rules.log_acts import NO_IDS, Purge, PurgedIds
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.meaning import rows as meaning_rows
from chorus_cli.memory.rows import item_rows
from chorus_cli.storage import meta_rows, permissions
from chorus_cli.storage.port import Connection
from chorus_cli.stores import listing
from chorus_cli.stores.listing import AMONG
from chorus_cli.stores.purge import files
from chorus_cli.stores.purge.concerned import Concerned, concerned, earlier_texts, repeating
from chorus_cli.stores.purge.files import FileChange, Home, LostSession
from chorus_cli.stores.rules.purging import MOST_SHOWN, NO_CRITERIA, Extent, WantedPurge, line_of

_FILES, _SPACE, _BACKUPS = "files", "space", "backups"


class Changes(NamedTuple):
    """All that a purge changes in a home or in an unpacked backup.

    ``lost_sessions`` have a row but no file. ``lonely`` and ``unsent`` map the SHA-256 of attachments to sizes in
    bytes. Only purged messages name the ``lonely`` attachments; no message names the ``unsent`` ones.
    """

    found: Concerned
    files: tuple[FileChange, ...]
    lost_sessions: tuple[LostSession, ...]
    lonely: Mapping[str, int]
    unsent: Mapping[str, int]


def changes(connection: Connection, home: Home, wanted: WantedPurge, also: PurgedIds = NO_IDS) -> Changes:
    """Return all that a purge would change, and change nothing. ``also`` are rows to purge in any case."""
    found = concerned(connection, wanted, also)
    texts = files.saved_texts(connection, found)
    return Changes(
        found,
        tuple(files.changes(home, texts)),
        tuple(files.lost_sessions(connection, home.paths.personas, texts)),
        files.lonely_attachments(connection, found),
        files.unsent_attachments(connection, home, found),
    )


def change_rows(connection: Connection, home: Home, wanted: Changes, now: datetime) -> None:
    """Overwrite the rows of a purge, and update the list of sessions."""
    of_home = (each for each in wanted.files if each.session_name and each.path.is_relative_to(home.paths.personas))
    for name, row in (*wanted.lost_sessions, *((each.session_name, each.row) for each in of_home)):
        files.list_session(connection, name, row)
    overwrite(connection, wanted.found.ids, now)


def overwrite(connection: Connection, purged: PurgedIds, now: datetime) -> None:
    """Overwrite rows, and store a purge operation for each persona that the rows belong to."""
    by_persona = _by_persona(connection, purged)
    operations = {
        persona: operation_rows.introduce(connection, NewOperation(persona, Purge(ids), now)).id
        for persona, ids in by_persona.items()
    }
    if operations:
        meta_rows.store(connection, meta_rows.NEWEST_PURGE, str(max(operations.values())))
    for persona, ids in by_persona.items():
        erase(connection, persona, ids, operations[persona])
    renew_indexes(connection)


def erase(connection: Connection, persona: str, ids: PurgedIds, operation_id: int) -> None:
    """Overwrite rows of a persona for the purge with the id ``operation_id``."""
    for store in listing.ROWS:
        store.erase(connection, getattr(ids, store.name), operation_id)
    _check(connection, ids.messages)
    if ids.items:
        _cut_out_of_messages(connection, persona, ids.items)


def renew_indexes(connection: Connection) -> None:
    """Delete the vectors of purged messages, and remove from the indexes the words that no text has any more."""
    meaning_rows.remove_purged(connection)
    try:
        search_index.begin_anew(connection)
    except IndexDamagedError:
        search_index.begin_in_new_pages(connection)
    try:
        item_rows.remove_words(connection)
    except IndexDamagedError:
        item_rows.renew_words(connection)


def _by_persona(connection: Connection, purged: PurgedIds) -> Mapping[str, PurgedIds]:
    found: dict[str, PurgedIds] = {}
    for store in listing.ROWS:
        rows = connection.execute(
            f"SELECT persona, json_group_array(id) FROM {store.table} WHERE id {AMONG} GROUP BY persona",
            {"ids": json.dumps([*getattr(purged, store.name)])},
        ).fetchall()
        for persona, text in rows:
            own = PurgedIds(**{store.name: frozenset(json.loads(text))})
            found[persona] = found.get(persona, PurgedIds()).united(own)
    return found


def _check(connection: Connection, ids: frozenset[int]) -> None:
    """Compute the checksums of these messages anew."""
    rows = listing.MESSAGES.rows(connection, "id, role, thread_id, persona, timestamp, content", ids)
    connection.executemany(
        "UPDATE messages SET checksum = ? WHERE id = ?",
        [(message_rows.checksum(*checked), id_) for id_, *checked in rows],
    )


def _cut_out_of_messages(connection: Connection, persona: str, ids: frozenset[int]) -> None:
    """Cut memory items out of preambles, and out of the calls and results of the memory's tools."""
    candidates = connection.execute(
        "SELECT id FROM messages WHERE persona = ? AND purged_by IS NULL "
        "AND (preamble <> '' OR role IN ('tool_use', 'tool_result'))",
        (persona,),
    ).fetchall()
    rows = message_rows.rows(connection, (id_ for (id_,) in candidates))
    if ids.isdisjoint(ids_held(rows)):
        return
    changed = [after for before, after in zip(rows, without_forgotten(rows, ids), strict=True) if before != after]
    connection.executemany(
        "UPDATE messages SET content = ?, preamble = ?, tool_calls = ?, token_count = NULL WHERE id = ?",
        [(after.content, after.preamble, after.tool_calls, after.id) for after in changed],
    )
    _check(connection, frozenset(after.id for after in changed))


def extent(connection: Connection, home: Home, wanted: Changes) -> Extent:
    """Return the extent of a purge, for the user to agree to."""
    ids = wanted.found.ids
    rows = message_rows.rows(connection, ids.messages)
    items = listing.ITEMS.rows(connection, "id, content", ids.items)
    attached = {**wanted.lonely, **wanted.unsent}
    return Extent(
        ids,
        shown=tuple(map(line_of, islice((row for row in rows if row.content), MOST_SHOWN))),
        first=min((row.timestamp for row in rows), default=None),
        last=max((row.timestamp for row in rows), default=None),
        repeated=tuple(repeating(connection, wanted.found)),
        documents=tuple(files.documents(home, wanted.found)),
        items=tuple(items),
        earlier_texts=earlier_texts(connection, wanted.found),
        sessions=(
            *(each.session_name for each in wanted.files if each.session_name),
            *(each.session_name for each in wanted.lost_sessions),
        ),
        attachments=len(attached),
        attachment_bytes=sum(attached.values()),
        drafts=tuple(each.path.name for each in wanted.files if not each.session_name),
        unsearched_pdfs=files.unsearched_pdfs(connection, wanted.found),
    )


def decide(
    connection: Connection, home: Home, wanted: WantedPurge, now: datetime, *, with_backups: bool = False
) -> None:
    """Overwrite the rows of a purge. Store the planned changes of files, and whether backups are to be rewritten."""
    require_access(home)
    decided = changes(connection, home, wanted)
    change_rows(connection, home, decided, now)
    # The words of a search are stored only if backups are to be searched for them.
    criteria = wanted.criteria() if with_backups else NO_CRITERIA
    # The paths are relative, because a home may be moved before the files are changed.
    paths = [(*(os.path.relpath(path, home.paths.personas) for path in each[:2]), each.text) for each in decided.files]
    attached = [*decided.lonely, *decided.unsent]
    left = {"wanted": criteria.as_json(), "with_backups": with_backups, "files": paths, "attachments": attached}
    _store(connection, _FILES, left)


def is_pending(connection: Connection) -> bool:
    """Return whether a purge that was decided is not complete."""
    return meta_rows.value(connection, meta_rows.PURGE) is not None


def change_files(connection: Connection, home: Home) -> None:
    """Change the files of the decided purge, unless that is done already."""
    stored = _stored(connection)
    if stored.get("stage") != _FILES:
        return
    for *paths, text in stored["files"]:
        path, after = (Path(os.path.normpath(home.paths.personas / each)) for each in paths)
        try:
            files.change(FileChange(path, after, text))
        except OSError as error:
            raise PurgeError(f"{path} cannot be changed: {error.strerror or error}.") from error
    # Meanwhile another chat may have sent one of the attachments again.
    unnamed = {*stored["attachments"]} - named_attachments(connection)
    attachment_files.delete(home.paths.attachments, unnamed)
    delete_on_server(connection, unnamed)
    _store(connection, _SPACE, {name: stored[name] for name in ("wanted", "with_backups")})


def _store(connection: Connection, stage: str, left: Mapping[str, Any]) -> None:
    meta_rows.store(connection, meta_rows.PURGE, json.dumps({**left, "stage": stage}))


def _stored(connection: Connection) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(meta_rows.value(connection, meta_rows.PURGE) or "{}")
    return stored


def is_compact(connection: Connection) -> bool:
    """Return whether only the rewriting of backups is left."""
    return _stored(connection).get("stage") == _BACKUPS


def complete_log(connection: Connection) -> WantedPurge | None:
    """Store that log and files are purged. Return the criteria if backups are to be rewritten, else ``None``."""
    stored = _stored(connection)
    if not stored.get("with_backups"):
        complete(connection)
        return None
    _store(connection, _BACKUPS, stored)
    return WantedPurge.from_json(stored["wanted"])


def complete(connection: Connection) -> None:
    """Store that the purge is complete."""
    meta_rows.taken(connection, meta_rows.PURGE)


def require_access(home: Home) -> None:
    """Raise `PurgeError` if a file or folder that a purge must search cannot be read."""
    paths = home.paths
    folders = (*(each.place(paths) for each in listing.FILES if each.is_searched), *home.beside)
    searched = chain(folders, *(folder.rglob("*") for folder in folders))
    closed = [*dict.fromkeys(map(permissions.barrier, filter(permissions.is_refused, searched)))]
    if closed:
        names, them = first_few(closed, permissions.MOST_NAMED), "it" if len(closed) == 1 else "them"
        told = f"{names} cannot be read, so a purge cannot look for the words in {them}."
        raise PurgeError(f"{told} {permissions.access_advice(*closed)}")
