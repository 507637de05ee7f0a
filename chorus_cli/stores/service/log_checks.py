"""Checks of the log: its pages, its texts, its index, and the files that it names."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from chorus_cli.core.errors import DatabaseBusyError, StorageError
from chorus_cli.core.text.phrases import counted, enumerated, size_in_words
from chorus_cli.log.rows import operation_rows
from chorus_cli.storage import file_lock, foreign_code
from chorus_cli.storage.errors import folder_in_the_way
from chorus_cli.storage.migrations import is_current, is_newer
from chorus_cli.storage.permissions import access_advice, is_refused
from chorus_cli.stores.backup import restoring, salvaging
from chorus_cli.stores.purge import carrying_out
from chorus_cli.stores.rules.findings import Finding, Repair, State, fine, is_well, note, wrong
from chorus_cli.stores.salvage import copying, examination
from chorus_cli.stores.service import home_checks, stored_files
from chorus_cli.stores.service.home_checks import unless_refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from chorus_cli.log.rules.messages import Runs
    from chorus_cli.machine.paths import Paths
    from chorus_cli.stores.salvage.copying import OpenDatabase
    from chorus_cli.stores.service.stored_files import LostFile

_MOST_NAMED = 5


def check_log(places: Paths, run_folder: Path) -> Iterator[Finding]:
    """Yield the findings about the log; nothing in it is changed. ``run_folder`` has the lock files of processes.

    There are none while a restore is not complete: its log and the files that it names are about to come.
    """
    yield from unless_refused("log", _log(places, run_folder))


def _log(places: Paths, run_folder: Path) -> Iterator[Finding]:
    if restoring.is_pending(places):
        return
    if not places.database.exists():
        yield note("log", f"There is no log yet: {places.database} does not exist.")
        return
    if places.database.is_dir():
        yield wrong("log", str(folder_in_the_way(places.database)))
        return
    if is_refused(places.database):
        yield wrong("log", f"{places.database} cannot be read. {access_advice(places.database)}")
        return
    if places.database.stat().st_size == 0:
        yield wrong("log", f"{places.database} is empty (0 bytes), which Chorus never leaves behind.", Repair.SALVAGE)
        return
    try:
        with copying.opened_untrusted(places.database) as connection:
            if foreign := foreign_code.found(connection):
                are, them = ("is", "it") if len(foreign) == 1 else ("are", "them")
                told = f"In the log, {enumerated(foreign)} {are} not of Chorus"
                yield wrong("code", f"{told}: SQLite may run {them} with any change of the log.", Repair.CODE)
            pages = tuple(_pages(connection, places.database))
            yield from pages
            # Of a damaged log the rows cannot be told one by one, and of a newer one they have another form.
            if is_well(pages):
                yield from _rows(connection, places, run_folder)
    except DatabaseBusyError as error:
        yield wrong("log", str(error))
    except StorageError as error:
        yield wrong("log", str(error), Repair.SALVAGE)


def _pages(connection: OpenDatabase, path: Path) -> Iterator[Finding]:
    if is_newer(connection):
        yield wrong("log", f"{path} was made by a newer Chorus. Update Chorus to open it.")
        return
    if changed := foreign_code.changed_tables(connection):
        yield wrong("log", f"{path} lacks {enumerated(changed)} as made by Chorus.", Repair.SALVAGE)
        return
    facts = copying.facts(connection)
    faults = examination.faults(connection)
    extent = f"{counted(facts.messages, 'message')} in {counted(facts.threads, 'thread')}"
    if faults and examination.concerns_log(connection):
        yield wrong("log", f"{path} is damaged: {_some(faults)}.", Repair.SALVAGE)
    else:
        yield fine("log", f"{path} is sound: {extent}, {size_in_words(path.stat().st_size)}.")


def _rows(connection: OpenDatabase, places: Paths, run_folder: Path) -> Iterator[Finding]:
    checked = examination.checked(connection)
    if checked.changed:
        ids = _some([f"#{id_}" for id_ in checked.changed])
        differ = "differs" if len(checked.changed) == 1 else "differ"
        sentence = f"{counted(len(checked.changed), 'message')} {differ} from the text that was written: {ids}."
        yield wrong("checksums", sentence, Repair.CHECKSUMS)
    else:
        added = f"; {checked.without:,} put in with plain SQL have no checksum" if checked.without else ""
        yield fine("checksums", f"{counted(checked.read - checked.without, 'message')} as written{added}.")
    if texts := examination.undecodable(connection):
        # What follows reads these rows.
        yield wrong("rows", f"{_some(texts)}. A salvage keeps all that can be read of them.", Repair.SALVAGE)
        return
    yield from unless_refused("backups", _damaged_rows(connection, places))
    yield from _cut_off(connection, run_folder)
    if carrying_out.is_pending(connection):
        told = "A purge is not complete. The next start of Chorus carries it on."
        yield wrong("purge", told, Repair.PURGE if is_current(connection) else None)
    else:
        yield from unless_refused("unnamed", _unnamed(connection, places, run_folder))
    if damaged := examination.damaged_indexes(connection):
        told = f"The index of the {enumerated(damaged)} is damaged; no message is concerned."
        yield wrong("index", told, Repair.INDEX)
    else:
        yield fine("index", "The indexes of search and memory are sound.")
    yield from unless_refused("sessions", _sessions(connection, places))
    yield from unless_refused("attachments", _attachments(connection, places))


def _damaged_rows(connection: OpenDatabase, places: Paths) -> Iterator[Finding]:
    operations = operation_rows.unreadable(connection) if is_current(connection) else []
    unread = [f"Operation {each.number} of the journal cannot be read." for each in operations]
    unreadable, lost = [*examination.unreadable(connection), *unread], examination.dangling_references(connection)
    gone = examination.gaps(connection)
    told = [*unreadable[:_MOST_NAMED], *([f"The log has {enumerated(lost)}."] if lost else []), *_gone(gone)]
    if told:
        # A salvage makes a thread that is gone anew.
        missing = examination.missing(connection).keys()
        backup = salvaging.backup_with_missing(places, connection)
        is_mendable = bool(unreadable) or "threads" in missing or backup is not None
        told += ["A salvage keeps all texts."] if is_mendable else []
        if missing - {"threads"}:
            source = f"{backup} has" if backup else "No backup has"
            told.append(f"{source} rows that are gone.")
        state = State.WRONG if is_mendable or lost else State.NOTE
        yield Finding("rows", state, " ".join(told), Repair.SALVAGE if is_mendable else None)


def _gone(gone: Runs) -> Iterator[str]:
    number = sum(last - first + 1 for first, last in gone)
    if number:
        ids = [f"#{id_}" for id_ in islice(examination.each_of(gone), _MOST_NAMED)]
        ids += [f"{number - len(ids):,} more"] if number > len(ids) else []
        yield f"{counted(number, 'message')} {'is' if number == 1 else 'are'} gone: {enumerated(ids)}."


def _cut_off(connection: OpenDatabase, run_folder: Path) -> Iterator[Finding]:
    rows = examination.rows_in_progress(connection)
    dead = [f"#{id_}" for id_, run in rows if run is None or not file_lock.may_be_locked(run_folder / run)]
    if dead:
        told = f"{counted(len(dead), 'reply or call', 'replies and calls')} ({_some(dead)})"
        ended = "was cut off when its process" if len(dead) == 1 else "were cut off when their process"
        sentence = f"{told} {ended} ended. The next start of Chorus settles that."
        yield note("interrupted", sentence, Repair.INTERRUPTED if is_current(connection) else None)


def _sessions(connection: OpenDatabase, places: Paths) -> Iterator[Finding]:
    lost = [*stored_files.lost_sessions(connection, places)]
    if lost:
        told = _some([each.phrase for each in lost], " ")
        yield _lost(connection, places, lost, Finding("sessions", State.WRONG, told, Repair.SESSIONS))
    else:
        number = len(stored_files.sessions(connection, places))
        yield fine("sessions", f"{counted(number, 'saved session')} can be read.")


def _attachments(connection: OpenDatabase, places: Paths) -> Iterator[Finding]:
    lost = [*stored_files.lost_attachments(connection, places)]
    number = len(examination.named_attachments(connection))
    if lost:
        told = f"Of the attachments, {_some([each.phrase for each in lost])}."
        yield _lost(connection, places, lost, Finding("attachments", State.WRONG, told, Repair.ATTACHMENTS))
    elif number:
        yield fine("attachments", f"{counted(number, 'attachment')} as stored.")


def _lost(connection: OpenDatabase, places: Paths, lost: Sequence[LostFile], finding: Finding) -> Finding:
    """Return the finding about lost files with a sentence about the backups that have them; only those are offered."""
    found = [each.backup for each in stored_files.copies(connection, places, lost)]
    it = "it" if len(lost) == 1 else "them"
    obstacles = [each.obstacle for each in lost if each.obstacle]
    if found and len(found) < len(lost):
        source = f"Backups have {len(found):,} of these {len(lost):,}."
    elif found:
        source = f"{f'{found[0]} has' if len({*found}) == 1 else 'Backups have'} {it}."
    elif len(obstacles) == len(lost):
        source = ""
    elif not all(each.can_be_written for each in lost):
        source = "chorus restore brings a whole backup back."
    elif stored_files.are_withheld(connection, places, lost):
        held = f"The backups that have {it} hold messages that were purged since"
        source = f"{held}; a purge with --backups rewrites them."
    else:
        source = f"No backup has {it}."
    told = " ".join(filter(None, (finding.sentence, _some(obstacles, " "), source)))
    return finding._replace(sentence=told, repair=finding.repair if found else None)


def _unnamed(connection: OpenDatabase, places: Paths, run_folder: Path) -> Iterator[Finding]:
    paths, doubt = stored_files.unnamed_attachments(connection, places)
    if not paths:
        return
    size = size_in_words(home_checks.size_bytes(paths))
    are, them = ("is", "it") if len(paths) == 1 else ("are", "them")
    told = f"{counted(len(paths), 'attachment')} ({size}) {are} named by"
    if home_checks.running(run_folder):
        yield note("unnamed", f"{told} no message. A Chorus that runs may still send {them}, so nothing is offered.")
    elif doubt:
        reason = f"something else may need {them}, so nothing is offered: {doubt}"
        yield note("unnamed", f"{told} nothing that can be read, but {reason}.")
    else:
        yield note("unnamed", f"{told} no message, session or backup.", Repair.UNNAMED)


def _some(sentences: Sequence[str], between: str = ", ") -> str:
    """Join the first few of some sentences and count the others."""
    more = f"{between}and {len(sentences) - _MOST_NAMED:,} more" if len(sentences) > _MOST_NAMED else ""
    return between.join(sentences[:_MOST_NAMED]) + more
