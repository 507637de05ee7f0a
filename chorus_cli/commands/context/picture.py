"""The window as a picture: when how much was said, where the boundary lies, and how full a request is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.commands.framework.replies import Table
from chorus_cli.commands.wording import local
from chorus_cli.core.text.phrases import counted
from chorus_cli.core.time.timeline import bar, counts_by_slot, gap, slot_length, slot_of, timeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from chorus_cli.services.context.report import ContextReport
    from chorus_cli.services.context.window import WindowState

_SLOTS = 48
_BAR_WIDTH = 24


def drawn_window(state: WindowState, moments: Sequence[datetime], now: datetime) -> str:
    """Draw the window as a line of blocks, and say what its signs mean."""
    counts = counts_by_slot(moments, state.since, now, _SLOTS)
    boundary = state.boundary
    slot = slot_of(boundary.created_at, state.since, now, _SLOTS) if boundary else None
    line = f"{state.since.astimezone():%H:%M} {timeline(counts, slot)} {now.astimezone():%H:%M}"
    meaning = (
        [f"█ {counted(max(counts), 'message')} in {gap(slot_length(state.since, now, _SLOTS))}"] if any(counts) else []
    )
    meaning += [f"│ {boundary.describe()}, {local(boundary.created_at)}"] if boundary and slot is not None else []
    return "\n".join([line, *(["      " + "   ".join(meaning)] if meaning else [])])


def drawn_parts(report: ContextReport) -> Table:
    """Draw each part of the next request as a share of what the model takes."""
    limit = report.budget.limit.tokens
    rows = [(part.name, f"{part.tokens:,}", bar(part.tokens / limit, _BAR_WIDTH)) for part in report.parts]
    rows.append(("together", f"{report.meter.tokens:,}", bar(report.meter.usage, _BAR_WIDTH)))
    return Table("", ("Part", "Tokens", "Share of the limit"), tuple(rows))


def usage(report: ContextReport, threshold: float) -> str:
    """Say how full the next request is, and where the mark is that it may not pass."""
    limit = report.budget.limit
    is_stretched = report.budget.tokens > threshold * limit.tokens
    may = "but since a fold was taken back" if is_stretched else "so"
    known = report.budget.calibration
    learned = (
        f"\nEstimates are multiplied by {known.factor:.2f} for this model, the last one was off by {known.error:+.0%}."
        if known.error is not None
        else ""
    )
    return (
        f"{report.meter.usage:.1%} of {limit.tokens:,} tokens ({limit.source}); the mark is at {threshold:.0%}, "
        f"{may} a request may have {report.budget.tokens:,}.{learned}"
    )
