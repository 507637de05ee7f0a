"""``chorus backup`` and ``chorus restore``. Neither needs a log that the chat can open."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from chorus_cli.core.errors import BackupError, CommandError
from chorus_cli.core.text.phrases import counted, enumerated, first_few
from chorus_cli.core.time import timestamps
from chorus_cli.machine.clock import SystemClock
from chorus_cli.machine.paths import Paths, paths
from chorus_cli.run_storage import chosen_log, log_store, running
from chorus_cli.startup import finish_restore
from chorus_cli.storage import file_lock, typed_paths
from chorus_cli.stores.backup import archive, restoring
from chorus_cli.stores.backup.restoring import Staged
from chorus_cli.stores.listing import home_in
from chorus_cli.stores.purge.backups import purged_since
from chorus_cli.stores.service.backups import Backups, contents_in_words, keep_present
from chorus_cli.subcommands.conventions import print_json
from chorus_cli.subcommands.exit_codes import DONE, FAILED
from chorus_cli.terminal.screen.output import agreed, declined, standard_error, standard_output

_MOST_NAMED = 3


async def backup(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Write a backup of everything, to a file or beside the daily backups."""
    home = paths(environment, vars(chosen).get("home"))
    log = log_store(home, chosen_log(home, environment, vars(chosen).get("log")))
    if not (log.server or home.database.exists()):
        raise BackupError(f"There is no log in {home.data} yet, so there is nothing to back up.")
    server = log.engine_apart() if log.server else None
    made = await Backups(home, SystemClock(), server=server).make(typed_paths.escaped([chosen.file or ""]))
    if chosen.json:
        print_json(made.as_json())
    else:
        standard_output().paragraph(made.sentence())
    return DONE


async def restore(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Show a backup and ask. Then back up the present state, and replace it with the contents of the backup."""
    archive.require_backup(chosen.file)
    home = paths(environment, vars(chosen).get("home"))
    if server := log_store(home, chosen_log(home, environment, vars(chosen).get("log"))).server:
        raise BackupError(
            f"The log is at {server}, and a backup is restored into the log of this machine: chorus --log local "
            "restore FILE. Then chorus log --copy-to URL copies that log to a server."
        )
    home.make()
    now = SystemClock().now()
    with alone(home) as refuse_others:
        finish_restore(home)
        with restoring.staged(home, chosen.file, now) as found:
            for line in _described(found, home):
                standard_error().error(line)
            if not chosen.yes and not await agreed("Restore it?", standard_error()):
                standard_error().notice(declined("Nothing was changed."))
                return FAILED
            refuse_others()
            kept = keep_present(home, now)
            restoring.put_in_place(home, found.folder)
    before = f" What was there before is kept in {first_few(kept)}." if kept else ""
    standard_output().paragraph(f"Restored {_contents(found)}.{before}")
    return DONE


@contextmanager
def alone(home: Paths) -> Iterator[Callable[[], None]]:
    """Do the work of the block; raise a `CommandError` instead if another Chorus runs.

    The block gets a function that raises it too, because another Chorus may start while a question waits.
    """
    with running(home) as run:
        refuse_others = partial(_refuse_others, home, run)
        refuse_others()
        yield refuse_others


def _refuse_others(home: Paths, run: str) -> None:
    others = [name.partition("-")[0] for name in file_lock.held_in(home.run) if name != run]
    if others:
        processes = f"process{'' if len(others) == 1 else 'es'} {enumerated(others)}"
        told = f"Another Chorus is running ({processes}). Quit it and try again; nothing was changed."
        raise CommandError(f"{told} If there is no such process, delete its file in {home.run}.")


def _contents(found: Staged) -> str:
    if found.is_log_alone:
        return f"a log with {counted(found.manifest.messages, 'message')}"
    return f"{contents_in_words(found.manifest)}, as of {_local(found.manifest.made_at)}"


def _described(found: Staged, home: Paths) -> Iterator[str]:
    """Yield sentences about a backup, its flaws, and the state that it would replace."""
    newest = f"; the newest message is from {_local(found.manifest.newest)}" if found.manifest.newest else ""
    yield f"The backup holds {_contents(found)}{newest}."
    places = home_in(found.folder)
    rest = {"config.jsonc": places.config_file, "all personas with their sessions": places.personas}
    replaced = enumerated(["the log", *(name for name, place in rest.items() if place.exists())])
    yield f"It would replace {replaced} in {home.data}. Chorus backs up the present state first."
    if found.removed:
        them, code = "it" if len(found.removed) == 1 else "them", first_few(found.removed, _MOST_NAMED)
        yield f"Its log has {code}, which Chorus did not make; the restore leaves {them} out."
    if found.changed:
        ids = enumerated([f"#{id_}" for id_ in found.changed[:_MOST_NAMED]])
        differ = "differs" if len(found.changed) == 1 else "differ"
        told = f"{counted(len(found.changed), 'message')} in it {differ} from the text that Chorus stored"
        yield f"{told}, such as {ids}."
    if found.missing:
        are = "is" if len(found.missing) == 1 else "are"
        yield f"{counted(len(found.missing), 'attachment')} {are} neither in the backup nor here."
    if number := purged_since(home.database, home_in(found.folder).database):
        yield f"The restore would bring back {counted(number, 'message')} that you have purged since."


def _local(text: str) -> str:
    try:
        return f"{timestamps.local(timestamps.from_text(text)):%Y-%m-%d %H:%M}"
    except ValueError:
        return text
