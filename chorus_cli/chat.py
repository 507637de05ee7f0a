"""What only the chat needs of a running Chorus, made when it is first asked for."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from chorus_cli.core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from chorus_cli.app import App
    from chorus_cli.commands.framework.command_context import CommandContext
    from chorus_cli.core.context.budget import Meter
    from chorus_cli.core.context.snapshot import Target
    from chorus_cli.services.editing.drafts import UnsentInput
    from chorus_cli.services.sessions.idle import IdleTimer
    from chorus_cli.services.turns.conversation import Conversation
    from chorus_cli.terminal.prompt.history import InputHistory


class Chat:
    """The services behind the prompt; it is what ``terminal.chat_parts`` describes."""

    def __init__(self, app: App) -> None:
        self._app = app

    @property
    def commands(self) -> CommandContext:
        """The commands and the services behind them."""
        return self._app.commands

    @property
    def conversation(self) -> Conversation:
        """Whoever answers messages."""
        return self._app.conversation

    @cached_property
    def unsent(self) -> UnsentInput:
        """What was typed and not sent."""
        from chorus_cli.services.editing.drafts import UnsentInput  # noqa: PLC0415

        app = self._app
        return UnsentInput(app.paths.drafts, app.run, app.clock, app.is_alive)

    async def meter(self, target: Target) -> Meter:
        """Return how full the next request is."""
        return (await self._app.context.planned(target, self._app.clock.now())).meter

    def history(self, slug: str) -> InputHistory:
        """Return what was typed to a persona before; it is read when it is first wanted."""
        from chorus_cli.core.text.safe_text import cleaned_input  # noqa: PLC0415
        from chorus_cli.storage.sqlite.log import input_rows  # noqa: PLC0415
        from chorus_cli.terminal.prompt.history import InputHistory  # noqa: PLC0415

        app = self._app

        async def write(line: str) -> None:
            # A line that cannot be remembered is no reason to disturb the talk.
            with suppress(StorageError):
                await app.store.write(input_rows.add, slug, cleaned_input(line)[0], app.clock.now())

        return InputHistory(lambda: app.store.read(input_rows.newest, slug), write)

    def begin(self, tell: Callable[[str], None], tell_aside: Callable[[str], None]) -> None:
        """Let commands say something while they are carried out, and fold behind the talk, which is told aside."""
        self._app.tell = tell
        self._app.conversation.room.fold_behind_the_talk(tell_aside)

    def idle_timer(self, tell: Callable[[str], None], report_bug: Callable[[Exception], str]) -> IdleTimer:
        """Make what saves a persona's talk as a session when nothing is said to it for a while."""
        from chorus_cli.commands.sessions import saved_line  # noqa: PLC0415
        from chorus_cli.services.sessions.idle import IdleServices, IdleTimer  # noqa: PLC0415

        app = self._app
        journal = app.commands.journal
        actions = IdleServices(app.store, app.focus, app.sessions.saving, journal, saved_line).actions()
        return IdleTimer(app.clock, actions, lambda: app.focus.slug, tell, report_bug)
