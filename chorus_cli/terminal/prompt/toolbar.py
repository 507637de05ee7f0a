"""The line at the bottom: persona, model, window, size of the next request, thread, and the work in the background."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import ChorusError, LogUnreachableError
from chorus_cli.core.text.phrases import counted, dollars, shortened
from chorus_cli.core.text.safe_text import safe_line
from chorus_cli.core.time.timestamps import ALL
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.terminal.screen.output import knows_unicode, widest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from chorus_cli.models.rules.budget import Meter
    from chorus_cli.personas.rules.persona import Target

    Measure = Callable[[Target], Awaitable[tuple[Meter, float | None]]]
    Piece = tuple[int, str]

OUT_OF_REACH = "log: out of reach"

_RENEWED_SECONDS = 60.0
_SEPARATOR, _PLAIN_SEPARATOR = " · ", " | "
_GAUGE_WIDTH = 8
_PRICE_RANK, _MARK_RANK = 8, -2


class Background(NamedTuple):
    """The numbers of replies and jobs in the background and of waiting messages, and the names of waiting files."""

    replies: int = 0
    jobs: int = 0
    waiting: int = 0
    attached: tuple[str, ...] = ()


NOTHING = Background()


class Toolbar:
    """The line at the bottom, kept up to date by a background task.

    ``measure`` returns the size of the next request, and the last reply's price in USD if it is to be shown. Each
    `show`, `renew` and minute causes a call. The first call waits for ``settling_seconds``: it loads a vocabulary.
    """

    def __init__(
        self,
        measure: Measure,
        report_bug: Callable[[Exception], object],
        background: Callable[[], Background] = lambda: NOTHING,
        settling_seconds: float = 0.0,
    ) -> None:
        self.names_model = False
        self.mark: tuple[str, ...] = ()
        self._log_mark: tuple[str, ...] = ()
        self._background = background
        self._settling_seconds = settling_seconds
        self._measure = measure
        self._price: float | None = None
        self._report_bug = report_bug
        self._target: Target | None = None
        self._meter: Meter | None = None
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def show(self, target: Target) -> None:
        """Show another target, or the same one after a line was handled."""
        before = self._target
        if before is None or (target.persona.slug, target.thread_id) != (before.persona.slug, before.thread_id):
            self._meter = self._price = None
        self._target = target
        self.renew()

    def renew(self) -> None:
        """Measure again, because the context may have changed."""
        self._news.set()

    def begin(self, changed: Callable[[], None]) -> None:
        """Measure from now on; ``changed`` is called when the text of the line may have changed."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep_up(changed))

    async def close(self) -> None:
        """Stop measuring."""
        if self._task is not None:
            self._task.cancel()
            await run_to_completion(asyncio.wait({self._task}))

    def text(self, columns: int) -> list[tuple[str, str]]:
        """Return the line as pairs of style and text, with as many pieces as fit into ``columns``."""
        if self._target is None:
            return []
        unicode = knows_unicode()
        separator = _SEPARATOR if unicode else _PLAIN_SEPARATOR
        meter, shown = self._meter, list[str]()
        for gauge in (metered(meter, unicode=unicode), f"{meter.usage:.0%}") if meter else ("",):
            pieces = ranked(self._target, gauge, self._background(), names_model=self.names_model)
            if marks := dict.fromkeys((*self.mark, *self._log_mark)):
                pieces = ((_MARK_RANK, separator.join(marks)), *pieces)
            if self._price is not None:
                pieces = (*pieces, (_PRICE_RANK, dollars(self._price)))
            shown = fitting(pieces, columns, len(separator))
            if gauge in shown:
                break
        return [("class:warning" if meter and meter.is_full else "", f" {separator.join(shown)}")]

    async def _keep_up(self, changed: Callable[[], None]) -> None:
        await asyncio.sleep(self._settling_seconds)
        while True:
            self._news.clear()
            target = self._target
            try:
                measured = await self._measure(target) if target is not None else None
                self._log_mark = ()
                if measured is not None and self._target is target:
                    self._meter, self._price = measured
            except ChorusError as error:
                # The next message or command reports the error.
                self._meter = None
                self._log_mark = (OUT_OF_REACH,) if isinstance(error, LogUnreachableError) else ()
            except Exception as error:  # noqa: BLE001 - nothing awaits this task, and the chat works without it
                self._report_bug(error)
                return
            changed()
            with suppress(TimeoutError):
                async with asyncio.timeout(_RENEWED_SECONDS):
                    await self._news.wait()


def ranked(target: Target, gauge: str, background: Background = NOTHING, *, names_model: bool) -> tuple[Piece, ...]:
    """Return the pieces in display order, each with its rank; the piece with the lowest rank is dropped last."""
    files = [shortened(safe_line(name), 30) for name in background.attached]
    hours = target.persona.settings.context_hours
    pieces = (
        (0, safe_line(target.persona.name)),
        (1, safe_line(target.choice.model) if names_model else ""),
        (2, f"sees {hours if hours == ALL else f'{hours} h'}"),
        (3, gauge),
        (7, f"thread {target.thread_number}" if target.thread_number > 1 else ""),
        (-1, f"+ {files[0] if len(files) == 1 else f'{len(files)} files'}" if files else ""),
        (4, f"{background.replies} running" if background.replies else ""),
        (6, counted(background.jobs, "job") if background.jobs else ""),
        (5, f"{background.waiting} waiting" if background.waiting else ""),
    )
    return tuple(piece for piece in pieces if piece[1])


def fitting(pieces: Iterable[Piece], columns: int, separator_columns: int) -> list[str]:
    """Return the pieces of lowest rank that fit into ``columns`` on any terminal, in display order."""
    room, kept = columns - 1 + separator_columns, set[int]()
    pieces = tuple(pieces)
    for rank, words in sorted(pieces):
        width = widest(words) + separator_columns
        if width <= room:
            room -= width
            kept.add(rank)
    return [words for rank, words in pieces if rank in kept]


def metered(meter: Meter, *, unicode: bool) -> str:
    """Return a gauge of the next request, its tokens, the limit and the percentage."""
    full, empty = ("▰", "▱") if unicode else ("#", "-")
    share = round(min(1.0, meter.usage) * _GAUGE_WIDTH)
    drawn = full * share + empty * (_GAUGE_WIDTH - share)
    return f"{drawn} {meter.tokens:,} / {meter.limit:,} ({meter.usage:.0%})"
