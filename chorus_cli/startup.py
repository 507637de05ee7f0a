"""Preparation in threads of their own: for the first message, and then for all that can wait longer."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from chorus_cli.core.errors import BackupError, ChorusError
from chorus_cli.sessions import files as session_files
from chorus_cli.settings import files as settings_file
from chorus_cli.settings.rules.schema import schema_text
from chorus_cli.storage import drafts, file_lock
from chorus_cli.storage.files import sweep_stale
from chorus_cli.stores.backup import restoring

if TYPE_CHECKING:
    from collections.abc import Callable

    from chorus_cli.machine.paths import Paths
    from chorus_cli.services import Services


def prepare(services: Services) -> None:
    """Load what the first answer needs."""
    model = services.focus.target().choice.model
    services.machine.warm(model)
    services.context.planner.limit_of(model)


def clear_up(paths: Paths, services: Services, is_alive: Callable[[str], bool]) -> None:
    """Renew the schema of the settings, and delete what crashes have left behind; not the drafts of living runs."""
    slug = services.focus.slug
    # The settings of personas name this file, for editors that complete and check by it.
    settings_file.renew_schema(paths.personas, schema_text())
    file_lock.sweep(paths.run)
    sweep_stale(paths.personas / slug)
    sweep_stale(session_files.folder(paths.personas, slug))
    drafts.sweep(paths.drafts, services.machine.clock.now(), is_alive)


def finish_restore(paths: Paths) -> None:
    """Carry out a restore that was decided and then interrupted.

    Raises:
        BackupError: a file cannot be moved.
    """
    try:
        restoring.finish(paths)
    except OSError as error:
        raise BackupError(
            f"A restore was interrupted and cannot be finished in {paths.data}: {error.strerror or error}. "
            "Mend that and start again; nothing is lost."
        ) from error


async def finish_purge(services: Services) -> list[str]:
    """Carry on a purge that was interrupted, before anything of it is sent; return sentences about it."""
    told: list[str] = []
    try:
        is_finished = await services.upkeep.purging.finish(told.append)
    except ChorusError as error:
        return [*told, str(error)]
    return ["A purge that was interrupted is complete now.", *told] if is_finished else []


def load_the_rest(services: Services) -> None:
    """Load the vocabulary of tokens and the names of models, which keep other threads from running for a moment.

    Raises:
        ModelError: the vocabulary is missing or damaged.
    """
    services.context.planner.counter.load()
    services.personas.models.load()
    # All that is loaded by now lives as long as the process: to scan it for garbage would stop a talk for 30 ms.
    gc.freeze()
