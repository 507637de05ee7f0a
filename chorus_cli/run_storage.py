"""The places where a run stores things: in the user's folders, or for a private chat in memory only.

A private chat reads the personas' files and does not write them. Its log, history and attachments are in memory, and it
keeps no drafts and no tracebacks. Texts for the editor and changed settings are in a folder in memory, which is gone
even after a SIGKILL.
"""

from __future__ import annotations

import os
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.context.files.open_threads import OpenThreads
from chorus_cli.core.errors import BackupError, HomeError, SettingsError
from chorus_cli.log.rules.run_names import run_name
from chorus_cli.machine.environment import LOG as CHORUS_LOG
from chorus_cli.machine.paths import STAGED, Paths, shipped_personas
from chorus_cli.personas import files as persona_files
from chorus_cli.personas.service.personas import Personas
from chorus_cli.settings import files as settings_file
from chorus_cli.settings.rules.table import LOG
from chorus_cli.storage import file_lock
from chorus_cli.storage.files import rescue
from chorus_cli.storage.sqlite import IN_MEMORY, Sqlite
from chorus_cli.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.machine.tmpfs import MemoryFolder
    from chorus_cli.storage.postgres.engine import Postgres


class RunStorage(NamedTuple):
    """The places where one run stores things; ``run`` names the run in the rows that it is writing.

    ``is_alive`` says whether a run lives on any machine, and may only be called within a transaction of the store.
    ``is_alive_here`` says whether a run lives on this machine. ``notifications`` yields the ids of threads in which
    another run has stored something, or 0 for any thread; it is ``None`` if the log is on this machine.
    ``attachments``, ``tokens`` and ``bugs`` (the file for tracebacks) are ``None`` if nothing is kept on the disk.
    ``edited`` returns the folder for texts in the editor. ``rescue`` writes a record to a file if the database refused
    it, and returns the file or ``None``. ``obstacle`` says why nothing can be stored, and is empty otherwise.
    """

    run: str
    is_alive: Callable[[str], bool]
    is_alive_here: Callable[[str], bool]
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
    notifications: Callable[[], AsyncGenerator[int, None]] | None = None


def chosen_log(paths: Paths, environment: Mapping[str, str], option: str | None) -> str:
    """Return the address of the log of a run, or "" for the log on this machine.

    The option ``--log`` overrides ``CHORUS_LOG``, and ``CHORUS_LOG`` overrides ``config.jsonc``. Raise a
    `SettingsError` for a text that is no address, a password in the file, or an unreadable file that may name a log.
    """
    said = option or environment.get(CHORUS_LOG)
    # The chat warns of a file that cannot be read.
    with suppress(SettingsError, OSError):
        file = paths.config_file
        if not said and (not file.is_file() or f'"{LOG}"' not in settings_file.read_text(file)):
            return ""
    from chorus_cli.storage.postgres import address

    if said:
        return address.checked(said, "--log" if option else CHORUS_LOG)
    layer, warnings = settings_file.read_defaults(paths.config_file)
    if not layer.readable:
        raise SettingsError(f"{warnings[0]}. The file may name a log: correct the file, or name the log with --log.")
    value, place = layer.values.get(LOG), layer.place(LOG)
    if value is None:
        return ""
    url = address.checked(str(value), f'{place}: "{LOG}"')
    address.refuse_password(url, f'{place}: "{LOG}"')
    return url


def log_store(paths: Paths, url: str) -> Store:
    """Return the store of the log at ``url``, or of the log on this machine if ``url`` is empty."""
    engine = _server(paths, url) if url else Sqlite(paths.database, paths.backups, is_read_only=bool(paths.obstacle))
    return Store(engine)


def _server(paths: Paths, url: str, run: str = "") -> Postgres:
    from chorus_cli.machine.installation import install_command
    from chorus_cli.storage.postgres import address
    from chorus_cli.storage.postgres.engine import PACKAGE, Postgres

    return Postgres(url, paths.beside(address.digest(url)), run, installing=install_command(PACKAGE))


def on_disk(paths: Paths, run: str, url: str = "") -> RunStorage:
    """Return the user's folders as the places of a run, with the log at ``url``, or on this machine without a URL."""
    obstacle = paths.obstacle

    def is_alive(other: str) -> bool:
        return file_lock.is_locked(paths.run / other)

    storage = RunStorage(
        run=run,
        is_alive=is_alive,
        is_alive_here=is_alive,
        store=log_store(paths, ""),
        personas=Personas(paths.personas, paths.config_file),
        open_threads=OpenThreads(paths.run, run),
        attachments=paths.attachments,
        edited=lambda: paths.drafts,
        rescue=partial(rescue, paths.rescue),
        bugs=paths.log_file,
        tokens=paths.tokens,
        obstacle=obstacle,
    )
    if not url:
        return storage
    engine = _server(paths, url, run)
    return storage._replace(
        is_alive=lambda other: is_alive(other) or engine.is_alive(other),
        store=Store(engine),
        notifications=engine.notifications,
    )


def in_memory(paths: Paths, run: str, folder: MemoryFolder) -> RunStorage:
    """Return places in memory; changed settings and texts for the editor are written to ``folder``."""
    installed = paths.personas if paths.personas.is_dir() else shipped_personas()
    return RunStorage(
        run=run,
        is_alive=lambda other: other == run,
        is_alive_here=lambda other: other == run,
        store=Store(Sqlite(IN_MEMORY)),
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
    return (paths.data / STAGED).exists()


@contextmanager
def running(paths: Paths) -> Iterator[str]:
    """Name this run and hold its lock, so that other processes see that the run lives."""
    run = _run_name()
    with file_lock.hold(paths.run / run):
        try:
            yield run
        finally:
            # A later start deletes a lock file that stays, because nobody holds its lock.
            with suppress(OSError):
                (paths.run / run).unlink()


@contextmanager
def kept(paths: Paths, url: str = "") -> Iterator[RunStorage]:
    """Yield places in the user's folders while this run lives; if they cannot be written to, the run holds no lock."""
    if url and paths.obstacle:
        raise HomeError(f"{paths.obstacle}, and a log on a server needs a file there.")
    if paths.obstacle and is_restoring(paths):
        raise BackupError(
            f"A restore was interrupted and cannot be completed: {paths.obstacle}. "
            "Once it can be written, start Chorus again; nothing is lost."
        )
    persona_files.install(shipped_personas(), paths.personas)
    with nullcontext(_run_name()) if paths.obstacle else running(paths) as run:
        yield on_disk(paths, run, url)


@contextmanager
def forgotten(paths: Paths, environment: Mapping[str, str]) -> Iterator[RunStorage]:
    """Yield places in memory, which are gone afterwards; make, lock and change nothing in the user's folders."""
    if is_restoring(paths):
        raise BackupError("A restore was interrupted. Start chorus once without --private to complete it.")
    from chorus_cli.machine.tmpfs import MemoryFolder

    with closing(MemoryFolder(environment)) as folder:
        yield in_memory(paths, _run_name(), folder)


def _run_name() -> str:
    return run_name(os.getpid(), os.urandom(4).hex(), os.uname().nodename)
