"""The repairs that ``chorus doctor`` offers; each is carried out once the user has agreed."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from chorus_cli.core.text.phrases import counted, enumerated, size_in_words
from chorus_cli.core.time import timestamps
from chorus_cli.machine.clock import SystemClock
from chorus_cli.machine.paths import Paths
from chorus_cli.storage import foreign_code
from chorus_cli.stores.backup import archive, restoring, salvaging
from chorus_cli.stores.backup.salvaging import Counts
from chorus_cli.stores.listing import home_in
from chorus_cli.stores.rules.findings import Repair
from chorus_cli.stores.salvage import examination
from chorus_cli.stores.service import checks, stored_files
from chorus_cli.subcommands.backup import alone
from chorus_cli.terminal.screen.output import agreed, standard_output
from chorus_cli.terminal.screen.painted_rows import Progress, Wait

_EMPTY = "The new log would have no message. Answer n, and restore another copy of the log with: chorus restore FILE."


async def _renew_index(home: Paths) -> bool:
    with examination.opened(home.database) as connection:
        examination.renew_indexes(connection)
    standard_output().paragraph("The damaged index is gone; the next search fills a new one.")
    return True


async def _remove_code(home: Paths) -> bool:
    with examination.opened(home.database) as connection:
        connection.execute("BEGIN IMMEDIATE")
        removed = foreign_code.remove(connection)
        connection.execute("COMMIT")
    standard_output().paragraph(f"Removed {enumerated(removed)} from the log.")
    return True


@contextmanager
def _alone(home: Paths) -> Iterator[Callable[[], None]]:
    """Do the work of the block only if no other Chorus runs and no restore is pending; see `alone`."""
    with alone(home) as refuse_others:
        restoring.require_none_pending(home)
        yield refuse_others


async def _bring_texts(home: Paths) -> bool:
    with _alone(home), examination.opened(home.database) as connection, tempfile.TemporaryDirectory() as folder:
        changed = examination.changed(connection)
        if not changed:
            return True
        without = examination.purged(connection)
        copy, remaining = Path(folder) / "backup.db", changed
        connection.execute("BEGIN IMMEDIATE")
        for backup in salvaging.sound_logs(home, copy, without):
            missing = examination.bring(connection, remaining, copy)
            if brought := len(remaining) - len(missing):
                standard_output().paragraph(f"Restored {counted(brought, 'text')} from {backup}.")
            remaining = missing
            if not remaining:
                break
        connection.execute("COMMIT")
        if not remaining:
            return True
        number = len(remaining)
        question = (
            f"No sound backup has the original text of {counted(number, 'message')}. Keep the log's present text?"
        )
        is_agreed = await agreed(question, standard_output())
        if is_agreed:
            connection.execute("BEGIN IMMEDIATE")
            examination.accept(connection, remaining)
            connection.execute("COMMIT")
        texts = "text of 1 message is" if number == 1 else f"texts of {number:,} messages are"
        left = "unchanged; chorus doctor will report the difference again"
        standard_output().paragraph(f"The present {texts} {'accepted now' if is_agreed else left}.")
    return is_agreed


async def _salvage(home: Paths) -> bool:
    now, wait = SystemClock().now(), Wait("salvaging the log", silent_seconds=1.0)
    with ExitStack() as work:
        refuse_others = work.enter_context(_alone(home))
        with Progress(standard_output()).of(wait):
            folder, counts = await asyncio.to_thread(work.enter_context, salvaging.salvaged(home))
        standard_output().paragraph(_counts(counts))
        is_empty = not counts.read + counts.from_backup
        remaining = _remaining(home_in(folder).database)
        if remaining:
            standard_output().paragraph(f"These faults would remain: {enumerated(remaining)}.")
        if is_empty:
            standard_output().paragraph(_EMPTY)
        if not await agreed("Use the salvaged log? The damaged one is kept beside the backups.", standard_output()):
            standard_output().paragraph("The damaged log is as it was.")
            return False
        refuse_others()
        kept = None
        if home.database.exists():
            kept = archive.set_aside(home, f"{timestamps.local(now):%Y-%m-%d_%H%M%S}")
        restoring.put_in_place(home, folder)
    aside = f" The damaged one is kept as {kept}." if kept else ""
    standard_output().paragraph(f"The salvaged log is in use now.{aside}")
    return not remaining and not is_empty


def _remaining(log: Path) -> list[str]:
    """Return phrases that count a log's unreadable messages and its references to missing rows."""
    with examination.opened(log) as connection:
        unreadable = len(examination.unreadable(connection))
        told = counted(unreadable, "message that cannot be read", "messages that cannot be read")
        return [*filter(None, [told if unreadable else "", examination.dangling_references(connection)])]


def _counts(counts: Counts) -> str:
    brought = f", {counts.from_backup:,} restored from {counts.backup}" if counts.backup else ""
    differ = "differs" if counts.changed == 1 else "differ"
    changed = f"{counts.changed:,} of them {differ} from the text that Chorus stored." if counts.changed else ""
    return " ".join(filter(None, [f"{counted(counts.read, 'message')} could be read{brought}.", changed, *counts.gone]))


async def _bring(home: Paths) -> bool:
    """Bring lost attachments from backups, and return whether all were brought."""
    with _alone(home), examination.opened(home.database) as connection:
        lost = stored_files.lost_attachments(connection, home)
        sources = stored_files.bring(home, lost)
    for backup, number in sources.items():
        standard_output().paragraph(f"Restored {counted(number, 'file')} from {backup}.")
    if missing := len(lost) - sources.total():
        told = f"{counted(missing, 'attachment')} could not be restored. chorus doctor names what is lost."
        standard_output().paragraph(told)
    return not missing


async def _delete_unnamed(home: Paths) -> bool:
    with _alone(home), examination.opened(home.database) as connection:
        paths = stored_files.unnamed_attachments(connection, home)
    # Looking into backups takes a while. Another Chorus may have started meanwhile.
    with _alone(home), examination.opened(home.database) as connection:
        named = examination.digests(connection)
        _deleted([each for each in paths if each.name not in named], "attachment")
    return True


async def _delete_leftovers(home: Paths) -> bool:
    found = checks.temporary_files(home, SystemClock().now())
    _deleted(found, "temporary file or folder", "temporary files and folders")
    return True


def _deleted(paths: Sequence[Path], thing: str, things: str = "") -> None:
    """Delete files and folders, and tell the user."""
    size = size_in_words(checks.size_bytes(paths))
    checks.delete(paths)
    standard_output().paragraph(f"Deleted {counted(len(paths), thing, things)} ({size}).")


MENDS: Mapping[Repair, Callable[[Paths], Awaitable[bool]]] = {
    Repair.INDEX: _renew_index,
    Repair.CODE: _remove_code,
    Repair.CHECKSUMS: _bring_texts,
    Repair.SALVAGE: _salvage,
    Repair.ATTACHMENTS: _bring,
    Repair.UNNAMED: _delete_unnamed,
    Repair.LEFTOVERS: _delete_leftovers,
}
"""The function that carries out each repair, and returns whether the whole fault is gone."""
