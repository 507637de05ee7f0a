"""What the chat in the terminal needs from below, as it sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from chorus_cli.commands.framework.command_context import CommandContext
    from chorus_cli.core.context.budget import Meter
    from chorus_cli.core.context.snapshot import Target
    from chorus_cli.services.editing.drafts import UnsentInput
    from chorus_cli.services.sessions.idle import IdleTimer
    from chorus_cli.services.turns.conversation import Conversation
    from chorus_cli.terminal.prompt.history import InputHistory


class ChatParts(Protocol):
    """What answers and what remembers, made when it is first asked for."""

    @property
    def commands(self) -> CommandContext:
        """The commands and the services behind them."""
        ...

    @property
    def conversation(self) -> Conversation:
        """Whoever answers messages."""
        ...

    @property
    def unsent(self) -> UnsentInput:
        """What comes back to the prompt."""
        ...

    async def meter(self, target: Target) -> Meter:
        """Return how full the next request is."""
        ...

    def history(self, slug: str) -> InputHistory:
        """Return what was typed to a persona before."""
        ...

    def begin(self, tell: Callable[[str], None], tell_aside: Callable[[str], None]) -> None:
        """Let commands say something while they are carried out, and fold behind the talk, which is told aside."""
        ...

    def idle_timer(self, tell: Callable[[str], None], report_bug: Callable[[Exception], str]) -> IdleTimer:
        """Make what keeps the talk when nothing is said."""
        ...
