"""The parts of the app that the prompt needs."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.terminal.prompt.toolbar import Background

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence

    from chorus_cli.context.service.current import Current
    from chorus_cli.editing.service.unsent import UnsentInput
    from chorus_cli.log.rows.interrupted_replies import BrokenOff
    from chorus_cli.log.rules.threads import Exchange
    from chorus_cli.machine.notifier import Notifier
    from chorus_cli.models.rules.budget import Meter
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.services import Services
    from chorus_cli.terminal.prompt.history import InputHistories
    from chorus_cli.terminal.prompt.keyboard import AtRest

_PRIVATE = ("private", "nothing is kept")
_BELL, _OSC = "bell", "osc"


class Privacy(NamedTuple):
    """``begin`` runs a private chat until the user leaves it. Within a private chat, only ``notice`` is set."""

    begin: Callable[[Target], Coroutine[None, None, None]] | None = None
    notice: str = ""

    @property
    def mark(self) -> tuple[str, ...]:
        """The words that mark a private chat in the line at the bottom; empty in a normal chat."""
        return _PRIVATE if self.notice else ()

    def notification(self, wanted: str) -> str:
        """Return ``wanted``; in a private chat the bell replaces a desktop message, which the desktop might store."""
        return _BELL if self.notice and wanted == _OSC else wanted


class Backend(NamedTuple):
    """The parts that the prompt needs at once, and ``services``, whose first call takes long.

    ``report_bug`` logs a traceback and returns a sentence for the user. ``interrupted`` are replies that broke off when
    their process ended, and that no chat has reported yet. ``connect`` is called when the user begins to type.
    ``at_rest`` is entered while Ctrl-Z stops the program, so that no transaction is open then. ``elsewhere`` yields the
    exchanges of other processes in the thread in focus, a line about each change there, and "" if only the context may
    have changed. ``enter`` is set if the log is on a server that has not answered yet: it enters the thread last used,
    and returns the replies for ``interrupted``. ``hurry`` is called when the chat ends.
    """

    current: Current
    unsent: UnsentInput
    histories: InputHistories
    notifier: Notifier
    report_bug: Callable[[Exception], str]
    services: Callable[[], Services]
    interrupted: Sequence[BrokenOff] = ()
    connect: Callable[[], None] = lambda: None
    privacy: Privacy = Privacy()
    at_rest: AtRest = nullcontext
    elsewhere: AsyncGenerator[Exchange | str, None] | None = None
    enter: Callable[[], Awaitable[Sequence[BrokenOff]]] | None = None
    hurry: Callable[[], None] = lambda: None

    async def measured(self, target: Target) -> tuple[Meter, float | None]:
        """Return the size of the next request and the last reply's price in USD, ``None`` if unknown or not wanted."""
        services, is_priced = self.services(), target.persona.settings.show_price
        meter = (await services.context.planned(target, services.clock.now())).meter
        return meter, await services.costs.of_last_reply(target.thread_id) if is_priced else None

    def background(self) -> Background:
        """Return the numbers of background replies, jobs and waiting messages, and the names of waiting files."""
        services = self.services()
        running = sum(not turn.is_followed for turn in services.replies.running)
        attached = tuple(each.name for each in services.attachments.waiting)
        return Background(running, services.jobs.running_count, services.replies.waiting_count, attached)
