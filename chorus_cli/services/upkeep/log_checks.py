"""Checks of the log: its pages, its texts, its index, and the files that it names."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ChorusError, DatabaseBusyError, StorageError
from chorus_cli.core.text.phrases import counted, enumerated, size_in_words
from chorus_cli.core.upkeep.findings import Finding, Mend, fine, is_well, note, wrong
from chorus_cli.storage.files import session_files
from chorus_cli.storage.purges import carrying_out
from chorus_cli.storage.sqlite.migrations import is_newer
from chorus_cli.storage.sqlite.upkeep import checksums, copying, examination, soundness

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from chorus_cli.storage.backups.places import Places
    from chorus_cli.storage.sqlite.upkeep.copying import OpenDatabase

_MOST_NAMED = 5


def check_log(places: Places) -> Iterator[Finding]:
    """Yield the findings about the log; nothing in it is changed."""
    if not places.database.exists():
        yield note("log", f"There is no log yet: {places.database} does not exist.")
        return
    if places.database.stat().st_size == 0:
        yield wrong("log", f"{places.database} is empty (0 bytes), which Chorus never leaves behind.", Mend.SALVAGE)
        return
    try:
        with copying.opened(places.database) as connection:
            pages = tuple(_pages(connection, places.database))
            yield from pages
            # Of a damaged log the rows cannot be told one by one, and of a newer one they have another form.
            if is_well(pages):
                yield from _rows(connection, places)
    except DatabaseBusyError as error:
        yield wrong("log", str(error))
    except StorageError as error:
        yield wrong("log", str(error), Mend.SALVAGE)


def _pages(connection: OpenDatabase, path: Path) -> Iterator[Finding]:
    """Yield the findings about the file.

    Raises:
        StorageError: its rows cannot be examined.
    """
    facts = copying.facts(connection)
    if is_newer(connection):
        yield wrong("log", f"{path} was made by a newer Chorus. Update Chorus to open it.")
        return
    faults = soundness.faults(connection)
    extent = f"{counted(facts.messages, 'message')} in {counted(facts.threads, 'thread')}"
    if faults and soundness.concerns_log(connection):
        yield wrong("log", f"{path} is damaged: {_some(faults)}.", Mend.SALVAGE)
    else:
        yield fine("log", f"{path} is sound: {extent}, {size_in_words(path.stat().st_size)}.")


def _rows(connection: OpenDatabase, places: Places) -> Iterator[Finding]:
    checked = checksums.checked(connection)
    if checked.changed:
        ids = _some([f"#{id_}" for id_ in checked.changed])
        differ = "differs" if len(checked.changed) == 1 else "differ"
        sentence = f"{counted(len(checked.changed), 'message')} {differ} from the text that was written: {ids}."
        yield wrong("checksums", sentence, Mend.CHECKSUMS)
    else:
        added = f"; {checked.without:,} put in with plain SQL have no checksum" if checked.without else ""
        yield fine("checksums", f"{counted(checked.read - checked.without, 'message')} as written{added}.")
    if unreadable := examination.unreadable(connection):
        yield wrong("rows", _some(unreadable, " "))
    if lost := examination.orphans(connection):
        yield wrong("rows", f"There are {enumerated(lost)}.")
    if carrying_out.is_pending(connection):
        yield wrong("purge", "A purge is not complete. The next start of Chorus carries it on.")
    yield from _index(connection)
    yield from _sessions(connection, places)
    yield from _attachments(connection, places)


def _index(connection: OpenDatabase) -> Iterator[Finding]:
    damaged = examination.damaged_indexes(connection)
    if damaged:
        yield wrong("index", f"The index of the {enumerated(damaged)} is damaged; no message is concerned.", Mend.INDEX)
    else:
        yield fine("index", "The indexes of search and memory are sound.")


def _sessions(connection: OpenDatabase, places: Places) -> Iterator[Finding]:
    listed = examination.sessions(connection)
    problems = []
    for persona, session_id in listed:
        try:
            session_files.read(places.personas, persona, session_id)
        except ChorusError as error:
            problems.append(str(error))
    if problems:
        yield wrong("sessions", f"{_some(problems, ' ')} A backup may have the file.")
    else:
        yield fine("sessions", f"{counted(len(listed), 'saved session')} can be read.")


def _attachments(connection: OpenDatabase, places: Places) -> Iterator[Finding]:
    named = {each.sha256: each.message_id for each in examination.named_attachments(connection)}
    problems = []
    for digest, message_id in named.items():
        path = places.attachments / digest[:2] / digest
        if not path.is_file():
            problems.append(f"that of message #{message_id} is gone")
        elif _digest(path) != digest:
            problems.append(f"that of message #{message_id}, {path}, has changed")
    if problems:
        yield wrong("attachments", f"Of the attachments, {_some(problems)}. A backup may have it.")
    elif named:
        yield fine("attachments", f"{counted(len(named), 'attachment')} as stored.")


def _digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(1_000_000):
            digest.update(chunk)
    return digest.hexdigest()


def _some(sentences: Sequence[str], between: str = ", ") -> str:
    """Join the first few of some sentences and count the others."""
    more = f"{between}and {len(sentences) - _MOST_NAMED:,} more" if len(sentences) > _MOST_NAMED else ""
    return between.join(sentences[:_MOST_NAMED]) + more
