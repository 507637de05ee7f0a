"""The places where a run stores things: in the user's folders, or for a private chat in memory only.

A private chat reads the personas' files and does not write them. Its log, history and attachments are in memory, and it
keeps no drafts and no tracebacks. Texts for the editor and changed settings are in a folder in memory, which is gone
even after a SIGKILL.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.context.files.open_threads import OpenThreads
from chorus_cli.core.errors import BackupError
from chorus_cli.machine.paths import Paths, shipped_personas
from chorus_cli.personas import files as persona_files
from chorus_cli.personas.service.personas import Personas
from chorus_cli.storage import file_lock
from chorus_cli.storage.files import rescue
from chorus_cli.storage.store import IN_MEMORY, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.machine.tmpfs import MemoryFolder

_RESTORING = ".restoring"


class RunStorage(NamedTuple):
    """The places where one run stores things; ``run`` names the run in the rows that it is writing.

    ``attachments``, ``bugs``, the file for tracebacks, and ``tokens`` are ``None`` if nothing is kept on the disk.
    ``edited`` returns the folder for texts in the editor. ``rescue`` keeps a record that the database refused, and
    returns its file or ``None``. ``obstacle`` says why nothing can be stored; it is empty if everything can be stored.
    """

    run: str
    is_alive: Callable[[str], bool]
    store: Store
    personas: Personas
    open_threads: OpenThreads
    attachments: Path | None
    edited: Callable[[], Path]
    rescue: Callable[[datetime, Mapping[str, str]], Path | None]
    bugs: Path | None
    tokens: Path | None
    is_private: bool = False
    obstacle: str = ""


def on_disk(paths: Paths, run: str) -> RunStorage:
    """Return the user's folders as the places of a run."""
    obstacle = paths.obstacle
    return RunStorage(
        run=run,
        is_alive=lambda other: file_lock.may_be_locked(paths.run / other),
        store=Store(paths.database, paths.backups, is_read_only=bool(obstacle)),
        personas=Personas(paths.personas, paths.config_file),
        open_threads=OpenThreads(paths.run, run),
        attachments=paths.attachments,
        edited=lambda: paths.drafts,
        rescue=partial(rescue, paths.rescue),
        bugs=paths.log_file,
        tokens=paths.tokens,
        obstacle=obstacle,
    )


def in_memory(paths: Paths, run: str, folder: MemoryFolder) -> RunStorage:
    """Return places in memory; settings and texts for the editor are copied into ``folder``."""
    installed = paths.personas if paths.personas.is_dir() else shipped_personas()
    return RunStorage(
        run=run,
        is_alive=lambda other: other == run,
        store=Store(IN_MEMORY),
        personas=Personas(installed, paths.config_file, copies=lambda: folder.path() / "personas"),
        open_threads=OpenThreads(None, run),
        attachments=None,
        edited=lambda: folder.path() / "drafts",
        rescue=lambda _now, _record: None,
        bugs=None,
        tokens=None,
        is_private=True,
    )


def is_restoring(paths: Paths) -> bool:
    """Return whether a restore was interrupted and has to be finished."""
    return (paths.data / _RESTORING).exists()


@contextmanager
def running(paths: Paths) -> Iterator[str]:
    """Name this run and hold its lock, by which other processes see that the run lives."""
    run = _run_name()
    with file_lock.hold(paths.run / run):
        try:
            yield run
        finally:
            # A later start deletes a lock file that stays, because nobody holds its lock.
            with suppress(OSError):
                (paths.run / run).unlink()


@contextmanager
def kept(paths: Paths) -> Iterator[RunStorage]:
    """Yield places in the user's folders while this run lives; if they cannot be written to, the run holds no lock."""
    if paths.obstacle and is_restoring(paths):
        raise BackupError(
            f"A restore was interrupted and cannot be completed: {paths.obstacle}. "
            "Once it can be written, start Chorus again; nothing is lost."
        )
    persona_files.install(shipped_personas(), paths.personas)
    with nullcontext(_run_name()) if paths.obstacle else running(paths) as run:
        yield on_disk(paths, run)


@contextmanager
def forgotten(paths: Paths, environment: Mapping[str, str]) -> Iterator[RunStorage]:
    """Yield places in memory, which are gone afterwards; nothing in the user's folders is made, locked or changed."""
    if is_restoring(paths):
        raise BackupError("A restore was interrupted. Start chorus once without --private to complete it.")
    from chorus_cli.machine.tmpfs import MemoryFolder

    folder = MemoryFolder(environment)
    try:
        yield in_memory(paths, _run_name(), folder)
    finally:
        folder.close()


def _run_name() -> str:
    return f"{os.getpid()}-{os.urandom(4).hex()}"
