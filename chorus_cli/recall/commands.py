"""``/search``: full-text search in the log."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated

from chorus_cli.core.errors import TimeSpanError
from chorus_cli.core.time import timespan
from chorus_cli.framework.arguments import COUNT, PERSONA, SINCE, Parameter, flag, phrases
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Text, data_of
from chorus_cli.log.rows.search_index import Scope
from chorus_cli.log.rules.messages import Speakers
from chorus_cli.log.rules.wording import local, speaker
from chorus_cli.personas.service.personas import Personas
from chorus_cli.recall.service import Findings, Match
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("", "All messages ever: searched, copied, or gone for good.", topic="log")

SHOWN, SHOWN_IN_SHELL = 10, 100
_WIDER = "Chorus looked only for whole words; {} also finds longer words."
_SINCE = re.compile(r"(?P<words>.*\S)\s+since\s+(?P<time>\S.*)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AskedSearch:
    """The words of a search and its earliest time; ``doubt`` tells the user that words after ``since`` are no time."""

    words: str
    since: datetime | None = None
    doubt: str = field(default="", compare=False)


def _asked_search(text: str, now: datetime) -> AskedSearch:
    """Parse words and a time after ``since``; inside quotes or without a valid time, ``since`` is a word."""
    match = _SINCE.fullmatch(text)
    if match is None or match["words"].count('"') % 2:
        return AskedSearch(text)
    try:
        since = timespan.parse(match["time"], now, after_since=True).before(now)
    except TimeSpanError as error:
        return AskedSearch(text, None, f"{error} All words were searched for instead.\n\n")
    return AskedSearch(match["words"], since)


WORDS = Parameter(
    "words",
    _asked_search,
    'words that must all occur, a "phrase" in double quotes, begin* for the beginning of a word; '
    "at the end since and a time: since 3 days ago, since monday",
    typed=phrases,
)
OF_PERSONA = replace(PERSONA, help="only the messages of this persona")
THOUGHTS = flag("search the thoughts of models, too")
MOST = replace(COUNT, name="N", help=f"show at most N messages; otherwise {SHOWN}, or {SHOWN_IN_SHELL} at a shell")


@GROUP.command("search", guesses=("log",), listed="everyday")
async def search(
    services: Services,
    words: Annotated[AskedSearch, WORDS],
    *,
    since: Annotated[datetime | None, SINCE] = None,
    persona: Annotated[str, OF_PERSONA] = "",
    most: Annotated[int | None, MOST] = None,
    thoughts: Annotated[bool, THOUGHTS] = False,
) -> Text:
    """Search everything ever said, newest first.

    Case and accents do not matter. Messages that were undone, replaced or left behind by /new are found, too. With
    --thoughts, the search also finds what models thought before their replies.

    Examples:
        /search ring
        /search "speak friend" since last monday
        /search refactor* since 3 days ago
        /search gandalf --thoughts
    """
    moment = since or words.since
    number = most or (SHOWN if services.is_chat else SHOWN_IN_SHELL)
    scope = Scope(moment, await services.only_of(persona), number, with_thoughts=thoughts)
    findings = await services.search.find(words.words, scope, services.notifier.progress)
    shown = findings if services.is_chat else findings._replace(wider=_quoted(findings.wider))
    text = f"{words.doubt}{findings_text(shown, services.personas, moment)}"
    return Text(text, data_of(findings.as_json()), is_failure=findings.is_empty)


def _quoted(terms: str) -> str:
    """Return terms quoted for a shell, which would otherwise replace ``*`` by names of files."""
    return shlex.quote(terms) if '"' in terms else shlex.join(terms.split())


def findings_text(findings: Findings, personas: Personas, since: datetime | None) -> str:
    """Write the titles that were found, and each message as a line with its place and time above its excerpt."""
    reach = f" since {local(since)}" if since else ""
    if findings.is_empty:
        return f"Nothing was found{reach}.{f' {_WIDER.format(findings.wider)}' if findings.wider else ''}"
    slugs = {match.message.persona for match in findings.matches} | {each.persona for each in findings.threads}
    names = {slug: personas.speakers(slug) for slug in slugs}
    titles = [
        f"Thread #{each.number} of {names[each.persona].persona}: {each.excerpt}" + "  [closed]" * each.is_closed
        for each in findings.threads
    ]
    if findings.more_threads:
        titles.append(f"{findings.more_threads:,} more titles.")
    entries = [_entry(match, names[match.message.persona]) for match in findings.matches]
    return "\n\n".join(["\n".join(titles), *entries, *_rest(findings, reach)][not titles :])


def _entry(match: Match, names: Speakers) -> str:
    message = match.message
    marks = [str(message.status)] if message.status.broke_off else []
    marks += ["undone"] if match.taken_back else []
    marks += ["thought"] if match.is_thought else []
    head = f"#{message.id}  {local(message.timestamp)}  {names.persona}, thread #{match.thread_number}"
    return f"{head}{''.join(f'  [{mark}]' for mark in marks)}\n{speaker(message.role, names)}: {match.excerpt}"


def _rest(findings: Findings, reach: str) -> list[str]:
    if not findings.more:
        return [f"Nothing else was found{reach}."] if reach else []
    count = f"over {findings.more:,}" if findings.more_is_least else f"{findings.more:,}"
    return [f"{count} more{reach}; add a word or a later time (since 2 days ago) to narrow the search."]
