"""``/cost`` shows the costs of replies and other requests, and compares today's cost with the daily budget."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, NamedTuple

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.phrases import counted, enumerated, quoted
from chorus_cli.core.time import timespan
from chorus_cli.framework.arguments import PERSONA, SINCE, Candidate, Parameter
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Report, Table, Text, data_of
from chorus_cli.log.rules.wording import local
from chorus_cli.models.rules.costs import CostLine, DaySpending, without_price
from chorus_cli.models.service.costs import CostReport, Grouping
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("", topic="settings")

_BY = re.compile(rf"(?:(?P<time>.*\S)\s+|)by\s+(?P<grouping>{'|'.join(Grouping)})", re.DOTALL | re.IGNORECASE)
_BY_SOMETHING = re.compile(r"(?:.*\s|)by\s+\S+", re.DOTALL | re.IGNORECASE)
_SINCE = re.compile(r"since\s+", re.IGNORECASE)


class AskedCost(NamedTuple):
    """The costs to show: those after ``since`` (``None`` for all costs), summed by ``grouping``."""

    since: datetime | None = None
    grouping: Grouping = Grouping.MODEL


def _asked_cost(text: str, now: datetime) -> AskedCost:
    match = _BY.fullmatch(text.strip())
    if match is None and _BY_SOMETHING.fullmatch(text.strip()):
        raise CommandError(f'Cannot read {quoted(text.strip())}: after "by", write {enumerated([*Grouping], "or")}.')
    grouping = Grouping(match["grouping"].casefold()) if match else Grouping.MODEL
    time = _SINCE.sub("", (match["time"] or "") if match else text.strip(), count=1)
    return AskedCost(timespan.parse(time, now, after_since=True).before(now) if time else None, grouping)


def _offered(_services: object, text: str) -> Sequence[Candidate]:
    before = text.removesuffix(text.rpartition("by")[2]).removesuffix("by")
    return [Candidate(f"{before}by {grouping}", f"a line for each {grouping}") for grouping in Grouping]


_TOLD = 'since when, such as 7d or monday; with "by day", a line for each day'
WANTED = Parameter(f"time] [by {'|'.join(Grouping)}", _asked_cost, _TOLD, _offered)
BY = Parameter("G", lambda text, _now: Grouping(text), "sums by day, persona, model or thread", choices=tuple(Grouping))


@GROUP.command("cost")
async def cost(
    services: Services,
    wanted: Annotated[AskedCost | None, WANTED] = None,
    *,
    since: Annotated[datetime | None, SINCE] = None,
    by: Annotated[Grouping | None, BY] = None,
    persona: Annotated[str, PERSONA] = "",
) -> Report:
    """Show the known cost of replies, summaries and facts, and the prompt tokens that came from a cache.

    Providers report the tokens; litellm's list has the prices. The tokens of thoughts are part of the completion.

    Examples:
        /cost
        /cost 7d by day
        /cost by persona
    """
    asked = wanted or AskedCost()
    slug = await services.only_of(persona)
    report = await services.costs.report(by or asked.grouping, since or asked.since, slug)
    today = [Text(await _today(services))] if services.is_chat else []
    return Report((*_table(report), *today), data_of(report.as_json()))


def _table(report: CostReport) -> tuple[Table | Text, ...]:
    since = f" since {local(report.since)}" if report.since else ""
    if not report.lines:
        return (Text(f"No replies with known token counts{since}."),)
    has_thoughts = report.total.tokens.thought > 0
    thoughts = ("Thoughts",) if has_thoughts else ()
    heads = (report.grouping.capitalize(), "Replies", "Prompt", "From cache", "Completion", *thoughts, "Cost")
    lines = [*report.lines, *([report.total] if len(report.lines) > 1 else [])]
    rows = tuple(_row(line, has_thoughts=has_thoughts) for line in lines)
    table = Table(f"Cost of requests{since}, in tokens and USD", heads, rows)
    asked = counted(report.summaries.summaries, "request")
    included = f"This includes {asked} for summaries or facts (cost {report.summaries.cost_text})."
    notes = (included if report.summaries.summaries else "", without_price(report.total))
    return (table, *(Text(note) for note in notes if note))


def _row(line: CostLine, *, has_thoughts: bool) -> tuple[str, ...]:
    tokens = line.tokens
    thoughts = (tokens.thought,) if has_thoughts else ()
    figures = (line.replies, tokens.prompt, tokens.cached, tokens.completion, *thoughts)
    return (line.key, *(f"{figure:,}" for figure in figures), line.cost_text)


async def _today(services: Services) -> str:
    today, budget = await services.costs.today(), services.current.target().persona.settings.budget
    if budget is not None:
        return DaySpending(today.cost or 0.0, budget).sentence
    return f"Today: {today.cost_text}. After /set budget 5, Chorus warns you when the known cost of a day is $4 (80%)."
