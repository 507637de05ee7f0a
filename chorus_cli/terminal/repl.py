"""The chat's loop: it greets the user, then reads and handles lines. An error in a line does not end the chat.

The services behind the prompt are imported and built when they are first needed, so that the prompt appears at once.
"""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING

from prompt_toolkit.keys import Keys

from chorus_cli import __version__
from chorus_cli.context.service.current import interrupted_elsewhere, question_in
from chorus_cli.core.errors import ChorusError, MessageRefusedError, PersonaError, StorageError
from chorus_cli.core.text.command_signs import begins_private, is_message
from chorus_cli.core.text.phrases import enumerated
from chorus_cli.editing.service.unsent import joined
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.storage.permissions import advised
from chorus_cli.terminal.prompt.keyboard import Foreground, suspendable
from chorus_cli.terminal.prompt.keys import Compose, Leave, key_taken, line_ahead, lines_held_back, presses, text_of
from chorus_cli.terminal.prompt.line import Prompt
from chorus_cli.terminal.prompt.toolbar import NOTHING, OUT_OF_REACH, Background, Toolbar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence

    from chorus_cli.log.rules.threads import Exchange
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.terminal.backend import Backend
    from chorus_cli.terminal.line_handling import LineHandler
    from chorus_cli.terminal.screen.output import Screen
    from chorus_cli.terminal.screen.painted_rows import Progress

_SIGNAL_SECONDS = 0.3
_SETTLING_SECONDS = 2.0
_SILENT_SECONDS = 1.0
_CONNECTING = "log: connecting"
_QUITTING = frozenset({"/quit", "/exit", "/q"})
_RETURNED = "The text that you had not sent is back at the prompt."
_PUT_OFF = "The text that you had not sent comes back once the prompt is empty."
_MAY_BE_PRIVATE = "Not sent and not kept, because it may be meant for the private chat:"

_MOST_ERRORS_IN_A_ROW = 3


class Repl:
    """One chat. ``progress`` returns the progress line. The terminal has echoed the keys ``typed_early``."""

    def __init__(
        self, backend: Backend, screen: Screen, progress: Callable[[], Progress], typed_early: str = ""
    ) -> None:
        self._backend = backend
        self._current = backend.current
        self._screen = screen
        self._progress = progress
        self._foreground = Foreground(
            lambda: suspendable(screen.take_down, backend.at_rest, self._prompt.feed),
            lambda: key_taken(self._prompt.keyboard, Keys.ControlC),
        )
        self._unsent = backend.unsent
        self._given_back = ""
        # Whether the keys that are typed now are meant for a private chat.
        self._is_private = False
        self._asides: list[Callable[[], None]] = []
        self._notify = "off"
        self._settling: asyncio.TimerHandle | None = None
        self._lines: LineHandler | None = None
        self._errors_in_a_row = 0
        self._enter = backend.enter
        self._toolbar = Toolbar(backend.measured, backend.report_bug, self._background, _SETTLING_SECONDS)
        self._prompt = Prompt(
            backend.services, self._toolbar.text, backend.connect, backend.at_rest, is_plain=screen.is_plain
        )
        self._mark(*([_CONNECTING] if backend.enter else []))
        self._typed_early = typed_early
        self._greeting: asyncio.Future[None] | None = None
        self._listening: asyncio.Future[None] | None = None
        self._is_greeted = self._is_hurried = False
        self._prompt.feed(typed_early)

    async def run(self, drawn: Callable[[], None]) -> None:
        """Chat until the user quits; ``drawn`` is called when the first prompt is on the screen."""

        def begin() -> None:
            if self._enter is None:
                self._listen()
            if self._enter or not self._typed_early:
                self._is_hurried = bool(self._typed_early)
                self._greeting = asyncio.ensure_future(self._tell_on_arrival())
            drawn()
            # Building the services at once would delay the first keys.
            self._settling = asyncio.get_running_loop().call_later(_SETTLING_SECONDS, self._arm)

        self._prompt.drawn = begin
        try:
            with self._backend.notifier.heard_by(self._tell, self._tell_aside, self._tell_done):
                await self._talk()
        finally:
            await self._close()

    async def _close(self) -> None:
        self._backend.hurry()
        if self._settling is not None:
            self._settling.cancel()
        for task in filter(None, (self._greeting, self._listening)):
            task.cancel()
            await run_to_completion(asyncio.wait({task}))
        await self._toolbar.close()
        await run_to_completion(self._backend.histories.settled())
        await run_to_completion(self._unsent.written())

    def _line_handler(self) -> LineHandler:
        from chorus_cli.terminal.line_handling import LineHandler

        if self._lines is None:
            parts = (self._backend, self._screen, self._progress(), self._prompt)
            self._lines = LineHandler(*parts, self._foreground.stop)
        return self._lines

    def _background(self) -> Background:
        # Before the first line nothing is in the background, and the services need not be built.
        return self._backend.background() if self._lines else NOTHING

    def _arm(self) -> None:
        services = self._backend.services()
        services.idle_timer.arm()
        # These calls let the first Tab find memory items, threads and sessions.
        services.memory.offers(services.current.slug)
        services.threads.offers()
        services.sessions.offers(services.current.slug)
        self._toolbar.begin(self._prompt.redraw)

    def _tell(self, line: str) -> None:
        self._show(lambda: self._screen.notice(line))

    def _show(self, draw: Callable[[], None]) -> None:
        self._prompt.above(draw)
        # The event that is shown may have changed the size of the next request.
        self._toolbar.renew()

    def _tell_aside(self, line: str) -> None:
        self._show_aside(lambda: self._screen.notice(line))

    def _show_aside(self, draw: Callable[[], None]) -> None:
        if self._prompt.is_up:
            self._show(draw)
        else:
            self._asides.append(draw)

    def _show_asides(self) -> None:
        while self._asides:
            self._asides.pop(0)()

    def _listen(self) -> None:
        # Listening begins before the last exchange is read: a message in between is shown twice rather than never.
        if heard := self._backend.elsewhere:
            self._listening = asyncio.ensure_future(self._show_heard(heard))

    async def _show_heard(self, heard: AsyncGenerator[Exchange | str, None]) -> None:
        async with aclosing(heard):
            async for each in heard:
                if isinstance(each, str):
                    self._tell_aside(each) if each else self._toolbar.renew()
                    continue
                # A missing persona folder is reported with the first message.
                with suppress(PersonaError):
                    self._show_aside(partial(self._recall, await self._drawn(each)))

    def _recall(self, rows: Sequence[str]) -> None:
        self._screen.rows(rows, dim=True)
        self._screen.gap()

    def _tell_done(self, line: str) -> None:
        self._tell_aside(line)
        self._screen.notify(self._notify, line, time.monotonic())

    async def _greet(self, target: Target) -> None:
        if self._typed_early and not self._typed_early.endswith("\r"):
            # Otherwise the greeting would continue the unfinished line.
            self._screen.gap()
        if self._current.is_settled:
            self._name_model(target)
        for notice in (self._backend.privacy.notice, *interrupted_elsewhere(target, self._backend.interrupted)):
            if notice:
                self._screen.notice(notice)
        if self._typed_early and self._enter is None:
            # Shown later, the last exchange could be below the early line and look like the answer to that line.
            await self._tell_on_arrival()

    async def _tell_on_arrival(self) -> None:
        """Show the notices and the last exchange, and name the model if Ollama had to be asked for it."""
        told: tuple[str, ...] = ()
        exchange: Exchange | None = None
        # A missing persona folder is reported with the first message.
        with suppress(PersonaError):
            if not self._toolbar.names_model:
                await self._current.settle()
                self._prompt.above(lambda: self._name_model(self._current.target()))
                self._toolbar.show(self._current.target())
            try:
                await self._arrive()
            except StorageError as error:
                # If a message waits, its refusal shows the same error.
                told = () if self._is_hurried else (advised(error),)
            else:
                told, exchange = await self._current.notices(), await self._current.last_exchange()
        self._asides[:0] = [partial(self._screen.notice, notice) for notice in told]
        self._is_greeted = True
        recap = [] if exchange is None or self._is_hurried else await self._drawn(exchange)
        if recap and not self._is_hurried:
            self._asides.append(partial(self._recall, recap))
        if self._asides:
            self._prompt.above(self._show_asides)

    async def _arrive(self) -> None:
        """Enter the thread last used, if the log is on a server that has not been reached yet."""
        if self._enter is None:
            return
        try:
            broken_off = await self._enter()
        except StorageError:
            self._mark(OUT_OF_REACH)
            raise
        self._enter = None
        self._mark()
        target = self._current.target()
        self._toolbar.show(target)
        for notice in interrupted_elsewhere(target, broken_off):
            self._tell_aside(notice)
        self._listen()

    def _mark(self, *state_of_log: str) -> None:
        self._toolbar.mark = (*self._backend.privacy.mark, *state_of_log)
        self._prompt.redraw()

    async def _drawn(self, exchange: Exchange) -> list[str]:
        from chorus_cli.terminal.drawing import drawn_exchange

        # Drawing the first exchange imports rich, which must not keep the keys waiting.
        return await asyncio.to_thread(drawn_exchange, exchange, self._current.target().persona, self._screen)

    def _name_model(self, target: Target) -> None:
        self._toolbar.names_model = True
        self._screen.notice(f"Chorus {__version__}. {target.choice.sentence()}")
        if way := self._current.way_to_a_model(target.choice):
            self._screen.notice(way)

    async def _reach_log(self, ignored: tuple[type[StorageError], ...]) -> None:
        """Wait until the chat has entered its thread; Ctrl-C puts the line back into the prompt."""
        if self._enter is None:
            await self._end_greeting()
            return
        from chorus_cli.terminal.screen.painted_rows import Wait

        with self._progress().of(Wait("connecting to the log", _SILENT_SECONDS)), suppress(*ignored):
            greeting = self._greeting
            try:
                if greeting is not None:
                    self._is_hurried = True
                    await asyncio.shield(greeting)
                await self._arrive()
            except asyncio.CancelledError:
                self._is_hurried = False
                self._unsent.give_back()
                raise
            finally:
                if greeting is not None and greeting.done():
                    # A bug in the greeting is reported once, and not again for each line.
                    self._greeting = None

    async def _end_greeting(self) -> None:
        """Wait for the greeting. Omit the last exchange, which would look like the answer to the line above it."""
        self._is_hurried = True
        pending, self._greeting = self._greeting, None
        if pending is not None:
            _, is_stopped = await run_to_completion(pending)
            if is_stopped:
                # Ctrl-C takes effect only now; earlier it would have lost the line.
                self._foreground.stop()

    async def _talk(self) -> None:
        target = self._current.target()
        slug = target.persona.slug
        await self._unsent.take_up(slug, question_in(target, self._backend.interrupted))
        await self._greet(target)
        self._own_terminal()
        if self._unsent.is_put_off(slug) and line_ahead(self._prompt.keyboard):
            self._screen.notice(_PUT_OFF)
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
        """Put the text that was put off into the next prompt, unless the user has typed a line already."""
        if self._unsent.is_put_off(slug) and not line_ahead(self._prompt.keyboard):
            self._unsent.bring_back(slug)
            if self._is_greeted:
                self._screen.notice(_RETURNED)
            else:
                self._asides.append(lambda: self._screen.notice(_RETURNED))

    def _own_terminal(self) -> None:
        self._prompt.tell_of_long_pastes(self._tell_aside)
        self._unsent.tell = self._tell_aside
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._foreground.stop)

    async def _privately(self, target: Target) -> None:
        """Run a private chat, which reads the keys typed ahead. Keys that it leaves unread are shown and dropped."""
        if self._backend.privacy.begin is None:
            return
        try:
            await self._backend.privacy.begin(target)
        finally:
            if unread := self._prompt.typed_ahead.strip():
                self._screen.notice(f"{_MAY_BE_PRIVATE} {unread}")
            self._prompt.drop_typed_ahead()
            self._own_terminal()

    async def _next(self, target: Target) -> bool:
        self._show_asides()
        self._toolbar.show(target)
        self._notify = self._backend.privacy.notification(target.persona.settings.notify)
        try:
            line = await self._read(target)
        except Compose as wanted:
            text = wanted.typed
            return await self._in_foreground(lambda lines: lines.compose(text))
        # The lines after ``line`` still wait to be read.
        typed_ahead = "" if self._is_private else self._prompt.typed_ahead
        sent = line if is_message(line) else ""
        self._unsent.send(target.persona.slug, sent, typed_ahead)
        self._unsent.settle()
        if line.strip() in _QUITTING:
            self._backend.hurry()
        # A command that needs the log reports itself that the log is out of reach.
        ignored = () if is_message(line) else (StorageError,)
        if await self._in_foreground(lambda lines: lines.handle(line), ignored):
            return True
        lines = self._line_handler()
        if self._foreground.is_stopped and lines_held_back(self._prompt.keyboard):
            lines.following.tell_held_back()
        if lines.wants_privacy:
            lines.wants_privacy = False
            await self._privately(target)
        self._screen.gap()
        return False

    async def _read(self, target: Target) -> str:
        """Return the line typed at the prompt. An unfinished line is stored, so that a signal does not lose it."""
        slug, unsent = target.persona.slug, self._unsent
        history = self._backend.histories.of(slug)
        self._is_private = False
        unsent.release()
        if unsent.text and line_ahead(self._prompt.keyboard):
            # The prompt would send the unsent text and the line typed ahead, with the files of both, as one message.
            self._withdraw_files()
            if unsent.gives_way:
                unsent.settle()
            else:
                unsent.put_off(slug)
                self._screen.notice(_PUT_OFF)
        self._bring_back(slug)
        self._prompt.changed = partial(self._typed, slug)
        unsent.hold_soon(slug, unsent.text or self._prompt.typed_ahead)
        try:
            line = await self._prompt.read(target.persona, history, unsent.text, gives_way=unsent.gives_way)
        except (Leave, Compose) as wanted:
            typed = wanted.typed if isinstance(wanted, Compose) else ""
            unsent.send(slug, typed, self._prompt.typed_ahead)
            if isinstance(wanted, Leave):
                # The user can leave only from an empty line, so no text must come back.
                unsent.settle()
            raise
        self._is_private = begins_private(line)
        return line

    def _typed(self, slug: str, text: str) -> None:
        """Store the text being typed; if it was cleared, detach the files that came back with it."""
        self._unsent.hold_soon(slug, text)
        if not text:
            self._withdraw_files()

    def _withdraw_files(self) -> None:
        # Before the first line no file came back, and the services need not be built.
        if self._lines and (gone := self._backend.services().attachments.withdraw()):
            are = "is" if len(gone) == 1 else "are"
            self._tell(f"{enumerated([each.name for each in gone])} {are} no longer attached.")

    async def _in_foreground(
        self, work: Callable[[LineHandler], Coroutine[None, None, bool]], ignored: tuple[type[StorageError], ...] = ()
    ) -> bool:
        async def after_the_greeting() -> bool:
            await self._reach_log(ignored)
            is_over = await work(self._line_handler())
            await self._backend.histories.forget_purged()
            return is_over

        self._errors_in_a_row = 0
        with self._backend.services().idle_timer.busy():
            try:
                return await self._foreground.carry_out(after_the_greeting())
            except asyncio.CancelledError:
                self._unsent.give_back()
                self._given_back = self._unsent.text
                raise

    async def _keep_unsent(self, target: Target) -> None:
        if self._is_private:
            return
        ahead = self._prompt.typed_ahead + text_of(presses(self._foreground.typed_ahead))
        typed = self._prompt.typed + ahead if self._prompt.typed else joined(self._given_back, ahead)
        # The terminal may be gone.
        with suppress(OSError, ChorusError):
            if told := await self._unsent.keep(target.persona.slug, typed):
                self._screen.error(told)

    def _refuse(self, error: Exception, sentence_of: Callable[[Exception], str]) -> None:
        # An error that recurs before a line can be handled would recur for ever, so it ends the chat.
        self._errors_in_a_row += 1
        if self._errors_in_a_row >= _MOST_ERRORS_IN_A_ROW:
            raise error
        if not isinstance(error, MessageRefusedError):
            self._unsent.give_back()
        self._screen.error(sentence_of(error))
        self._screen.gap()
