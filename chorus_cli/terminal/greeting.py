"""The first lines of the chat: which model answers and why, notices, and the last exchange."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from chorus_cli import __version__
from chorus_cli.core.errors import PersonaError
from chorus_cli.machine.notifier import run_to_completion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chorus_cli.context.service.current import Current
    from chorus_cli.log.rules.threads import Exchange
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.terminal.prompt.line import Prompt
    from chorus_cli.terminal.prompt.toolbar import Toolbar
    from chorus_cli.terminal.screen.output import Screen


class Greeting:
    """Names the model above the first prompt; the target's notices and last exchange follow once that has appeared.

    So does the model if Ollama must be asked for it. The terminal itself has shown the keys ``typed_early``.
    """

    def __init__(
        self, current: Current, screen: Screen, prompt: Prompt, toolbar: Toolbar, typed_early: str = ""
    ) -> None:
        self._current = current
        self._screen = screen
        self._prompt = prompt
        self._toolbar = toolbar
        self._typed_early = typed_early
        self._pending: asyncio.Future[None] | None = None
        self._is_to_come = self._is_hurried = False
        self._late: list[str] = []

    async def begin(self, target: Target, notices: Sequence[str], drawn: Callable[[], None]) -> None:
        """Greet with these ``notices`` above the prompt, and call ``drawn`` when that is on the screen."""
        if self._typed_early and not self._typed_early.endswith("\r"):
            # The greeting would continue the unfinished line.
            self._screen.write("\n")
        if is_settled := self._current.is_settled:
            self._toolbar.names_model = True
            self._greet(target)
        for notice in notices:
            self._screen.notice(notice)
        self._is_to_come = True
        if self._typed_early:
            # Below a line that is sent at once, the last exchange would look like its answer.
            await self._go_on(is_settled=is_settled)
            self._prompt.when_drawn(drawn)
            return

        def go_on() -> None:
            self._pending = asyncio.ensure_future(self._go_on(is_settled=is_settled))
            drawn()

        self._prompt.when_drawn(go_on)

    def tell(self, notice: str) -> None:
        """Show a notice at once, or with the greeting if that is still to come."""
        if self._is_to_come:
            self._late.append(notice)
        else:
            self._screen.notice(notice)

    async def finish(self) -> bool:
        """Wait for the greeting, if it is still to come; return whether the caller was cancelled meanwhile.

        The last exchange is left out then: below the line that was sent, it would look like its answer.
        """
        self._is_hurried = True
        pending, self._pending = self._pending, None
        if pending is None:
            return False
        _, is_stopped = await run_to_completion(pending)
        return is_stopped

    async def cancel(self) -> None:
        """Give up the greeting, if it is still to come."""
        if self._pending is not None:
            self._pending.cancel()
            await run_to_completion(asyncio.wait({self._pending}))

    async def _go_on(self, *, is_settled: bool) -> None:
        found: tuple[str, ...] = ()
        exchange: Exchange | None = None
        # A missing persona folder is reported with the first message.
        with suppress(PersonaError):
            if not is_settled:
                await self._current.settle()
                self._prompt.above(lambda: self._greet(self._current.target()))
                self._toolbar.names_model = True
                self._toolbar.show(self._current.target())
            found, exchange = await self._current.notices(), await self._current.last_exchange()
        told, exchange = (*found, *self._late), None if self._is_hurried else exchange
        if told or exchange:
            self._prompt.above(lambda: self._tell_all(told, exchange))
        self._is_to_come = False

    def _tell_all(self, told: Sequence[str], exchange: Exchange | None) -> None:
        for notice in told:
            self._screen.notice(notice)
        if exchange is not None:
            from chorus_cli.terminal.screen.drawing import show_exchange  # noqa: PLC0415 - the prompt is there already

            show_exchange(exchange, self._screen)

    def _greet(self, target: Target) -> None:
        self._screen.notice(f"Chorus {__version__}: {target.choice.model} answers ({target.choice.reason}).")
        if way := self._current.way_to_a_model(target.choice):
            self._screen.notice(way)
