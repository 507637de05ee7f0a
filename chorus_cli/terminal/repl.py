"""The conversation at the keyboard: read, answer, and again; the one catcher of everything that goes wrong in it.

What answers is not imported here but made when it is first needed, so that the prompt does not wait for it.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from chorus_cli.core.errors import ChorusError, PersonaError
from chorus_cli.services.cancellation import run_to_completion
from chorus_cli.services.personas.greeting import drafts_notices
from chorus_cli.terminal.markdown.recurrence import Recurrence
from chorus_cli.terminal.prompt.command_sign import is_command, unescaped
from chorus_cli.terminal.prompt.key_bindings import Compose, Leave
from chorus_cli.terminal.prompt.keyboard import suspendable
from chorus_cli.terminal.prompt.line import Prompt
from chorus_cli.terminal.prompt.toolbar import Toolbar
from chorus_cli.terminal.reply.foreground import Foreground
from chorus_cli.terminal.screen.greeting import greet
from chorus_cli.terminal.screen.progress import Wait

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable

    from chorus_cli.commands.framework.replies import Answer, Question, Reply
    from chorus_cli.core.context.snapshot import Target
    from chorus_cli.core.models.events import TurnEvent
    from chorus_cli.services.personas.focus import Focus
    from chorus_cli.services.sessions.idle import IdleTimer
    from chorus_cli.terminal.chat_parts import ChatParts
    from chorus_cli.terminal.prompt.history import InputHistory
    from chorus_cli.terminal.screen.output import Screen
    from chorus_cli.terminal.screen.progress import Progress

T = TypeVar("T")

_SIGNAL_SECONDS = 0.3
_PATIENCE_SECONDS = 1.0
_SETTLING_SECONDS = 2.0
_STOPPED = "Stopped. What had arrived is kept; /retry asks again."
_STOPPED_EARLY = "Stopped before anything of the reply arrived; /retry asks again."
_RETURNED = "What you had typed when the chat was ended is at the prompt again."
_UNSENT = (
    " Your message was not sent and is at the prompt again. "
    "Ctrl-C clears it; then /persona NAME turns to somebody else."
)


class Repl:
    """One run of the chat.

    ``progress`` is a line on ``screen``. ``report_bug`` keeps a traceback and returns the sentence that says where.
    """

    def __init__(
        self,
        focus: Focus,
        parts: ChatParts,
        screen: Screen,
        progress: Progress,
        report_bug: Callable[[Exception], str],
        typed_early: str = "",
    ) -> None:
        self._focus = focus
        self._parts = parts
        self._screen = screen
        self._progress = progress
        self._report_bug = report_bug
        self._foreground = Foreground(lambda: suspendable(screen.take_down, self._prompt.feed))
        self._unsent = parts.unsent
        self._histories: dict[str, InputHistory] = {}
        self._asides: list[str] = []
        self._arriving: asyncio.Future[None] | None = None
        self._settling: asyncio.TimerHandle | None = None
        self._errors = Recurrence()
        self._toolbar = Toolbar(parts.meter, report_bug)
        self._prompt = Prompt(lambda: parts.commands, self._toolbar.text)
        self._prompt.feed(typed_early)

    async def run(self, drawn: Callable[[], None]) -> None:
        """Talk until the user leaves; ``drawn`` is called when the first prompt is on the screen."""

        def begin() -> None:
            drawn()
            # Making the timer would keep the first keys waiting, and no silence is that short.
            self._settling = asyncio.get_running_loop().call_later(_SETTLING_SECONDS, self._arm)

        try:
            await self._talk(begin)
        finally:
            if self._settling is not None:
                self._settling.cancel()
            if self._arriving is not None:
                self._arriving.cancel()
                await run_to_completion(asyncio.wait({self._arriving}))
            await self._toolbar.close()
            if "_idle" in vars(self):
                await run_to_completion(self._idle.close())
            for history in self._histories.values():
                await run_to_completion(history.settled())

    @cached_property
    def _idle(self) -> IdleTimer:
        """What keeps the talk when nothing is said; made soon after the first prompt is on the screen."""
        self._parts.begin(self._tell, self._tell_aside)
        return self._parts.idle_timer(self._tell_aside, self._report_bug)

    def _arm(self) -> None:
        self._idle.arm()
        self._toolbar.begin(self._prompt.redraw)

    def _tell(self, line: str) -> None:
        self._prompt.above(lambda: self._screen.notice(line))
        # Whatever is worth telling may have changed how full the request is.
        self._toolbar.renew()

    def _tell_aside(self, line: str) -> None:
        """Say what happened beside the talk: above the prompt, or when that is back, for the screen may be lent out."""
        if self._prompt.is_up:
            self._tell(line)
        else:
            self._asides.append(line)

    async def _talk(self, drawn: Callable[[], None]) -> None:
        target = self._focus.target()
        await self._arrive(target, drawn)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._foreground.stop)
        while True:
            try:
                if await self._next(target):
                    return
                # A persona whose folder is gone stays the one that is talked to.
                target = self._focus.target()
            except Leave:
                return
            except EOFError:
                self._keep_unsent(target)
                # A terminal that is closed sends a signal as well, which says how the run ends.
                await asyncio.sleep(_SIGNAL_SECONDS)
                return
            except (asyncio.CancelledError, KeyboardInterrupt):
                self._keep_unsent(target)
                raise
            except ChorusError as error:
                self._errors.survive(error)
                self._refuse(str(error))
            except Exception as error:  # noqa: BLE001 - the one catcher of the loop: a bug must not end the talk
                self._errors.survive(error)
                self._refuse(self._report_bug(error))

    async def _next(self, target: Target) -> bool:
        """Take a line and do what it says; return whether to leave."""
        while self._asides:
            self._screen.notice(self._asides.pop(0))
        self._toolbar.show(target)
        history, unsent = self._history(target.persona.slug), self._unsent
        try:
            line = await self._prompt.read(target.persona, history, unsent.text, gives_way=unsent.gives_way)
        except Leave:
            # What had come back was cleared.
            unsent.settle()
            raise
        except Compose as wanted:
            return await self._in_foreground(self._compose(wanted.typed))
        self._unsent.settle()
        if await self._in_foreground(self._handle(line)):
            return True
        self._screen.write("\n")
        return False

    def _keep_unsent(self, target: Target) -> None:
        self._unsent.keep(target.persona.slug, self._prompt.typed or self._foreground.typed_ahead)

    async def _arrive(self, target: Target, drawn: Callable[[], None]) -> None:
        """Greet before the prompt; where an Ollama has to be asked for its model, the greeting comes in above it."""
        drafts = self._unsent.take_up(target.persona.slug)
        returned = (_RETURNED,) if self._unsent.text else ()
        notices = (*await self._focus.notices(), *drafts_notices(drafts), *returned)
        if self._focus.is_settled:
            self._toolbar.names_model = True
            self._greet(target, notices)
            self._prompt.when_drawn(drawn)
            return

        async def greet_later() -> None:
            # A persona whose folder is gone is told of when something is said to it.
            with suppress(PersonaError):
                await self._focus.settle()
                self._prompt.above(lambda: self._greet(self._focus.target(), notices))
                self._toolbar.names_model = True
                self._toolbar.show(self._focus.target())
            drawn()

        def begin() -> None:
            self._arriving = asyncio.ensure_future(greet_later())

        self._prompt.when_drawn(begin)

    def _greet(self, target: Target, notices: Iterable[str]) -> None:
        greet(self._screen, target, [*filter(None, [self._focus.way_to_a_model(target.choice)]), *notices])

    def _history(self, slug: str) -> InputHistory:
        if slug not in self._histories:
            self._histories[slug] = self._parts.history(slug)
        return self._histories[slug]

    def _refuse(self, sentence: str) -> None:
        self._screen.error(sentence)
        self._screen.write("\n")

    async def _handle(self, line: str) -> bool:
        """Carry out a command or have a message answered; return whether to leave."""
        arriving, self._arriving = self._arriving, None
        if arriving is not None:
            await run_to_completion(arriving)
        text = line.strip()
        if is_command(text) and "\n" not in text:
            return await self._command(text)
        try:
            target = self._focus.target()
        except PersonaError as error:
            self._unsent.text = line
            raise PersonaError(f"{error}{_UNSENT}") from error
        await self._show(self._parts.conversation.answer(target, unescaped(line)))
        return False

    async def _command(self, line: str) -> bool:
        from chorus_cli.commands.framework.command_line import resolve  # noqa: PLC0415
        from chorus_cli.commands.framework.replies import Exit, Question, Refill, Reply  # noqa: PLC0415
        from chorus_cli.terminal.screen.drawing import draw  # noqa: PLC0415

        commands = self._parts.commands
        bound = resolve(commands.registry, line, commands.clock.now())
        stoppable = bound.command.stoppable
        with self._progress.of(Wait(bound.command.path, _PATIENCE_SECONDS, ", Ctrl-C stops it" if stoppable else "")):
            answer = await self._carried_out(bound.run(commands), stoppable=stoppable)
        while isinstance(answer, Question):
            answer = await self._decided(answer, bound.command.path)
        if isinstance(answer, Exit):
            return True
        if isinstance(answer, Refill):
            self._unsent.text, self._unsent.gives_way = answer.typed, answer.gives_way
        if isinstance(answer, Reply):
            draw(answer, self._screen)
        else:
            await self._show(answer)
        return False

    async def _compose(self, typed: str) -> bool:
        """Let the user go on in the editor with what is typed; it comes back to the prompt, whatever happens there."""
        from chorus_cli.commands.composing import edited_line  # noqa: PLC0415

        self._unsent.text = typed
        answer = await edited_line(self._parts.commands, typed)
        self._unsent.text = answer.typed
        if answer.text:
            self._screen.notice(answer.text)
        return False

    async def _carried_out(self, work: Coroutine[None, None, Answer], *, stoppable: bool) -> Answer:
        """Carry a command out: most are short and have effects, so that once they have begun Ctrl-C comes too late."""
        if not stoppable:
            return await self._uninterrupted(work)
        try:
            return await work
        except asyncio.CancelledError:
            self._screen.notice("Stopped; nothing was done.")
            raise

    async def _decided(self, question: Question, command: str) -> Reply:
        """Have the user decide, and carry that out; being stopped before that is a no, too."""
        try:
            chosen = await self._prompt.confirm(question.text, tuple(question.choices))
        except asyncio.CancelledError:
            self._screen.paragraph(question.declined.text)
            raise
        work = question.choices.get(chosen)
        if work is None:
            return question.declined
        with self._progress.of(Wait(command, _PATIENCE_SECONDS)):
            return await self._uninterrupted(work())

    async def _uninterrupted(self, work: Awaitable[T]) -> T:
        """Do ``work`` to its end, with no editor to wait for; if it was to be stopped, what follows is."""
        outcome, is_stopped = await run_to_completion(work, self._parts.commands.editing.end)
        if is_stopped:
            self._foreground.stop()
        return outcome

    async def _show(self, events: AsyncGenerator[TurnEvent, None]) -> None:
        from chorus_cli.terminal.reply.stream import Arrival, show_events  # noqa: PLC0415

        arrival = Arrival()
        try:
            await show_events(arrival.seen_in(events), self._screen, self._screen)
        except asyncio.CancelledError:
            self._screen.notice(_STOPPED if arrival.has_words else _STOPPED_EARLY)
            raise

    async def _in_foreground(self, work: Coroutine[None, None, bool]) -> bool:
        self._errors.begin_anew()
        with self._idle.busy():
            return await self._foreground.carry_out(work)
