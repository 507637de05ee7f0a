"""The chat: the app and the terminal, put together."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from chorus_cli.app import App, Frontend, Options, opened
from chorus_cli.core.errors import StorageError
from chorus_cli.core.text.surrogates import cleaned_input
from chorus_cli.services.editing.drafts import UnsentInput
from chorus_cli.storage.sqlite.log import input_rows
from chorus_cli.terminal.prompt.history import InputHistories
from chorus_cli.terminal.prompt.keyboard import pastes_unmarked
from chorus_cli.terminal.repl import Backend, Repl
from chorus_cli.terminal.screen.output import standard_output
from chorus_cli.terminal.screen.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SWITCH_SECONDS = 0.001
"""How long a thread that draws a reply may keep the event loop from a key, each time that it needs Python's lock."""


async def run_chat(options: Options, environment: Mapping[str, str], typed_early: str) -> None:
    """Talk at a prompt until the user leaves; it begins with ``typed_early``."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    screen = standard_output()
    progress = Progress(screen)

    @contextmanager
    def alone() -> Iterator[None]:
        with progress.paused(), pastes_unmarked(), screen.lent():
            yield

    async with opened(options, environment, Frontend(alone, folds_in_background=True)) as app:
        unsent = UnsentInput(app.paths.drafts, app.run, app.clock, app.is_alive)
        report, services = app.report_bug, app.services
        broken_off = await app.take_broken_off()
        backend = Backend(app.focus, unsent, _histories(app), app.notifier, report, services, broken_off, app.connect)
        try:
            await Repl(backend, screen, progress, typed_early).run(app.warm_up)
        finally:
            for line in await app.break_off():
                screen.notice(line)


def _histories(app: App) -> InputHistories:
    async def write(slug: str, line: str) -> None:
        # A line that cannot be remembered is no reason to disturb the talk.
        with suppress(StorageError):
            await app.store.write(input_rows.add, slug, cleaned_input(line)[0], app.clock.now())

    return InputHistories(lambda slug: app.store.read(input_rows.newest, slug), write)
