"""Handles a typed line: carries out a command, or sends a message and shows its reply as it arrives."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from chorus_cli.catalogue import asked_model, asks_model
from chorus_cli.core import errors
from chorus_cli.core.text.command_signs import is_command, is_shell_command, typed_line, unescaped_line
from chorus_cli.core.text.phrases import shortened
from chorus_cli.editing.service.unsent import joined
from chorus_cli.framework.command_line import resolve
from chorus_cli.framework.replies import Exit, Inquiry, PrivateChat, Question, Refill, Reply, Text, plain
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.models.rules.events import Decision, WaitBegun
from chorus_cli.terminal.drawing import JobOutput, draw, drawn_exchange, speaker_of
from chorus_cli.terminal.prompt.keys import ctrl_d_dropped, keys_ahead
from chorus_cli.terminal.prompt.typing_ahead import ReplyKeyboard, refused
from chorus_cli.terminal.reply.stream import show_events
from chorus_cli.terminal.screen.painted_rows import Wait
from chorus_cli.threads.commands.composing import edited_line
from chorus_cli.threads.service.running_turn import left_line, next_line, waiting_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from prompt_toolkit.input import Input

    from chorus_cli.attachments.service.attachments import Prepared
    from chorus_cli.editing.service.unsent import UnsentInput
    from chorus_cli.framework.registry import Bound
    from chorus_cli.framework.replies import Answer
    from chorus_cli.models.rules.events import PermissionAsked, TurnEvent
    from chorus_cli.personas.rules.persona import Persona
    from chorus_cli.services import Services
    from chorus_cli.terminal.backend import Backend
    from chorus_cli.terminal.prompt.line import Prompt
    from chorus_cli.terminal.prompt.typing_ahead import Permit
    from chorus_cli.terminal.screen.output import Screen
    from chorus_cli.terminal.screen.painted_rows import Progress
    from chorus_cli.threads.service.running_turn import RunningTurn

_Result = TypeVar("_Result")

_PATIENCE_SECONDS = 1.0
_ASKED = "Your message:"
# Other programs quit at these words; sent to a model, they would cost money.
_LEAVING = frozenset({"exit", "quit", ":q"})
_TOO_DEAR = "Nothing was sent. /set budget N raises the budget, /set budget default removes it."
_DECISIONS = {"o": Decision.ONCE, "s": Decision.SESSION, "a": Decision.ALWAYS, "n": Decision.NO, "t": Decision.NO}
_PERMISSIONS = (
    (*_DECISIONS, "once", "session", "always", "no", "tell"),
    "o = once, s = for this session, a = always, n = no, t = no, and tell why",
)
_WHY_NOT = "Why not? The model gets your answer."
_UNSENT = (
    " Your message was not sent and is back at the prompt. "
    "Ctrl-C clears it; then switch to another persona with /persona NAME."
)

_STOPPED = "Stopped. The part that arrived is kept; {} asks again."
_BEING_STORED = "Stopping …"
_STOPPED_EARLY = "Stopped before the reply began; {} asks again."
_NOT_SENT = "Stopped waiting. Nothing was sent; your text is back at the prompt."
_HELD_BACK = "Lines that waited were not sent; they are at the prompt."
_BACK_AT_THE_PROMPT = {
    errors.MessageNotStoredError: "Nothing was sent; your message is back at the prompt.",
    errors.DatabaseReadOnlyError: (
        "Your message is back at the prompt. Once the log can be written, quit Chorus and start it again."
    ),
}
# The user expects an answer to Ctrl-C at once. If storing takes longer than this, a notice says so.
_SLOW_SECONDS = 0.2


class LineHandler:
    """Handles the lines of one chat. ``stop`` acts as Ctrl-C does. ``wants_privacy`` is true after ``/private``."""

    def __init__(
        self, backend: Backend, screen: Screen, progress: Progress, prompt: Prompt, stop: Callable[[], None]
    ) -> None:
        self._services = backend.services()
        self._unsent = backend.unsent
        self._screen = screen
        self._progress = progress
        self._prompt = prompt
        self._stop = stop
        prompt.refuse = self._refuse_answer
        self.wants_privacy = False
        self.following = Following(self._services, self._unsent, screen, prompt.keyboard, self._permit)

    async def handle(self, line: str) -> bool:
        """Carry out a command, or send a message and show the reply; return whether the user quits the chat."""
        text = line.strip()
        if is_command(text) and "\n" not in text:
            return await self._command(text, self._prompt.escaped(line).strip())
        if is_shell_command(text) and "\n" not in text:
            await self._shell_command(text[1:].strip())
            return False
        current = self._services.current
        try:
            target = current.target()
        except errors.PersonaError as error:
            self._unsent.text = line
            raise errors.PersonaError(f"{error}{_UNSENT}") from error
        if text.casefold() in _LEAVING:
            question = f'Leave the chat? n sends "{text}" to {target.persona.name}.'
            meant = await self._prompt.confirm(question)
            if meant == "y":
                self._unsent.release()
                return True
            if not meant:
                self._give_back(line)
                return False
        for notice in (*current.sharing_notices(), *await current.new_warnings(target)):
            self._screen.notice(notice)
        persona, model = target.persona, target.choice.model
        if not await self._is_affordable(persona, model) or not await self._knows_project(persona.settings.project):
            self._give_back(line)
            return False
        prepared = await self._prepared(line, model)
        with self._services.attachments.lent(prepared.attachments):
            send = self._services.replies.send(target, prepared.text, attachments=prepared.attachments)
            turn = await self._uninterrupted(send)
        if turn is None:
            # The message that waits is stored in a row of its own.
            self._unsent.release()
            self._screen.notice(waiting_line(target))
        else:
            await self.following.follow(turn)
        return False

    async def _prepared(self, line: str, model: str) -> Prepared:
        typed = unescaped_line(self._prompt.escaped(line))
        try:
            # A server may take long to send a resource.
            with self._progress.of(Wait("attaching", _PATIENCE_SECONDS, ", press Ctrl-C to stop")):
                return await self._services.attachments.prepared(typed, model)
        except (errors.AttachmentError, asyncio.CancelledError):
            self._give_back(line)
            raise

    def _give_back(self, line: str, *, gives_way: bool = False) -> None:
        self._unsent.text, self._unsent.gives_way = joined(line, self._unsent.text), gives_way

    async def compose(self, typed: str) -> bool:
        """Edit ``typed``, and put the edited text, or ``typed`` after an error, into the next prompt. Return false."""
        self._unsent.text = typed
        answer = await edited_line(self._services, typed)
        self._unsent.text = answer.typed
        if answer.text:
            self._screen.notice(answer.text)
        return False

    async def _shell_command(self, command: str) -> None:
        if not command:
            raise errors.CommandError("! needs a shell command, for example: !ls")
        jobs = self._services.jobs
        job, output = jobs.start(self._services.current.target(), command), JobOutput(self._screen)
        # In a shell Ctrl-D ends the input of a command; here it must not quit the chat at the next prompt.
        with ctrl_d_dropped(self._prompt.keyboard):
            try:
                lines, _ = await run_to_completion(jobs.attend(job, output.show), job.interrupt)
            finally:
                output.close()
        for line in lines:
            self._screen.notice(line)

    async def _command(self, line: str, escaped: str) -> bool:
        """Carry out ``line``; if it asks the model, carry out ``escaped``, in which pasted at signs attach no files."""
        services = self._services
        for flaw in services.own_commands.new_flaws(services.current.slug):
            self._screen.notice(flaw)
        before = services.current.slug, services.current.thread_id
        bound = resolve(services.registry, line, services.clock.now())
        if asks_model(services, bound.command):
            target = services.current.target()
            if not await self._is_affordable(target.persona, asked_model(bound, target)):
                return False
            bound = resolve(services.registry, escaped, services.clock.now())
        answer = await self._answer(bound, line)
        if isinstance(answer, Exit):
            return True
        self.wants_privacy = isinstance(answer, PrivateChat)
        if isinstance(answer, Refill):
            self._give_back(answer.typed, gives_way=answer.gives_way)
        if isinstance(answer, Reply):
            draw(answer, self._screen)
            is_same = (services.current.slug, services.current.thread_id) == before
            if not is_same or (isinstance(answer, Text) and answer.brings_exchange):
                await self._show_exchange(plain(answer))
        else:
            if answer.events and answer.text:
                self._screen.notice(f"{_ASKED} {shortened(answer.text)}")
            await self.following.follow(answer)
        return False

    async def _answer(self, bound: Bound[Services], line: str) -> Answer:
        """Carry out a command. If it asks the model and the log fails, put ``line`` into the next prompt."""
        command = bound.command
        try:
            answer = await self._waited_for(bound.run(self._services), command.path, stoppable=command.stoppable)
        except errors.StorageError:
            if asks_model(self._services, command):
                self._unsent.text = line
            raise
        while isinstance(answer, Question | Inquiry):
            answer = await self._decided(answer, command.path)
        return answer

    async def _waited_for(self, work: Awaitable[_Result], command: str, *, stoppable: bool) -> _Result:
        hint = ", press Ctrl-C to stop" if stoppable else ""
        try:
            with self._progress.of(Wait(command, _PATIENCE_SECONDS, hint)):
                # Most commands are short and have effects, so Ctrl-C does not interrupt them.
                return await (work if stoppable else self._uninterrupted(work))
        except asyncio.CancelledError:
            if stoppable:
                self._screen.notice("Stopped; nothing was done.")
            raise

    async def _is_affordable(self, persona: Persona, model: str) -> bool:
        """Return whether to ask a model. Warn if the day's budget is nearly spent; ask the user if it is spent."""
        costs = self._services.costs
        spending = await costs.spending(persona.settings.budget, model)
        if spending is None or not spending.is_over:
            if spending and (warning := costs.warning(spending)):
                self._screen.notice(warning)
            return True
        question = f"{spending.sentence} Ask the model anyway?"
        if await self._prompt.confirm(question) == "y":
            return True
        self._screen.notice(_TOO_DEAR)
        return False

    async def _knows_project(self, setting: str) -> bool:
        """Ask, if necessary, whether to send the folder's text for models; return false if the user does not answer."""
        # Ctrl-C must not come between Enter and the storing of the message, so this awaits nothing but the answer.
        project = self._services.context.project
        if question := project.question(setting):
            # Keys that were typed before the question cannot be meant as its answer.
            with keys_ahead(self._prompt.keyboard):
                meant = await self._prompt.confirm(question)
            if not meant:
                return False
            project.answer(is_sent=meant == "y")
        if news := project.news(setting):
            self._screen.notice(news)
        return True

    async def _show_exchange(self, told: str) -> None:
        """Show the last exchange in context, unless it is a greeting that the answer ``told`` contains."""
        current = self._services.current
        exchange = await current.last_exchange()
        if exchange and (exchange.question or exchange.reply not in told):
            persona = current.target().persona
            self._screen.rows(await asyncio.to_thread(drawn_exchange, exchange, persona, self._screen), dim=True)

    async def _decided(self, question: Question | Inquiry, command: str) -> Reply:
        try:
            work = await self._chosen(question)
        except asyncio.CancelledError:
            self._screen.paragraph(question.declined.text)
            raise
        if work is None:
            return question.declined
        stoppable = isinstance(question, Question) and question.stoppable
        return await self._waited_for(work(), command, stoppable=stoppable)

    async def _chosen(self, question: Question | Inquiry) -> Callable[[], Awaitable[Reply]] | None:
        """Ask a question, and return the action of its answer, ``None`` if it is declined."""
        if isinstance(question, Question):
            return question.choices[await self._prompt.confirm(question.text, question.choices) or "n"]
        # A line that was typed before the question cannot be meant as its answer.
        with keys_ahead(self._prompt.keyboard):
            while (line := await self._prompt.answer(question.text)) and is_command(line.strip()):
                self._refuse_answer(line, "or press Ctrl-C")
        return None if line is None else partial(question.answered, line.strip())

    async def _permit(self, asked: PermissionAsked) -> None:
        """Ask whether a tool may run. Ctrl-C stops the turn, and the tool does not run."""
        # Keys that were typed before the question cannot be meant as its answer.
        with keys_ahead(self._prompt.keyboard):
            # The question is above the prompt, because a prompt that is taller than the screen hides its beginning.
            self._screen.line(asked.question)
            answer = await self._prompt.chosen("Run it?", *_PERMISSIONS)
            why = await self._prompt.answer(_WHY_NOT) if answer == "t" else ""
        if answer is None or why is None:
            self._stop()
            # Here the stop takes effect.
            await asyncio.sleep(0)
        asked.answer(_DECISIONS[answer or "n"], (why or "").strip())

    def _refuse_answer(self, line: str, answers: str) -> None:
        self._prompt.remember(line)
        self._screen.notice(f'"{shortened(line)}" is not an answer, so it was not sent. Answer {answers}.')

    async def _uninterrupted(self, work: Awaitable[_Result]) -> _Result:
        outcome, is_stopped = await run_to_completion(work, self._services.drafts.end)
        if is_stopped:
            self._stop()
        return outcome


class Following:
    """Shows turns on ``screen``. Ctrl-B moves a turn to the background; other keys wait for the next prompt."""

    def __init__(
        self, services: Services, unsent: UnsentInput, screen: Screen, keyboard: Input, permit: Permit = refused
    ) -> None:
        self._services = services
        self._unsent = unsent
        self._screen = screen
        self._keyboard = ReplyKeyboard(
            keyboard,
            screen,
            lambda waiting: unsent.hold(services.current.slug, waiting),
            lambda typed: unsent.hold_soon(services.current.slug, typed),
            self._leave,
        )
        self._keyboard.permit = permit
        self._turn: RunningTurn | None = None

    async def follow(self, turn: RunningTurn) -> None:
        """Show a turn as it arrives, then the turns of messages that waited for it; Ctrl-C stops the turn shown."""
        following: RunningTurn | None = turn
        while following is not None:
            await self._show(following)
            if not following.is_over:
                self._screen.notice(left_line(following))
                return
            following = following.next
            if following is not None:
                self._screen.notice(next_line(following))

    async def _show(self, turn: RunningTurn) -> None:
        self._turn = turn
        try:
            events = self._released(turn.followed())
            persona = turn.target.persona
            await show_events(
                events,
                self._screen,
                self._screen,
                self._keyboard,
                shows_thoughts=persona.settings.show_thoughts,
                speaker=speaker_of(persona, self._screen),
            )
        except asyncio.CancelledError:
            await self._stop(turn)
            raise
        except errors.ChorusError as error:
            if isinstance(error, (*_BACK_AT_THE_PROMPT, errors.SettingsError)):
                self._unsent.text = typed_line(turn.text) or turn.again
            elif isinstance(error, errors.StorageError | errors.ModelError | errors.CommandError):
                # The message is in the log, or in a file that the error names.
                self._unsent.release()
                raise
            self._services.attachments.give_back(turn.attachments)
            for kind, back in _BACK_AT_THE_PROMPT.items():
                if isinstance(error, kind):
                    raise kind(f"{error} {back}") from error
            raise
        finally:
            self._turn = None

    async def _released(self, events: AsyncGenerator[TurnEvent, None]) -> AsyncGenerator[TurnEvent, None]:
        async with aclosing(events):
            async for event in events:
                if not isinstance(event, WaitBegun):
                    self._unsent.release()
                yield event

    async def _stop(self, turn: RunningTurn) -> None:
        """Break a turn off. If storing it takes a while (a very long reply, a locked log), tell the user so."""
        # A question, or the end of a drawing, may have been cancelled in place of the turn's events.
        turn.is_given_up = True
        has_words = turn.has_words
        telling = asyncio.get_running_loop().call_later(_SLOW_SECONDS, self._screen.notice, _BEING_STORED)
        try:
            await turn.stop()
        finally:
            telling.cancel()
        held = self._services.replies.hold_back(turn.target.thread_id)
        attachments = [attachment for each in held for attachment in each.attachments]
        if turn.is_waiting:
            await self._services.replies.give_back(turn)
            self._unsent.text = typed_line(turn.text) or turn.again
            attachments += turn.attachments
            self._screen.notice(_NOT_SENT)
        elif turn.error is None:
            self._unsent.release()
            self._screen.notice((_STOPPED if has_words else _STOPPED_EARLY).format(turn.again))
        if held:
            self._unsent.hold_back(typed_line("\n".join(each.text for each in held)))
            self.tell_held_back()
            await self._unsent.written()
            await self._services.replies.drop(held)
        if attachments:
            self._services.attachments.give_back(tuple(attachments))
        if turn.next is not None:
            self._screen.notice(f"{next_line(turn.next)}\n{left_line(turn.next)}")

    def tell_held_back(self) -> None:
        """Say that the lines typed after a stopped line were not sent."""
        self._screen.notice(_HELD_BACK)

    def _leave(self) -> None:
        if self._turn is not None:
            self._turn.leave()
