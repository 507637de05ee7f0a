"""The chat's loop: read a line, handle it, and again; the one place that catches all of its errors.

The services behind the prompt are imported and built when they are first needed, so that the prompt appears at once.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.context.service.current import interrupted_elsewhere, question_in
from chorus_cli.core.errors import ChorusError, MessageRefusedError
from chorus_cli.core.text.command_signs import begins_private, is_message
from chorus_cli.editing.service.unsent import joined
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.storage.permissions import advised
from chorus_cli.terminal.greeting import Greeting
from chorus_cli.terminal.prompt.keyboard import Foreground, suspendable
from chorus_cli.terminal.prompt.keys import Compose, Leave, ctrl_c_taken, line_ahead, text_of_keys
from chorus_cli.terminal.prompt.line import Prompt
from chorus_cli.terminal.prompt.toolbar import NOTHING, Background, Toolbar
from chorus_cli.terminal.recurrence import Recurrence
from chorus_cli.terminal.screen.notification import Notification

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.terminal.backend import Backend
    from chorus_cli.terminal.line_handling import LineHandler
    from chorus_cli.terminal.screen.output import Screen
    from chorus_cli.terminal.screen.progress import Progress

_SIGNAL_SECONDS = 0.3
_SETTLING_SECONDS = 2.0
_RETURNED = "The text you had typed when the chat ended is at the prompt again."
_PUT_OFF = "The text you had typed when the chat ended comes back once the prompt is empty."


class Repl:
    """One run of the chat. ``progress`` is a line on ``screen``."""

    def __init__(self, backend: Backend, screen: Screen, progress: Progress, typed_early: str = "") -> None:
        self._backend = backend
        self._current = backend.current
        self._screen = screen
        self._progress = progress
        self._foreground = Foreground(
            lambda: suspendable(screen.take_down, backend.at_rest, self._prompt.feed),
            lambda: ctrl_c_taken(self._prompt.keyboard),
        )
        self._unsent = backend.unsent
        self._given_back = ""
        # The keys that are typed now are meant for a private chat.
        self._is_private = False
        self._asides: list[str] = []
        self._notification = Notification(screen)
        self._notify = "off"
        self._settling: asyncio.TimerHandle | None = None
        self._lines: LineHandler | None = None
        self._errors = Recurrence()
        self._toolbar = Toolbar(backend.meter, backend.report_bug, self._background, backend.price, _SETTLING_SECONDS)
        self._toolbar.mark = backend.privacy.mark
        self._prompt = Prompt(backend.services, self._toolbar.text, backend.connect, backend.at_rest)
        self._greeting = Greeting(self._current, screen, self._prompt, self._toolbar, typed_early)
        self._prompt.feed(typed_early)

    async def run(self, drawn: Callable[[], None]) -> None:
        """Chat until the user quits; ``drawn`` is called when the first prompt is on the screen."""

        def begin() -> None:
            drawn()
            # Creating the timer at once would delay the first keys.
            self._settling = asyncio.get_running_loop().call_later(_SETTLING_SECONDS, self._arm)

        try:
            with self._backend.notifier.heard_by(self._tell, self._tell_aside, self._tell_done):
                await self._talk(begin)
        finally:
            await self._close()

    async def _close(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
        await self._greeting.cancel()
        await self._toolbar.close()
        await run_to_completion(self._backend.histories.settled())
        await run_to_completion(self._unsent.written())

    def _line_handler(self) -> LineHandler:
        from chorus_cli.terminal.line_handling import LineHandler  # noqa: PLC0415 - the prompt does not wait for it

        if self._lines is None:
            parts = (self._screen, self._progress, self._prompt)
            self._lines = LineHandler(self._backend.services(), self._unsent, *parts, self._foreground.stop)
        return self._lines

    def _background(self) -> Background:
        """Count the work in the background; before the first line there is none, and no need for the services."""
        return self._backend.background() if self._lines else NOTHING

    def _arm(self) -> None:
        services = self._backend.services()
        services.idle_timer.arm()
        # The first Tab after the number of a memory item or a thread finds them.
        services.memory.offers(services.current.slug)
        services.threads.offers()
        self._toolbar.begin(self._prompt.redraw)

    def _tell(self, line: str) -> None:
        self._prompt.above(lambda: self._screen.notice(line))
        # The event behind the notice may have changed the size of the next request.
        self._toolbar.renew()

    def _tell_aside(self, line: str) -> None:
        """Show a notice from the background: above the prompt, or with the next one if an editor may be open."""
        if self._prompt.is_up:
            self._tell(line)
        else:
            self._asides.append(line)

    def _tell_done(self, line: str) -> None:
        """Show a notice that something in the background is done, and ring at once, even if the notice must wait."""
        self._tell_aside(line)
        self._notification.ring(self._notify, line)

    async def _talk(self, drawn: Callable[[], None]) -> None:
        target = self._current.target()
        slug, interrupted = target.persona.slug, self._backend.interrupted
        await self._unsent.take_up(slug, question_in(target, interrupted))
        told = (self._backend.privacy.notice, *interrupted_elsewhere(target, interrupted))
        await self._greeting.begin(target, tuple(filter(None, told)), drawn)
        self._own_terminal()
        if self._unsent.is_put_off(slug) and line_ahead(self._prompt.keyboard):
            self._greeting.tell(_PUT_OFF)
        while True:
            try:
                if await self._next(target):
                    break
                # If this raises because the folder of the persona is gone, the previous target stays.
                target = self._current.target()
            except Leave:
                break
            except EOFError:
                await run_to_completion(self._keep_unsent(target))
                # A closed terminal also sends a signal, which decides the exit code.
                await asyncio.sleep(_SIGNAL_SECONDS)
                return
            except (asyncio.CancelledError, KeyboardInterrupt):
                await run_to_completion(self._keep_unsent(target))
                raise
            except ChorusError as error:
                self._refuse(error, advised)
            except Exception as error:  # noqa: BLE001 - a bug must not end the chat
                self._refuse(error, self._backend.report_bug)

    def _bring_back(self, slug: str) -> None:
        """Put the text that the last run left into the next prompt, unless a line is typed ahead of it."""
        if self._unsent.is_put_off(slug) and not line_ahead(self._prompt.keyboard):
            self._unsent.bring_back()
            self._greeting.tell(_RETURNED)

    def _own_terminal(self) -> None:
        """Take the keyboard and its signals, at the start and again after a private chat."""
        self._prompt.tell_of_long_pastes(self._tell_aside)
        self._unsent.tell = self._tell_aside
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._foreground.stop)

    async def _privately(self, target: Target) -> None:
        """Hold a private chat; the keys that wait for a prompt now go to it, and none of its keys comes back."""
        if self._backend.privacy.begin is None:
            return
        try:
            await self._backend.privacy.begin(target)
        finally:
            self._prompt.drop_typed_ahead()
            self._own_terminal()

    async def _next(self, target: Target) -> bool:
        """Read a line and handle it; return whether to quit."""
        while self._asides:
            self._screen.notice(self._asides.pop(0))
        self._toolbar.show(target)
        self._notify = self._backend.privacy.notification(target.persona.settings.notify)
        try:
            line = await self._read(target)
        except Compose as wanted:
            return await self._in_foreground(self._line_handler().compose(wanted.typed))
        # Of the lines that waited, one was sent.
        typed_ahead = "" if self._is_private else self._prompt.typed_ahead
        sent = line if is_message(line) else ""
        self._unsent.send(target.persona.slug, sent, typed_ahead)
        self._unsent.settle()
        if await self._in_foreground(self._handle(line)):
            return True
        if self._line_handler().take_wish_for_privacy():
            await self._privately(target)
        self._screen.write("\n")
        return False

    async def _read(self, target: Target) -> str:
        """Return the line that is typed at the prompt and meanwhile kept; a signal leaves that as it is."""
        slug, unsent = target.persona.slug, self._unsent
        history = self._backend.histories.of(slug)
        self._is_private = False
        unsent.release()
        self._bring_back(slug)
        self._prompt.when_changed(partial(unsent.hold_soon, slug))
        if unsent.text:
            unsent.hold_soon(slug, unsent.text)
        try:
            line = await self._prompt.read(target.persona, history, unsent.text, gives_way=unsent.gives_way)
        except (Leave, Compose) as wanted:
            typed = wanted.typed if isinstance(wanted, Compose) else ""
            unsent.send(slug, typed, self._prompt.typed_ahead)
            if isinstance(wanted, Leave):
                # Leaving needs an empty line: the user has deleted the text.
                unsent.settle()
            raise
        self._is_private = begins_private(line)
        return line

    async def _handle(self, line: str) -> bool:
        if await self._greeting.finish():
            # Cancelled now, the line would be lost.
            self._foreground.stop()
        is_over = await self._line_handler().handle(line)
        await self._backend.histories.forget_purged()
        return is_over

    async def _in_foreground(self, work: Coroutine[None, None, bool]) -> bool:
        self._errors.begin_anew()
        with self._backend.services().idle_timer.busy():
            try:
                return await self._foreground.carry_out(work)
            except asyncio.CancelledError:
                self._given_back = self._unsent.text or self._unsent.sending
                raise

    async def _keep_unsent(self, target: Target) -> None:
        if self._is_private:
            return
        ahead = self._prompt.typed_ahead + text_of_keys(self._foreground.typed_ahead)
        typed = self._prompt.typed + ahead if self._prompt.typed else joined(self._given_back, ahead)
        # The terminal may be gone.
        with suppress(OSError, ChorusError):
            if told := await self._unsent.keep(target.persona.slug, typed):
                self._screen.error(told)

    def _refuse(self, error: Exception, sentence_of: Callable[[Exception], str]) -> None:
        self._errors.survive(error)
        if not isinstance(error, MessageRefusedError):
            self._unsent.give_back()
        self._screen.error(sentence_of(error))
        self._screen.write("\n")
