"""The chat: joins the app and the terminal, and runs a private chat within a chat in the same terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.app import App, Frontend, Options, opened
from chorus_cli.core.errors import ChorusError, CommandError, PersonaError, StorageError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.command_signs import begins_private
from chorus_cli.editing.service.unsent import UnsentInput
from chorus_cli.log.rows import input_rows
from chorus_cli.machine.bug_report import report_bug, unnoted
from chorus_cli.machine.event_loop import unseen_reported
from chorus_cli.terminal.backend import Backend, Privacy
from chorus_cli.terminal.prompt.history import InputHistories
from chorus_cli.terminal.prompt.keyboard import pastes_unmarked
from chorus_cli.terminal.repl import Repl
from chorus_cli.terminal.screen.output import Screen, standard_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.terminal.screen.painted_rows import Progress

_NOTHING_KEPT = (
    "Private: messages, drafts and input history are in memory only, and nothing of your log is sent. Nothing is kept."
)
_LEAVING = "Ctrl-D or /private off brings you back to your chat."
_BACK = (
    "Private chat ended; nothing of it was kept. Its text may still be in your terminal's scrollback. "
    "This chat is kept as before."
)
_SWITCH_SECONDS = 0.001
"""How long a thread that draws a reply may hold Python's lock while the event loop waits to handle a key."""


async def run_chat(options: Options, environment: Mapping[str, str], typed_early: str) -> None:
    """Talk at a prompt until the user leaves; the text ``typed_early`` is in the prompt at first."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    screen = standard_output()

    @cache
    def progress() -> Progress:
        from chorus_cli.terminal.screen.painted_rows import Progress

        return Progress(screen)

    await _Terminal(environment, screen, progress).chat(options, typed_early)


class _Terminal(NamedTuple):
    """The terminal in which chats take place; ``progress`` returns the progress line on ``screen``."""

    environment: Mapping[str, str]
    screen: Screen
    progress: Callable[[], Progress]

    async def chat(self, options: Options, typed_early: str = "", outer: App | None = None) -> None:
        """Open the data and talk until the user leaves; a private chat takes over the model of the chat ``outer``."""
        frontend = Frontend(self._alone, is_chat=True)
        async with opened(options, self.environment, frontend) as app:
            with suppress(PersonaError):
                if app.current.target().persona.settings.plain:
                    self.screen.make_plain()
            if outer is not None:
                _continue(outer, app)
            storage = app.storage
            unsent = UnsentInput(app.store, storage.run, app.clock, storage.is_alive_here, app.rescue)
            app.is_typing = lambda: unsent.is_typing
            backend = Backend(
                app.current,
                unsent,
                _histories(app),
                app.notifier,
                app.report_bug,
                app.services,
                () if app.arrives_late else await app.take_broken_off(),
                app.connect,
                self._privacy(options, app, outer),
                (outer or app).store.at_rest,
                app.elsewhere(),
                app.arrive_late if app.arrives_late else None,
                app.store.hurry,
            )
            try:
                await Repl(backend, self.screen, self.progress, typed_early).run(app.warm_up)
            finally:
                for line in await app.break_off():
                    self.screen.notice(line)

    def _privacy(self, options: Options, app: App, outer: App | None) -> Privacy:
        async def within(target: Target) -> None:
            try:
                with unnoted(), unseen_reported(lambda bug: self.screen.error(report_bug(None, bug, self.environment))):
                    await self.chat(options._replace(persona=target.persona.slug, is_private=True), outer=app)
            except ChorusError:
                raise
            except Exception as error:
                # The outer chat would write the traceback to a file, and the traceback may quote the private chat.
                raise CommandError(report_bug(None, error, self.environment)) from error
            finally:
                self.screen.notice(_BACK)

        if not options.is_private:
            return Privacy(within)
        return Privacy(None, _NOTHING_KEPT if outer is None else f"{_NOTHING_KEPT} {_LEAVING}")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self.progress().paused(), pastes_unmarked():
            yield


def _continue(outer: App, app: App) -> None:
    """Copy the model of the persona in focus, and its settings for this run, from ``outer`` to ``app``."""
    target = outer.current.target()
    slug = target.persona.slug
    for key, value in outer.personas.set_in_this_run(slug).items():
        app.personas.set_for_this_run(slug, key, value)
    if outer.current.is_settled:
        app.current.use_model(slug, target.choice.model, target.choice.reason)


def _histories(app: App) -> InputHistories:
    async def write(slug: str, line: str) -> None:
        if begins_private(line):
            return
        # A failure to store a line in the input history must not disturb the chat.
        with suppress(StorageError):
            await app.store.write(input_rows.add, slug, cleaned_input(line)[0], app.clock.now())

    return InputHistories(
        lambda slug: app.store.read(input_rows.marked, slug), write, lambda: app.store.read(input_rows.purge_mark)
    )
