"""The window drawn as a timeline with its boundary, and the next request as shares of the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.commands.framework.replies import Table
from chorus_cli.commands.wording import local
from chorus_cli.core.text.phrases import counted
from chorus_cli.core.time.timeline import bar, counts_by_slot, gap, slot_length, slot_of, timeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from chorus_cli.core.context.budget import Budget
    from chorus_cli.core.context.calibration import Calibration
    from chorus_cli.services.context.report import ContextReport
    from chorus_cli.services.context.window import WindowState

_SLOTS = 48
_BAR_WIDTH = 24


def drawn_window(state: WindowState, moments: Sequence[datetime], now: datetime) -> str:
    """Draw the window as a line of blocks with a legend below it."""
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
    """Draw each part of the next request as a share of the model's limit."""
    limit = report.budget.limit.tokens
    rows = [(part.name, f"{part.tokens:,}", bar(part.tokens / limit, _BAR_WIDTH)) for part in report.parts]
    rows.append(("total", f"{report.meter.tokens:,}", bar(report.meter.usage, _BAR_WIDTH)))
    return Table("", ("Part", "Tokens", "Share of limit"), tuple(rows))


def usage(report: ContextReport, threshold: float) -> str:
    """Say how full the next request is, and how much a request may have."""
    limit = report.budget.limit
    filled = f"{report.meter.usage:.1%} of {limit.tokens:,} tokens ({limit.source})."
    lines = [f"{filled} {request_limit(report.budget, threshold)}", correction(report.budget.calibration)]
    return "\n".join(filter(None, lines))


def request_limit(budget: Budget, threshold: float) -> str:
    """Say how many tokens a request may have, and why if that is not the threshold's share of the limit."""
    share = int(threshold * budget.limit.tokens)
    if budget.tokens < share:
        return f"Limit for a request: {budget.tokens:,} tokens; max_output_tokens are kept free for the reply."
    undone = f"; {budget.tokens:,} tokens because a fold was undone" if budget.tokens > share else ""
    return f"Limit for a request: {100 * threshold:.0f} % ({share:,} tokens){undone}."


def correction(known: Calibration) -> str:
    """Say how estimates are corrected for the model and how good the last one was; ``""`` if it was right as it is."""
    factor, error = f"{known.factor:.2f}", f"{known.error or 0:+.0%}"
    parts = [
        f"Estimates are multiplied by {factor} for this model" if factor != "1.00" else "",
        f"the last estimate was off by {error}" if error not in {"+0%", "-0%"} else "",
    ]
    sentence = "; ".join(filter(None, parts))
    return f"{sentence[0].upper()}{sentence[1:]}." if sentence else ""
