"""The commands ``/context``, which shows the next request and sets the window, and ``/thoughts``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from math import ceil
from typing import Annotated, Literal

from chorus_cli.context.rules.memory import CORRECTED, MemoryUse
from chorus_cli.context.rules.view import View, usable
from chorus_cli.context.service.report import ContextReport, WindowState, context_report
from chorus_cli.context.service.transcript import newest_thoughts
from chorus_cli.core.text.phrases import counted, dollars, first_few, shortened
from chorus_cli.core.time import timespan
from chorus_cli.core.time.timeline import bar, counts_by_slot, gap, slot_of, timeline
from chorus_cli.core.time.timespan import EVERYTHING, Span, WindowChoice
from chorus_cli.core.time.timestamps import ALL, BEGINNING, in_hours
from chorus_cli.framework.arguments import ASKED_TIME, TIME, AskedTime, Candidate, Parameter
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Aside, Drawing, Reply, Report, Table, Text
from chorus_cli.log.rules.messages import Message as LogMessage
from chorus_cli.log.rules.messages import words_of
from chorus_cli.log.rules.speakers import Speakers
from chorus_cli.log.rules.wording import local, reach, told_by
from chorus_cli.memory.rules.recall import without_keys
from chorus_cli.models.rules.budget import Calibration, tokens_of
from chorus_cli.personas.commands.settings import DEFAULT_WORDS, all_in_context
from chorus_cli.services import Services

_MOST_SLOTS, _FEWEST_SLOTS = 48, 8
_DAYS_OF_A_WEEK = 7
_BAR_WIDTH = 12


def drawn_window(view: View, moments: Sequence[datetime], now: datetime, columns: int) -> str:
    """Draw the window as a line of 8 to 48 blocks, as many as fit into ``columns``, with a legend below it.

    If the window touches more than seven dates, each block covers one or several whole days. A window without a cutoff
    is drawn from the oldest of the ``moments`` or from the boundary, whichever is older; it is at least an hour long.
    """
    boundary, since, until = view.boundary, view.cutoff, now.astimezone()
    if since == BEGINNING:
        known = [*moments, until - timedelta(hours=1), *([boundary.created_at] if boundary else [])]
        since = min(known) - timedelta(seconds=1)
    begin, end = _ends(since.astimezone(), until)
    slots = max(_FEWEST_SLOTS, min(_MOST_SLOTS, columns - len(f"{begin}  {end}")))
    length = gap((until - since) / slots)
    days = (until.date() - since.astimezone().date()).days + 1
    if days > _DAYS_OF_A_WEEK:
        in_slot = ceil(days / slots)
        slots = ceil(days / in_slot)
        until = until.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        since, length = until - timedelta(days=slots * in_slot), counted(in_slot, "day")
    counts = counts_by_slot(moments, since, until, slots)
    slot = slot_of(boundary.created_at, since, until, slots) if boundary else None
    line = f"{begin} {timeline(counts, slot)} {end}"
    meaning = [f"█ = {counted(max(counts), 'message')} in {length}"] if any(counts) else []
    meaning += [f"│ {boundary.describe()}, {local(boundary.created_at)}"] if boundary and slot is not None else []
    return "\n".join([line, *([" " * (len(begin) + 1) + "   ".join(meaning)] if meaning else [])])


def _ends(begin: datetime, end: datetime) -> tuple[str, str]:
    """Write both ends of the window: dates if they are a week apart, else times, with weekdays if the dates differ."""
    days = (end.date() - begin.date()).days
    dates = "%m-%d" if begin.year == end.year else "%Y-%m-%d"
    form = "%H:%M" if days == 0 else "%a %H:%M" if days < _DAYS_OF_A_WEEK else dates
    return f"{begin:{form}}", f"{end:{form}}"


def drawn_parts(report: ContextReport) -> Table:
    """Draw each part of the next request as a share of the model's limit, with the reason why it is sent."""
    limit = report.plan.snapshot.budget.limit.tokens
    rows = [(part.name, f"{part.tokens:,}", bar(part.tokens / limit, _BAR_WIDTH), part.reason) for part in report.parts]
    rows.append(("total", f"{report.plan.meter.tokens:,}", bar(report.plan.meter.usage, _BAR_WIDTH), ""))
    return Table("", ("Part", "Tokens", "Share of limit", "Why"), tuple(rows))


def drawn_memory(uses: Sequence[MemoryUse]) -> Table:
    """List the memory items in the next request, even in an older wording; group the other items by reason."""
    listed = [use for use in uses if use.sent or use.reason == CORRECTED]
    sent = [(f"#{use.item.id}", shortened(without_keys(use.item.content)), use.reason) for use in listed]
    outside: dict[str, list[str]] = {}
    for use in uses:
        if use not in listed:
            outside.setdefault(use.reason, []).append(f"#{use.item.id}")
    rest = [
        ("", f"{counted(len(numbers), 'item')}: {first_few(numbers)}", f"not sent; {reason}")
        for reason, numbers in outside.items()
    ]
    return Table("Memory", ("Item", "Content", "Why"), (*sent, *rest))


def drawn_pins(view: View, names: Speakers) -> Table | None:
    """List the pinned messages in context; ``None`` if there are none."""
    rows = [row for row in view.messages if row.id in view.pinned]
    cells = [(f"#{row.id}", local(row.timestamp), told_by(row.role, names), shortened(row.content)) for row in rows]
    return _table("Pinned", ("No.", "Time", "From", "Message"), cells)


def _table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table | None:
    return Table(title, columns, tuple(rows)) if rows else None


def usage(report: ContextReport) -> str:
    """Say how much of the model's limit the next request takes and may take, and how estimates are corrected."""
    budget = report.plan.snapshot.budget
    filled = f"In use: {report.plan.meter.usage:.1%} of {budget.limit.tokens:,} tokens ({budget.limit.source})."
    share = f"{budget.tokens / budget.limit.tokens:.0%} ({budget.tokens:,} tokens)"
    return f"{filled} Limit for a request: {share}.\n{correction(budget.calibration)}".rstrip()


def correction(known: Calibration) -> str:
    """Say by which factor estimates are multiplied, and the last estimate's error; empty if they round to 1 and 0."""
    factor, error = f"{known.factor:.2f}", f"{known.error or 0:+.0%}"
    if factor == "1.00" and error in {"+0%", "-0%"}:
        return ""
    return f"Chorus multiplies its estimates for this model by {factor}; the last one was off by {error}."


async def previewed(services: Services, choice: WindowChoice, assumed: str = "") -> Report:
    """Report the messages that a window would bring in or drop, and the change of the price if it is known."""
    preview = await services.window.preview(choice)
    names = services.current.target().persona.speakers
    present, then = preview.present.snapshot.view, preview.then.snapshot.view
    entering, leaving = _only_in(then, present), _only_in(present, then)
    shown = [*filter(None, (_moved(entering, "be added", names), _moved(leaving, "be left out", names)))]
    summary = _other_summary(present, then)
    change = f"With {in_hours(choice.hours)}{':' if shown or summary else ' the model would see the same messages.'}"
    tokens, price = preview.then.meter.tokens - preview.present.meter.tokens, preview.dollars_per_token
    cost = f"{dollars(abs(tokens) * price)} {'more' if tokens > 0 else 'less'}" if tokens and price is not None else ""
    told = f"Each request would cost about {cost}." if cost else ""
    begin = "\n".join(filter(None, (assumed, choice.warning, change)))
    end = filter(None, (summary, reach(then.cutoff, then.boundary, is_preview=True), told, "Nothing was changed."))
    return Report((Text(begin), *shown, Text("\n".join(end))))


def _only_in(view: View, other: View) -> list[LogMessage]:
    known = {message.id for message in usable(other.verbatim)}
    return [message for message in usable(view.verbatim) if message.id not in known]


def _other_summary(present: View, then: View) -> str:
    if present.summary == then.summary:
        return ""
    return "An earlier summary would apply." if then.summary else "The summary would no longer apply."


def _moved(rows: Sequence[LogMessage], verb: str, names: Speakers) -> Table | None:
    if not rows:
        return None
    edges = rows if len(rows) == 1 else (rows[0], rows[-1])
    cells = [(local(row.timestamp), told_by(row.role, names), shortened(words_of(row))) for row in edges]
    tokens = sum(map(tokens_of, rows))
    title = f"{counted(len(rows), 'message')}, ~{tokens:,} tokens, would {verb}{'; first and last' * (len(rows) > 1)}:"
    return Table(title, ("", "", ""), tuple(cells))


GROUP: CommandGroup[Services] = CommandGroup("context", "The part of the conversation that the model sees.")

_HOURS_OF_A_DAY = 24
_ALSO = "/context edit, /context save, /new, /undo, /help context"


def _asked_window(text: str, now: datetime) -> tuple[Span | None, bool]:
    """Return the window, ``None`` for the default, and whether a question mark after it asks for a preview."""
    time = text.rstrip("? \t")
    is_preview, word = "?" in text[len(time) :], time.strip().casefold()
    if word in DEFAULT_WORDS:
        return None, is_preview
    return EVERYTHING if word == ALL else TIME.parse(time, now), is_preview


_MORE = (Candidate(ALL, "messages of any age"), Candidate("default", "the default again"))
_TIMES = (*ASKED_TIME.complete(None, ""), *_MORE)
WINDOW = Parameter(ASKED_TIME.name, _asked_window, ASKED_TIME.help, lambda _services, _text: _TIMES)


@GROUP.command("", "why", aliases=("why", "status"), guesses=("window",), listed="everyday")
async def show(services: Services) -> Report:
    """See what the model sees and lacks, and why.

    It draws the window, and lists the parts of the next request, and what is left out and why.

    Examples:
        /context
    """
    target = services.current.target()
    settings, now = target.persona.settings, services.clock.now()
    report = await context_report(services.context, target, now)
    view, hours, default = report.plan.snapshot.view, settings.context_hours, target.persona.defaults.context_hours
    window = f"Context window: {in_hours(hours)} (default: {in_hours(default)})\n{reach(view.cutoff, view.boundary)}"
    other = "2 days" if hours == _HOURS_OF_A_DAY else "24h"
    memory = drawn_memory(report.memory) if report.memory else None
    earlier = [(f"#{use.id}", use.text, use.reason) for use in report.earlier]
    omissions = [(each.reason, f"{each.messages:,}", f"{each.tokens:,}") for each in report.omissions]
    tables = (
        drawn_parts(report),
        memory,
        _table("Said earlier", ("No.", "Message", "Why"), earlier),
        drawn_pins(view, target.persona.speakers),
        _table("Left out", ("Why", "Messages", "Tokens"), omissions) or Text("No message is left out."),
    )
    asked = f"Thread #{target.thread_number} of {target.persona.name}; {target.choice.model} ({target.choice.reason})."
    if server := services.context.store.server:
        asked = f"{asked} The log is at {server}."
    warnings = [*filter(None, (*target.persona.notices, report.plan.snapshot.unread))]

    async def data() -> object:
        for warning in warnings:
            services.notifier.progress(warning)
        return report.as_json()

    return Report(
        (
            Text(window),
            Drawing(partial(drawn_window, view, report.moments, now)),
            *(table for table in tables if table is not None),
            Text(f"{usage(report)}\n{asked}"),
            *map(Text, warnings),
            Text(f"Try /context {other}, /context {other}?, {_ALSO}."),
        ),
        data,
    )


@GROUP.command("set", default=True, guesses=("reset",), listed="everyday")
async def set_window(services: Services, time: Annotated[tuple[Span | None, bool], WINDOW]) -> Reply:
    """Set how far back the model sees: 24h, +8h or all.

    +8h makes the window longer, -4h shorter, "default" restores the default; with a question mark at the end, the
    command only shows the change. The window slides with the clock, and is a whole number of hours from 1 to 168
    (7 days); with "all" no message is too old. Messages from before /new stay out, however long the window is.

    Examples:
        /context 24h
        /context 2 days
        /context all
        /context since monday
        /context 24h?
    """
    span, is_preview = time
    if span is None:
        if is_preview:
            return await previewed(services, WindowChoice(services.current.target().persona.defaults.context_hours))
        return Text((await services.window.reset()).confirmation())
    if is_preview:
        return await previewed(services, timespan.window_hours(span), _assumed(span))
    wanted = partial(_set, services, span)
    return await (all_in_context(services, wanted) if span == EVERYTHING else wanted())


async def _set(services: Services, span: Span) -> Text:
    return _confirmed(span, await services.window.set(span))


def _confirmed(span: Span, state: WindowState) -> Text:
    return Text("\n".join(filter(None, (_assumed(span), state.confirmation()))))


def _assumed(span: Span) -> str:
    return "A number without a unit means hours." if span.bare_number else ""


@GROUP.command("add", "+", listed="nowhere")
async def add(services: Services, time: Annotated[AskedTime, ASKED_TIME]) -> Text | Report:
    """Widen the context window.

    Examples:
        /context +8h
    """
    return await _shifted(services, time, 1)


@GROUP.command("sub", "-", listed="nowhere")
async def subtract(services: Services, time: Annotated[AskedTime, ASKED_TIME]) -> Text | Report:
    """Narrow the context window.

    Examples:
        /context -4h
    """
    return await _shifted(services, time, -1)


async def _shifted(services: Services, time: AskedTime, sign: Literal[1, -1]) -> Text | Report:
    if not time.preview:
        return _confirmed(time.span, await services.window.shift(time.span, sign))
    hours = services.current.target().persona.settings.context_hours
    return await previewed(services, timespan.shifted(hours, time.span, sign), _assumed(time.span))


TOP: CommandGroup[Services] = CommandGroup("", topic="chat")


@TOP.command("thoughts", guesses=("thinking", "reasoning"))
async def thoughts(services: Services) -> Aside | Text:
    """Print what the model thought before its newest reply.

    Chorus skips replies without thoughts. Some providers hide thoughts. Ctrl-T on an empty line does the
    same as this command.

    Examples:
        /thoughts
    """
    found = await newest_thoughts(services.context, services.current.target(), services.clock.now())
    if not found:
        return Text("No reply in context has thoughts.")
    if not any(text.strip() for _, text in found):
        return Text("The provider does not show the thoughts before the newest reply.")
    return Aside("\n\n".join(f"{thought.words}\n{text.strip()}".rstrip() for thought, text in found))
