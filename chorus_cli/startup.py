"""Work that only some starts need, or that is done in the background once the prompt is drawn."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress

from chorus_cli import USUAL_THRESHOLDS
from chorus_cli.core.errors import BackupError, ChorusError, EditorError
from chorus_cli.editing.rows import outbox_rows
from chorus_cli.editing.rows.outbox_rows import NO_RUN, Left, Unsaid
from chorus_cli.machine.paths import Paths
from chorus_cli.services import Services
from chorus_cli.sessions import files as session_files
from chorus_cli.settings import files as settings_file
from chorus_cli.settings.rules.schema import schema_text
from chorus_cli.storage import drafts, file_lock
from chorus_cli.storage.files import sweep_stale
from chorus_cli.storage.store import Store
from chorus_cli.stores.backup import restoring


def prepare(services: Services) -> None:
    """Load the modules that a request to the model in use needs, and the model's limit."""
    model = services.current.target().choice.model
    services.warm(model)
    services.context.limit_of(model)


def clear_up(paths: Paths, services: Services, is_alive: Callable[[str], bool]) -> None:
    """Renew the schema of the settings, and delete files that crashed runs have left; drafts of living runs stay."""
    slug = services.current.slug
    # Settings files name the schema, so that editors can complete and check settings.
    settings_file.renew_schema(paths.personas, schema_text())
    file_lock.sweep(paths.run)
    sweep_stale(paths.personas / slug)
    sweep_stale(session_files.folder(paths.personas, slug))
    drafts.sweep(paths.drafts, services.clock.now(), is_alive)


def finish_restore(paths: Paths) -> None:
    """Finish a restore that was interrupted."""
    try:
        restoring.finish(paths)
    except OSError as error:
        raise BackupError(
            f"A restore was interrupted and cannot be completed in {paths.data}: {error.strerror or error}. "
            "Remove the cause and start Chorus again; nothing is lost."
        ) from error


async def take_over_drafts(store: Store, paths: Paths, is_alive: Callable[[str], bool]) -> None:
    """Move unsent messages that an older Chorus has left in files into the database; unreadable files stay."""
    for path, changed_at in drafts.unsent(paths.drafts, is_alive):
        with suppress(EditorError):
            text = Unsaid(drafts.persona_of(path), drafts.read(path))
            await store.write(outbox_rows.take_over, [Left(text, changed_at, NO_RUN + path.stem)])
            drafts.delete(path)


async def finish_purge(services: Services) -> list[str]:
    """Finish an interrupted purge, so that no request has a text that must be purged; return sentences for the user."""
    told: list[str] = []
    try:
        is_finished = await services.purging.finish(told.append)
    except ChorusError as error:
        return [*told, str(error)]
    return ["A purge that was interrupted is complete now.", *told] if is_finished else []


def load_the_rest(services: Services) -> None:
    """Load the vocabulary of tokens and the names of models, which stops other threads for a moment."""
    services.context.counter.load()
    services.models.load()
    # Objects loaded by now live as long as the process; scanning them for garbage would stop the chat for 30 ms.
    gc.freeze()
    gc.set_threshold(*USUAL_THRESHOLDS)
