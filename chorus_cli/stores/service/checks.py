"""Checks the log and the files that it names, the rest of a home, and the remains of killed processes."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path

from chorus_cli.core.errors import ChorusError, DatabaseBusyError, StorageError
from chorus_cli.core.text.phrases import counted, enumerated, first_few, size_in_words
from chorus_cli.editing.files import rescued_files
from chorus_cli.log.rows import operation_rows
from chorus_cli.machine.paths import STAGED, Paths, exposed
from chorus_cli.personas.service.personas import Personas
from chorus_cli.storage import file_lock, foreign_code
from chorus_cli.storage.files import is_stale, remove
from chorus_cli.storage.migrations import is_current, is_newer, made_by_newer
from chorus_cli.storage.permissions import (
    MOST_NAMED,
    access_advice,
    is_refused,
    is_there,
    refused,
    refused_folders,
)
from chorus_cli.storage.port import Connection
from chorus_cli.storage.sqlite import is_writable
from chorus_cli.storage.store import Store
from chorus_cli.stores.backup import archive, restoring
from chorus_cli.stores.listing import FILES
from chorus_cli.stores.purge import carrying_out
from chorus_cli.stores.rules.findings import Finding, Repair, fine, is_well, note, wrong
from chorus_cli.stores.salvage import examination
from chorus_cli.stores.salvage.examination import OpenDatabase
from chorus_cli.stores.service import stored_files

_MOST_TOLD = 5
_LEAST_FREE_BYTES = 100_000_000
_STALE_DAYS = 8
_MOUNTED_READ_ONLY = "Its file system is mounted read-only: mount it so that it can be written."


def check_log(places: Paths) -> Iterator[Finding]:
    """Yield the findings about the log; none while an incomplete restore is about to replace the log."""
    yield from unless_refused("log", _log(places))


def _log(places: Paths) -> Iterator[Finding]:
    if restoring.is_pending(places):
        return
    if not places.database.exists():
        yield note("log", f"There is no log yet: {places.database} does not exist.")
        return
    if is_refused(places.database):
        yield wrong("log", f"{places.database} cannot be read. {access_advice(places.database)}")
        return
    if places.database.stat().st_size == 0:
        yield wrong("log", f"{places.database} is empty (0 bytes); Chorus never leaves it so.", Repair.SALVAGE)
        return
    has_sound_pages = False
    try:
        with examination.opened_untrusted(places.database) as connection:
            if foreign := foreign_code.found(connection):
                told = f"The log has {enumerated(foreign)}, which Chorus did not make"
                them = "it" if len(foreign) == 1 else "them"
                yield wrong("code", f"{told}: SQLite may run {them} at any change of the log.", Repair.CODE)
            pages = tuple(_pages(connection, places.database))
            yield from pages
            # The rows of a damaged log cannot be checked one by one, and the rows of a newer log have another form.
            has_sound_pages = is_well(pages)
            if has_sound_pages:
                yield from _rows(connection, places)
    except DatabaseBusyError as error:
        yield wrong("log", str(error))
    except StorageError as error:
        repair = Repair.SALVAGE if places.database.is_file() and is_writable(places.database) else None
        yield wrong("rows" if has_sound_pages else "log", str(error), repair)


def _pages(connection: OpenDatabase, path: Path) -> Iterator[Finding]:
    if is_newer(connection):
        yield wrong("log", made_by_newer(path, "open"))
        return
    if changed := foreign_code.changed_tables(connection):
        yield wrong("log", f"In {path}, {changed}.", Repair.SALVAGE)
        return
    facts = examination.facts(connection)
    extent = f"{counted(facts.messages, 'message')} in {counted(facts.threads, 'thread')}"
    if damage := examination.damage(connection):
        yield wrong("log", f"{path} is damaged: {first_few(damage)}.", Repair.SALVAGE)
    else:
        yield fine("log", f"{path} is sound: {extent}, {size_in_words(path.stat().st_size)}.")


def _rows(connection: OpenDatabase, places: Paths) -> Iterator[Finding]:
    if changed := examination.changed(connection):
        differ = counted(len(changed), "message differs", "messages differ")
        ids = first_few([f"#{id_}" for id_ in changed])
        yield wrong("checksums", f"{differ} from the text that Chorus stored: {ids}.", Repair.CHECKSUMS)
    else:
        yield fine("checksums", "No message differs from the text that Chorus stored.")
    examination.require_texts(connection)
    yield from _damaged_rows(connection)
    if carrying_out.is_pending(connection):
        yield wrong("purge", "A purge is not complete. The next start of Chorus completes it.")
    else:
        yield from unless_refused("unnamed", _unnamed(connection, places))
    if damaged := examination.damaged_indexes(connection):
        told = f"The index of the {enumerated(damaged)} is damaged; the messages are not."
        yield wrong("index", told, Repair.INDEX)
    else:
        yield fine("index", "The indexes of search and memory are sound.")
    yield from unless_refused("sessions", _sessions(connection, places))
    yield from unless_refused("attachments", _attachments(connection, places))


def _damaged_rows(connection: OpenDatabase) -> Iterator[Finding]:
    operations = operation_rows.unreadable(connection) if is_current(connection) else []
    unread = [f"Operation {each.number} of the journal cannot be read." for each in operations]
    unreadable, lost = [*examination.unreadable(connection), *unread], examination.dangling_references(connection)
    told = [*unreadable[:_MOST_TOLD], *([f"The log has {lost}."] if lost else [])]
    told += filter(None, [examination.gone_messages(connection)])
    if told:
        told.append("A salvage keeps all texts, and restores lost rows if the newest sound backup has them.")
        yield (wrong if unreadable or lost else note)("rows", " ".join(told), Repair.SALVAGE)


def _sessions(connection: OpenDatabase, places: Paths) -> Iterator[Finding]:
    lost = [*stored_files.lost_sessions(connection, places)]
    if lost:
        more = [f"And {len(lost) - _MOST_TOLD:,} more."] if len(lost) > _MOST_TOLD else []
        yield wrong("sessions", " ".join([*lost[:_MOST_TOLD], *more]))
    else:
        number = len(stored_files.sessions(connection, places))
        told = f"{counted(number, 'saved session')} can be read." if number else "There are no saved sessions."
        yield fine("sessions", told)


def _attachments(connection: OpenDatabase, places: Paths) -> Iterator[Finding]:
    lost = stored_files.lost_attachments(connection, places)
    number = len(examination.named_attachments(connection))
    if lost:
        told = f"Of the attachments, {first_few([*lost.values()])}."
        yield wrong("attachments", told, Repair.ATTACHMENTS)
    elif number:
        yield fine("attachments", f"{counted(number, 'attachment')} unchanged.")


def _unnamed(connection: OpenDatabase, places: Paths) -> Iterator[Finding]:
    if paths := stored_files.unnamed_attachments(connection, places):
        told = f"{counted(len(paths), 'attachment')} ({size_in_words(size_bytes(paths))})"
        yield note("unnamed", f"No message, session or backup names {told}.", Repair.UNNAMED)


async def check_server(store: Store) -> Finding:
    """Return the finding about a log on a server, and make the tables of an empty log."""
    try:
        await store.open()
        version, size, messages, threads = await store.read(_facts_of_server)
    except ChorusError as error:
        return wrong("log", str(error))
    finally:
        await store.close()
    extent = f"{counted(messages, 'message')} in {counted(threads, 'thread')}"
    where = f"in a database of {size_in_words(size)}"
    return fine("log", f"{store.server} (PostgreSQL {version}) can be read: {extent}, {where}.")


def _facts_of_server(connection: Connection) -> tuple[str, int, int, int]:
    facts: tuple[str, int, int, int] = connection.execute(
        "SELECT current_setting('server_version'), pg_database_size(current_database()),"
        " (SELECT COUNT(*) FROM messages), (SELECT COUNT(*) FROM threads)"
    ).fetchone()
    return facts


def check_home(home: Paths, personas: Personas, now: datetime, server: str = "") -> Iterator[Finding]:
    """Yield the findings about access to a home, its disk, settings, backups and rescued texts."""
    if not server:
        yield from unless_refused("home", _writable(home))
    yield from _accessible(home)
    yield _permissions(home)
    yield from unless_refused("disk", _room(home))
    yield from unless_refused("settings", _settings(personas))
    if server:
        yield note("backups", f"Back up {server} there, for example with pg_dump; chorus backup makes a backup here.")
    else:
        yield from unless_refused("backups", _backups(home, now))
    yield from unless_refused("rescue", _rescued(home.rescue))


def unless_refused(subject: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings. If the system refuses access to a file or folder, the last finding says so."""
    try:
        yield from findings
    except OSError as error:
        yield wrong(subject, refused(error))


def _permissions(home: Paths) -> Finding:
    found = exposed(home)
    if not found:
        return fine("permissions", "Only you can read your files.")
    told = f"Other users of this machine can read {first_few(found)}."
    return wrong("permissions", f"{told} After the next start of Chorus, only you can.")


def _writable(home: Paths) -> Iterator[Finding]:
    """Yield a finding about the file or folder that prevents writing, if the log can be read but not written."""
    path = home.database
    if not is_there(path) or is_refused(path) or is_writable(path):
        return
    barrier = home.data if os.access(path, os.W_OK) else path
    is_on_read_only_disk = os.statvfs(home.data).f_flag & os.ST_RDONLY
    advice = _MOUNTED_READ_ONLY if is_on_read_only_disk else access_advice(barrier)
    yield wrong("home", f"{barrier} cannot be written, so nothing can be stored. {advice}")


def _accessible(home: Paths) -> Iterator[Finding]:
    found = refused_folders(home.data, home.config, home.state)
    if found:
        again = "; then run chorus doctor again" if len(found) > MOST_NAMED else ""
        yield wrong("access", f"{first_few(found, MOST_NAMED)} cannot be read. {access_advice(*found)}{again}")


def _room(home: Paths) -> Iterator[Finding]:
    place = next(path for path in (home.data, *home.data.parents) if path.exists())
    free = shutil.disk_usage(place).free
    size = home.database.stat().st_size if home.database.exists() else 0
    if free < max(_LEAST_FREE_BYTES, 2 * size):
        yield wrong("disk", f"Only {size_in_words(free)} is left on the disk of {home.data}. Make room there.")
    else:
        yield fine("disk", f"{size_in_words(free)} is left on the disk of {home.data}.")


def _settings(personas: Personas) -> Iterator[Finding]:
    try:
        known = personas.slugs()
    except ChorusError as error:
        yield wrong("settings", str(error))
        return
    warnings: list[str] = []
    for slug in known:
        try:
            warnings += personas.load(slug).warnings
        except ChorusError as error:
            warnings.append(str(error))
    for warning in dict.fromkeys(warnings):
        yield wrong("settings", warning)
    if not warnings:
        yield fine("settings", f"The settings of {counted(len(known), 'persona')} can be read.")


def _backups(home: Paths, now: datetime) -> Iterator[Finding]:
    if is_refused(home.backups):
        # The finding about access names a folder that the user may not read.
        return
    found = [path for path in archive.listed(home) if not archive.is_damaged(path)]
    if not found:
        yield note("backups", "There is no backup yet. The chat makes one each day; chorus backup makes one now.")
        return
    newest = found[-1]
    age_days = int((now.timestamp() - newest.stat().st_mtime) // 86_400)
    total = size_in_words(size_bytes(found))
    sentence = f"{counted(len(found), 'backup')} ({total}) in {home.backups}; the newest is {newest.name}"
    if age_days > _STALE_DAYS:
        yield note("backups", f"{sentence}, {age_days} days old. chorus backup makes one now.")
    else:
        yield fine("backups", f"{sentence}.")


def _rescued(folder: Path) -> Iterator[Finding]:
    if is_refused(folder):
        return
    found = rescued_files.find(folder)
    if found.unreadable:
        told = f"{found.unreadable[0]} holds texts that could not be stored, and cannot be read whole"
        yield wrong("rescue", f"{told}; open it in an editor.")
    elif found.texts:
        told = f"{counted(len(found.texts), 'text')} in {first_few(found.read)} could not be stored in the log"
        yield wrong("rescue", f"{told}: /rescue in the chat shows {'it' if len(found.texts) == 1 else 'them'}.")
    else:
        yield fine("rescue", "No text waits in a rescue file.")


def check_leftovers(home: Paths, now: datetime) -> Iterator[Finding]:
    """Yield the findings about the remains of killed processes."""
    if restoring.is_pending(home):
        told = "A restore is not complete. The next start of Chorus completes it; the log is examined after that."
        yield wrong("restore", told)
    left = temporary_files(home, now)
    if left:
        told = counted(len(left), "temporary file or folder", "temporary files and folders")
        size = size_in_words(size_bytes(left))
        others = ", such as" if len(left) > 1 else ":"
        yield note("leftovers", f"A killed Chorus has left {told} ({size}){others} {left[0]}.", Repair.LEFTOVERS)
    else:
        yield fine("leftovers", "There are no temporary files of a killed Chorus.")


def temporary_files(home: Paths, now: datetime) -> list[Path]:
    """Return the temporary files and folders that no process uses any more.

    A file counts as used if a temporary file in the same folder was changed within an hour. A restore may wait longer
    for the user's answer, so the folder of an undecided restore counts as used while any Chorus runs.
    """
    found = list(dict.fromkeys(chain.from_iterable(each.leftovers(home) for each in FILES)))
    outer = [path for path in found if not {*path.parents} & {*found}]
    is_alone = not running(home.run)
    in_use = {
        path.parent
        for path in outer
        if not all(is_stale(status.st_mtime, now.timestamp()) for status in _statuses(path))
    }
    return [path for path in outer if (is_alone if path.name.startswith(STAGED) else path.parent not in in_use)]


def running(run_folder: Path) -> tuple[str, ...]:
    """Return the runs whose lock files are locked. If the files cannot be read, return the error in place of a run."""
    try:
        return file_lock.held_in(run_folder) if run_folder.is_dir() else ()
    except OSError as error:
        return (str(error),)


def delete(paths: Iterable[Path]) -> None:
    """Delete files, and folders with all that is in them."""
    for path in paths:
        remove(path)


def size_bytes(paths: Iterable[Path]) -> int:
    """Return the size of all these files and of all files in these folders."""
    files = (status for path in paths for status in _statuses(path) if stat.S_ISREG(status.st_mode))
    return sum(status.st_size for status in files)


def _statuses(path: Path) -> Iterator[os.stat_result]:
    """Yield the facts about a file, or about a folder and all in it, except files that are deleted meanwhile."""
    for each in (path, *path.rglob("*")):
        try:
            yield each.lstat()
        except OSError:
            continue
