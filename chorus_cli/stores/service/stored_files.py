"""Finds lost sessions and attachments, restores attachments from backups, and finds attachments that nothing names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import file_digest, sha256
from itertools import chain
from pathlib import Path

from chorus_cli.core import limits
from chorus_cli.core.errors import BackupError, SessionError, StorageError
from chorus_cli.log.rules.attachments import digests_in, is_sha256
from chorus_cli.machine.paths import Paths
from chorus_cli.personas import files as persona_files
from chorus_cli.sessions import files as session_files
from chorus_cli.sessions import rows as session_rows
from chorus_cli.storage.files import read_within, write_atomically
from chorus_cli.storage.migrations import is_current
from chorus_cli.storage.permissions import advised, refused_folders
from chorus_cli.stores.backup import archive
from chorus_cli.stores.listing import ATTACHMENTS
from chorus_cli.stores.salvage import examination
from chorus_cli.stores.salvage.examination import OpenDatabase


def sessions(connection: OpenDatabase, places: Paths) -> list[tuple[str, str]]:
    """Return persona and id of each listed session, without the sessions of deleted personas."""
    listed = connection.execute("SELECT persona, session_id FROM sessions ORDER BY persona, session_id")
    return [(persona, session_id) for persona, session_id in listed if persona_files.exists(places.personas, persona)]


def lost_sessions(connection: OpenDatabase, places: Paths) -> Iterator[str]:
    """Yield sentences about sessions that cannot be read. A missing file is no loss if the log has the session."""
    for persona, session_id in sessions(connection, places):
        try:
            session_files.read(places.personas, persona, session_id)
        except SessionError as error:
            is_in_log = is_current(connection) and session_id in session_rows.restorable(connection, persona)
            if not (is_in_log and isinstance(error.__cause__, FileNotFoundError)):
                advice = "Mend or delete the file: the log has the session."
                if not is_in_log:
                    advice = f"A backup in {places.backups} may have the file: copy it from that zip archive."
                is_closed = isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError)
                yield advised(error) if is_closed else f"{error} {advice}"


def lost_attachments(connection: OpenDatabase, places: Paths) -> dict[Path, str]:
    """Return the attachments that messages name and that are gone or changed, each with a phrase for the user."""
    lost = {}
    for digest, message_id in examination.named_attachments(connection).items():
        path = places.attachments / digest[:2] / digest
        found = _digest(path) if is_sha256(digest) and path.is_file() else ""
        if is_sha256(digest) and found != digest:
            lost[path] = f"the one of message #{message_id}{f', {path}, has changed' if found else ' is gone'}"
    return lost


def bring(places: Paths, lost: Iterable[Path]) -> Counter[Path]:
    """Write lost attachments anew, from the files beside the backups or from the newest backups that have them.

    Return how many came from each file or backup.
    """
    # If the user put a link in the place of a file, nothing is written through it.
    wanted = {f"{ATTACHMENTS.name}/{path.parent.name}/{path.name}": path for path in lost if not path.is_symlink()}
    sources = Counter[Path]()

    def take(entry: str, source: Path, data: bytes) -> None:
        # An archive can have two entries of one name.
        if entry in wanted and sha256(data).hexdigest() == wanted[entry].name:
            path = wanted.pop(entry)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(path, data)
            sources[source] += 1

    for entry in [*wanted]:
        if (beside := places.backups / entry).is_file():
            take(entry, beside, beside.read_bytes())
    for backup in reversed(archive.listed(places)) if wanted else ():
        with suppress(BackupError):
            for entry, data in archive.read_entries(backup, {*wanted}, limits.STORED_ATTACHMENT.most):
                take(entry, backup, data)
    return sources


def unnamed_attachments(connection: OpenDatabase, places: Paths) -> list[Path]:
    """Return the attachments that no message, operation or session names and no backup needs.

    Return none if something that may name attachments cannot be read.
    """
    in_log = examination.digests(connection)
    files = [path for path in ATTACHMENTS.files(places) if is_sha256(path.name) and path.name not in in_log]
    if not files or examination.unreadable(connection):
        return []
    try:
        of_sessions = (digests_in(read_within(path, limits.SESSION)) for path in _session_files(places))
        of_backups = (_needed(places, path) for path in archive.listed(places))
        named = {*chain.from_iterable(of_sessions), *chain.from_iterable(of_backups)}
    except (OSError, BackupError, StorageError):
        return []
    return [path for path in files if path.name not in named]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _session_files(places: Paths) -> Iterable[Path]:
    pattern = f"*/{session_files.SESSIONS_FOLDER}/*{session_files.ENDING}"
    folders = (places.personas, places.deleted_personas)
    return [*refused_folders(places.personas, places.backups), *chain(*(each.glob(pattern) for each in folders))]


def _needed(places: Paths, path: Path) -> frozenset[str]:
    """Return the attachments that a backup needs from the home."""
    if archive.is_damaged(path):
        raise BackupError(f"{path} is a damaged log that was kept.")
    if path.suffix == ".db":
        with examination.opened_untrusted(path) as connection:
            return examination.digests(connection)
    manifest = archive.read_manifest(path)
    names = () if manifest.holds_attachments else manifest.attachments
    return frozenset(Path(name).name for name in names if not (places.kept_attachments / name).is_file())
