"""What the chat is doing in front of the user, and how Ctrl-C stops it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from chorus_cli.terminal.prompt.keyboard import text_of_keys, typed_early, typing_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractContextManager


class Foreground:
    """At most one piece of work at a time; at the prompt, where there is none, Ctrl-C is a key and no signal.

    ``suspendable`` is what lets Ctrl-Z suspend it. ``typed_ahead`` is what was typed for the next prompt when a signal
    ended the run.
    """

    def __init__(self, suspendable: Callable[[], AbstractContextManager[None]]) -> None:
        self.typed_ahead = ""
        self._suspendable = suspendable
        self._work: asyncio.Task[object] | None = None

    async def carry_out(self, work: Coroutine[None, None, bool]) -> bool:
        """Do ``work`` while Ctrl-C stops it and whatever else is typed waits for the prompt; stopped, it is false."""
        task = asyncio.create_task(self._stoppable(work))
        with typing_ahead(), self._suspendable():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                task.cancel()
                await asyncio.wait({task})
                # Once the terminal is as the shell wants it, an unfinished line could not be read.
                self.typed_ahead = text_of_keys(typed_early())
                raise
        return False if task.cancelled() else task.result()

    def stop(self) -> None:
        """Stop what is being done."""
        if self._work is not None:
            self._work.cancel()

    async def _stoppable(self, work: Coroutine[None, None, bool]) -> bool:
        """Do ``work``, open to be stopped from its first step on: stopped before that, the message would be lost."""
        self._work = asyncio.current_task()
        try:
            return await work
        finally:
            self._work = None
