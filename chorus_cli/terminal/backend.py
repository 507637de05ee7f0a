"""The parts of Chorus behind the prompt of one chat."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.terminal.prompt.toolbar import Background

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from chorus_cli.context.service.current import Current
    from chorus_cli.editing.service.unsent import UnsentInput
    from chorus_cli.log.rows.interrupted_replies import BrokenOff
    from chorus_cli.machine.notifier import Notifier
    from chorus_cli.models.rules.budget import Meter
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.services import Services
    from chorus_cli.terminal.prompt.history import InputHistories
    from chorus_cli.terminal.prompt.keyboard import AtRest

_PRIVATE = ("private", "nothing is kept")
_BELL, _OSC = "bell", "osc"


class Privacy(NamedTuple):
    """``begin`` holds a private chat in the same terminal until the user leaves it; a private chat has none.

    A private chat has a ``notice`` that says so, and a mark in the line at the bottom.
    """

    begin: Callable[[Target], Coroutine[None, None, None]] | None = None
    notice: str = ""

    @property
    def mark(self) -> tuple[str, ...]:
        """The words in the line at the bottom."""
        return _PRIVATE if self.notice else ()

    def notification(self, wanted: str) -> str:
        """Return the setting ``notify``, but never messages on the desktop, which may be stored there."""
        return _BELL if self.notice and wanted == _OSC else wanted


class Backend(NamedTuple):
    """The parts that the prompt needs at once, and ``services``, whose first call takes long.

    ``report_bug`` logs a traceback and returns the sentence that says where. ``interrupted`` are the threads whose
    replies ended with their process and that no chat has named yet.
    ``connect`` is called when the user begins to type. ``at_rest`` is entered while the program is stopped by Ctrl-Z,
    so that no transaction is open then.
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

    async def meter(self, target: Target) -> Meter:
        """Return the size of the next request."""
        services = self.services()
        return (await services.context.planned(target, services.clock.now())).meter

    async def price(self, target: Target) -> float | None:
        """Return the price of the newest answered turn in USD, if it is known and wanted in the line at the bottom."""
        if not target.persona.settings.show_price:
            return None
        return await self.services().costs.of_last_reply(target.thread_id)

    def background(self) -> Background:
        """Count the work in the background."""
        services = self.services()
        running = sum(not turn.is_followed for turn in services.replies.running)
        attached = tuple(each.name for each in services.attachments.waiting)
        return Background(running, services.jobs.running_count, services.replies.waiting_count, attached)
