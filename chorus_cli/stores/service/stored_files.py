"""Finds lost files of sessions and attachments, brings them from backups, and finds attachments that nothing names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from hashlib import file_digest, sha256
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.errors import BackupError, DatabaseDamagedError, SessionError, StorageError
from chorus_cli.log.rules.attachments import digests_in, is_sha256
from chorus_cli.machine.paths import Paths
from chorus_cli.personas import files as persona_files
from chorus_cli.sessions import files as session_files
from chorus_cli.sessions import rows as session_rows
from chorus_cli.sessions.rules import format as session_format
from chorus_cli.sessions.rules.format import is_session_id
from chorus_cli.storage import drafts
from chorus_cli.storage.files import read_within, write_atomically
from chorus_cli.storage.migrations import is_current
from chorus_cli.storage.permissions import advised, is_refused, refused_folders
from chorus_cli.stores.backup import archive
from chorus_cli.stores.listing import ATTACHMENTS, PERSONAS
from chorus_cli.stores.purge import backups as purged_backups
from chorus_cli.stores.salvage import examination
from chorus_cli.stores.salvage.examination import OpenDatabase


class LostFile(NamedTuple):
    """A session or an attachment that the log names, but whose file is gone or changed.

    ``phrase`` tells the user about the loss. ``entry`` is the name of the file in a backup, empty if the file cannot be
    put back. ``is_right`` returns whether some bytes are the contents of the file.
    """

    path: Path
    phrase: str
    entry: str
    is_right: Callable[[bytes], bool]

    @property
    def may_be_purged(self) -> bool:
        """Whether the file in a backup may have purged texts. Attachments have none: messages still name them."""
        return self.entry.startswith(f"{PERSONAS.name}/")


class Copy(NamedTuple):
    """The bytes of a lost file, with the backup or the file beside the backups that has them."""

    lost: LostFile
    backup: Path
    data: bytes


def sessions(connection: OpenDatabase, places: Paths) -> list[tuple[str, str]]:
    """Return persona and id of each listed session, but not of deleted personas, whose files were moved."""
    listed = connection.execute("SELECT persona, session_id FROM sessions ORDER BY persona, session_id").fetchall()
    deleted = {persona for persona in {persona for persona, _ in listed} if _is_deleted(places, persona)}
    return [(persona, session_id) for persona, session_id in listed if persona not in deleted]


def lost_sessions(connection: OpenDatabase, places: Paths) -> Iterator[LostFile]:
    """Yield the sessions that cannot be read. A session without a file is left out if the log can give it."""
    for persona, session_id in sessions(connection, places):
        try:
            session_files.read(places.personas, persona, session_id)
        except SessionError as error:
            is_gone = isinstance(error.__cause__, FileNotFoundError) and is_current(connection)
            if is_gone and session_id in session_rows.restorable(connection, persona):
                continue
            path, entry = session_files.folder(places.personas, persona), ""
            if is_session_id(session_id) and persona_files.exists(places.personas, persona):
                path = session_files.path_of(places.personas, persona, session_id)
                is_in_the_way = is_refused(path.parent) or is_refused(path) or path.is_dir() or path.is_symlink()
                entry = "" if is_in_the_way else f"{PERSONAS.name}/{path.relative_to(places.personas).as_posix()}"
            yield LostFile(path, advised(error), entry, _is_session)


def lost_attachments(connection: OpenDatabase, places: Paths) -> Iterator[LostFile]:
    """Yield the attachments that messages name and that are gone or changed."""
    for digest, message_id in examination.named_attachments(connection).items():
        path = places.attachments / digest[:2] / digest
        found = _digest(path) if is_sha256(digest) and path.is_file() else ""
        if is_sha256(digest) and found != digest:
            phrase = f"the one of message #{message_id}{f', {path}, has changed' if found else ' is gone'}"
            entry = "" if path.is_symlink() or path.is_dir() else f"{ATTACHMENTS.name}/{digest[:2]}/{digest}"
            yield LostFile(path, phrase, entry, partial(_has_digest, digest))


def copies(connection: OpenDatabase, places: Paths, lost: Sequence[LostFile]) -> Iterator[Copy]:
    """Yield the right bytes of lost files: from the file beside the backups, or from the newest backup that has them.

    No session is taken from a backup with messages that were purged since: the session may have their texts too.
    """
    wanted = {each.entry: each for each in lost if each.entry}
    for entry, each in [*wanted.items()]:
        beside = places.backups / entry
        with suppress(OSError):
            data = read_within(beside, limits.STORED_ATTACHMENT)
            if each.is_right(data):
                yield Copy(wanted.pop(entry), beside, data)
    withheld = _with_purged(connection, places) if any(each.may_be_purged for each in wanted.values()) else ()
    for each_backup in reversed(archive.listed(places)) if wanted else ():
        path = each_backup.path
        for found in _found(path, [each for each in wanted.values() if not (each.may_be_purged and path in withheld)]):
            # An archive can have two entries of one name.
            if wanted.pop(found.lost.entry, None):
                yield found


def _found(backup: Path, wanted: Sequence[LostFile]) -> Iterator[Copy]:
    by_entry = {each.entry: each for each in wanted}
    with suppress(BackupError):
        for entry, data in archive.read_entries(backup, by_entry, limits.STORED_ATTACHMENT.most) if by_entry else ():
            if by_entry[entry].is_right(data):
                yield Copy(by_entry[entry], backup, data)


def bring(found: Copy, aside: Path, now: datetime) -> Path | None:
    """Write a lost file anew. Copy a damaged session, which a user may have edited, to ``aside``; return the copy."""
    path, kept = found.lost.path, None
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_file() and path.parent.name == session_files.SESSIONS_FOLDER:
        kept = drafts.keep_damaged(aside, path, path.parents[1].name, now)
    write_atomically(path, found.data)
    return kept


def unnamed_attachments(connection: OpenDatabase, places: Paths) -> tuple[list[Path], bool]:
    """Return the attachments that no message, operation or session names and no backup needs.

    Also return whether this is certain: everything that may name an attachment can be read.
    """
    files = {path.name: path for path in ATTACHMENTS.files(places) if is_sha256(path.name)}
    for digest in examination.digests(connection) & {*files}:
        del files[digest]
    is_certain = not (files and examination.unreadable(connection))
    backups = [each.path for each in archive.listed(places)]
    looks = [*((_in_session, path) for path in _session_files(places)), *((_needed, path) for path in backups)]
    for look, path in looks if files else ():
        try:
            for digest in look(places, path):
                files.pop(digest, None)
        except (OSError, BackupError, StorageError):
            is_certain = False
    return sorted(files.values()), is_certain


def _with_purged(connection: OpenDatabase, places: Paths) -> frozenset[Path]:
    """Return the backups that hold purged texts, or that cannot be read."""
    try:
        rows = purged_backups.rows_purged(connection)
    except DatabaseDamagedError:
        # The damaged journal does not tell the purged rows, so any backup may hold them.
        return frozenset(each.path for each in archive.listed(places))
    holding = purged_backups.holding(places, rows) if any(rows.values()) else purged_backups.Holding((), ())
    return frozenset({*holding.backups, *holding.unreadable})


def _is_session(data: bytes) -> bool:
    try:
        session_format.read(data.decode("utf-8-sig"))
    except (SessionError, UnicodeDecodeError):
        return False
    return True


def _has_digest(digest: str, data: bytes) -> bool:
    return sha256(data).hexdigest() == digest


def _is_deleted(places: Paths, persona: str) -> bool:
    """Return whether a persona was deleted, and its folder moved to the backups."""
    is_there = persona_files.exists(places.personas, persona)
    return not is_there and persona_files.was_moved_away(persona, places.deleted_personas)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _session_files(places: Paths) -> Iterable[Path]:
    pattern = f"*/{session_files.SESSIONS_FOLDER}/*{session_files.ENDING}"
    folders = (places.personas, places.deleted_personas)
    return [*refused_folders(places.personas, places.backups), *chain(*(each.glob(pattern) for each in folders))]


def _in_session(_places: Paths, path: Path) -> list[str]:
    return digests_in(read_within(path, limits.SESSION))


def _needed(places: Paths, path: Path) -> frozenset[str]:
    """Return the attachments that a backup names but that are neither in it nor beside it."""
    if path.name.startswith(archive.DAMAGED):
        raise BackupError(f"{path} is a damaged log that was kept.")
    if path.suffix == ".db":
        with examination.opened_untrusted(path) as connection:
            return examination.digests(connection)
    manifest = archive.read_manifest(path)
    names = () if manifest.holds_attachments else manifest.attachments
    return frozenset(Path(name).name for name in names if not (places.kept_attachments / name).is_file())
