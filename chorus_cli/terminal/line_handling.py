"""Handles a typed line: carries out a command, or has a message answered and shows the reply.

``repl`` imports this module with the first line, so that the prompt does not wait for the commands.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from chorus_cli.commands.composing import edited_line
from chorus_cli.commands.framework.command_line import resolve
from chorus_cli.commands.framework.replies import Exit, Question, Refill, Reply
from chorus_cli.core.errors import PersonaError
from chorus_cli.services.cancellation import run_to_completion
from chorus_cli.terminal.prompt.command_sign import is_command, unescaped
from chorus_cli.terminal.prompt.typing_ahead import ReplyKeyboard
from chorus_cli.terminal.reply.stream import Arrival, show_events
from chorus_cli.terminal.screen.drawing import draw
from chorus_cli.terminal.screen.progress import Wait

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine

    from chorus_cli.commands.framework.replies import Answer
    from chorus_cli.commands.framework.services import Services
    from chorus_cli.core.models.events import TurnEvent
    from chorus_cli.services.editing.drafts import UnsentInput
    from chorus_cli.terminal.prompt.line import Prompt
    from chorus_cli.terminal.screen.output import Screen
    from chorus_cli.terminal.screen.progress import Progress

_Result = TypeVar("_Result")

_PATIENCE_SECONDS = 1.0
_STOPPED = "Stopped. The part that arrived is kept; /retry asks again."
_STOPPED_EARLY = "Stopped before the reply began; /retry asks again."
_UNSENT = (
    " Your message was not sent and is at the prompt again. "
    "Ctrl-C clears it; then switch to another persona with /persona NAME."
)


class LineHandler:
    """Handles the lines of one chat; ``stop`` stops the work in the foreground, as Ctrl-C does."""

    def __init__(
        self,
        services: Services,
        unsent: UnsentInput,
        screen: Screen,
        progress: Progress,
        prompt: Prompt,
        stop: Callable[[], None],
    ) -> None:
        self._services = services
        self._unsent = unsent
        self._screen = screen
        self._progress = progress
        self._prompt = prompt
        self._stop = stop
        self._keyboard = ReplyKeyboard(prompt.keyboard, screen, self._keep_waiting)

    async def handle(self, line: str) -> bool:
        """Carry out a command or have a message answered; return whether to quit.

        Raises:
            ChorusError: the line was refused.
        """
        text = line.strip()
        if is_command(text) and "\n" not in text:
            return await self._command(text)
        focus = self._services.focus
        try:
            target = focus.target()
        except PersonaError as error:
            self._unsent.text = line
            raise PersonaError(f"{error}{_UNSENT}") from error
        for notice in (*focus.sharing_notices(), *focus.new_warnings(target)):
            self._screen.notice(notice)
        await self._show(self._services.conversation.answer(target, unescaped(line)))
        return False

    async def compose(self, typed: str) -> bool:
        """Let the user continue ``typed`` in the editor; the text always comes back to the prompt. Return false."""
        self._unsent.text = typed
        answer = await edited_line(self._services, typed)
        self._unsent.text = answer.typed
        if answer.text:
            self._screen.notice(answer.text)
        return False

    def _keep_waiting(self, typed: str) -> None:
        self._unsent.hold(self._services.focus.slug, typed)

    async def _command(self, line: str) -> bool:
        services = self._services
        bound = resolve(services.registry, line, services.machine.clock.now())
        stoppable = bound.command.stoppable
        hint = ", press Ctrl-C to stop" if stoppable else ""
        with self._progress.of(Wait(bound.command.path, _PATIENCE_SECONDS, hint)):
            answer = await self._carried_out(bound.run(services), stoppable=stoppable)
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

    async def _carried_out(self, work: Coroutine[None, None, Answer], *, stoppable: bool) -> Answer:
        """Carry out a command; most are short and have effects, so they run to their end in spite of Ctrl-C."""
        if not stoppable:
            return await self._uninterrupted(work)
        try:
            return await work
        except asyncio.CancelledError:
            self._screen.notice("Stopped; nothing was done.")
            raise

    async def _decided(self, question: Question, command: str) -> Reply:
        """Ask the user and carry out the choice; Ctrl-C means no."""
        try:
            chosen = await self._prompt.confirm(question.text, question.choices, self._screen.notice)
        except asyncio.CancelledError:
            self._screen.paragraph(question.declined.text)
            raise
        work = question.choices.get(chosen)
        if work is None:
            return question.declined
        with self._progress.of(Wait(command, _PATIENCE_SECONDS)):
            return await self._uninterrupted(work())

    async def _uninterrupted(self, work: Awaitable[_Result]) -> _Result:
        """Run ``work`` to completion, closing an open editor on Ctrl-C, which then stops the steps that follow."""
        outcome, is_stopped = await run_to_completion(work, self._services.editing.drafts.end)
        if is_stopped:
            self._stop()
        return outcome

    async def _show(self, events: AsyncGenerator[TurnEvent, None]) -> None:
        arrival = Arrival()
        try:
            await show_events(arrival.seen_in(events), self._screen, self._screen, self._keyboard)
        except asyncio.CancelledError:
            self._screen.notice(_STOPPED if arrival.has_words else _STOPPED_EARLY)
            raise
