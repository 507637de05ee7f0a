"""Turns on the screen: followed until they end, are stopped by Ctrl-C, or are left to the background by Ctrl-B."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from chorus_cli.core.errors import (
    ChorusError,
    CommandError,
    DatabaseReadOnlyError,
    MessageNotStoredError,
    MessageRefusedError,
    ModelError,
    SettingsError,
    StorageError,
)
from chorus_cli.core.text.command_signs import typed_line
from chorus_cli.models.rules.events import WaitBegun
from chorus_cli.terminal.prompt.typing_ahead import ReplyKeyboard
from chorus_cli.terminal.reply.stream import Arrival, show_events
from chorus_cli.threads.service.running_turn import left_line, next_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from prompt_toolkit.input import Input

    from chorus_cli.editing.service.unsent import UnsentInput
    from chorus_cli.models.rules.events import TurnEvent
    from chorus_cli.services import Services
    from chorus_cli.terminal.screen.output import Screen
    from chorus_cli.threads.service.running_turn import RunningTurn

_STOPPED = "Stopped. The part that arrived is kept; /retry asks again."
_BEING_STORED = "Stopped; the part that arrived is being stored."
_STOPPED_EARLY = "Stopped before the reply began; /retry asks again."
_NOT_SENT = "Stopped waiting; nothing was sent, and your text is at the prompt again."
_NOT_STORED = "Nothing was sent, and your message is at the prompt again."
_READ_ONLY = "It is at the prompt again. Once the log can be written, leave Chorus and start it again."
_RETRY = "/retry"
_SLOW_SECONDS = 0.03
"""Seconds that storing may take before the user, who expects an answer to Ctrl-C at once, is told."""

_LONG_REPLY = 1_000_000
"""Characters of a reply that surely takes longer to store."""


class Following:
    """Shows turns on ``screen``; keys typed at ``keyboard`` meanwhile are for the next prompt."""

    def __init__(self, services: Services, unsent: UnsentInput, screen: Screen, keyboard: Input) -> None:
        self._services = services
        self._unsent = unsent
        self._screen = screen
        self._keyboard = ReplyKeyboard(keyboard, screen, self._keep_waiting, self._keep_typed, self._leave)
        self._turn: RunningTurn | None = None

    async def follow(self, turn: RunningTurn) -> None:
        """Show a turn while it comes, and then those of the messages that waited for it; Ctrl-C stops it."""
        following: RunningTurn | None = turn
        while following is not None:
            await self._show(following)
            if not following.is_over:
                self._screen.notice(left_line(following.target))
                return
            following = following.next
            if following is not None:
                self._screen.notice(next_line(following))

    async def _show(self, turn: RunningTurn) -> None:
        """Show a turn; if it does not come to be stored, its text comes back to the prompt."""
        arrival = Arrival()
        self._turn = turn
        try:
            events = arrival.seen_in(self._released(turn.followed()))
            shows_thoughts = turn.target.persona.settings.show_thoughts
            await show_events(events, self._screen, self._screen, self._keyboard, shows_thoughts=shows_thoughts)
        except asyncio.CancelledError:
            await self._stop(turn, arrival)
            raise
        except (DatabaseReadOnlyError, MessageNotStoredError, SettingsError, MessageRefusedError) as error:
            self._services.attachments.give_back(turn.attachments)
            if not isinstance(error, MessageRefusedError):
                self._unsent.text = _typed(turn.text)
            if isinstance(error, MessageNotStoredError):
                raise MessageNotStoredError(f"{error} {_NOT_STORED}") from error
            if isinstance(error, DatabaseReadOnlyError):
                raise DatabaseReadOnlyError(f"{error} {_READ_ONLY}") from error
            raise
        except (StorageError, ModelError, CommandError):
            # It is in the log, or in a file that the error names.
            self._unsent.release()
            raise
        except ChorusError:
            if turn.attachments:
                self._services.attachments.give_back(turn.attachments)
            raise
        finally:
            self._turn = None

    async def _released(self, events: AsyncGenerator[TurnEvent, None]) -> AsyncGenerator[TurnEvent, None]:
        """Pass on the events of a turn, whose message is stored with the first one that is no wait."""
        async with aclosing(events):
            async for event in events:
                if not isinstance(event, WaitBegun):
                    self._unsent.release()
                yield event

    async def _stop(self, turn: RunningTurn, arrival: Arrival) -> None:
        """Break a turn off; storing megabytes, or in a locked log, takes a while, and that is told at once."""
        seconds = 0 if arrival.characters > _LONG_REPLY else _SLOW_SECONDS
        telling = asyncio.get_running_loop().call_later(seconds, self._screen.notice, _BEING_STORED)
        if turn.is_over or not arrival.has_words:
            telling.cancel()
        try:
            await turn.stop()
        finally:
            telling.cancel()
        await self._tell_stopped(turn, has_words=arrival.has_words)

    async def _tell_stopped(self, turn: RunningTurn, *, has_words: bool) -> None:
        if turn.is_waiting:
            self._unsent.text = _typed(await self._services.replies.give_back(turn))
            self._services.attachments.give_back(turn.attachments)
            self._screen.notice(_NOT_SENT)
        elif turn.error is None:
            self._unsent.release()
            self._screen.notice(_STOPPED if has_words else _STOPPED_EARLY)
        if turn.next is not None:
            self._screen.notice(f"{next_line(turn.next)}\n{left_line(turn.target)}")

    def _leave(self) -> None:
        """Let the turn on the screen go on in the background, if there is one."""
        if self._turn is not None:
            self._turn.leave()

    def _keep_waiting(self, typed: str) -> None:
        self._unsent.hold(self._services.current.slug, typed)

    def _keep_typed(self, typed: str) -> None:
        self._unsent.hold_soon(self._services.current.slug, typed)


def _typed(text: str) -> str:
    """Return a line that sends ``text`` again; the empty one stands for the message that a retry answers."""
    return typed_line(text) or _RETRY
