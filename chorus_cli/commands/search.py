"""``/search``: full text over everything that was ever said, to whomever."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from chorus_cli.commands.framework.arguments import Parameter
from chorus_cli.commands.framework.command_context import CommandContext
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Text
from chorus_cli.commands.wording import local, speaker
from chorus_cli.core.errors import PersonaError, TimeSpanError
from chorus_cli.core.time import timespan
from chorus_cli.services.log.search import Findings, Match
from chorus_cli.services.personas.personas import Personas
from chorus_cli.storage.sqlite.log.search_index import Scope

GROUP: CommandGroup[CommandContext] = CommandGroup("")

SHOWN = 10
_SINCE = re.compile(r"(?P<words>.*\S)\s+since\s+(?P<time>\S.*)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AskedSearch:
    """What to look for, and how far back."""

    words: str
    since: datetime | None = None


def _asked_search(text: str, now: datetime) -> AskedSearch:
    """Read words and, at the end, ``since`` with a time; what is no time is looked for, as is what stands in quotes."""
    match = _SINCE.fullmatch(text)
    if match is None or match["words"].count('"') % 2:
        return AskedSearch(text)
    try:
        return AskedSearch(match["words"], timespan.parse(match["time"], now, after_since=True).before(now))
    except TimeSpanError:
        return AskedSearch(text)


WORDS = Parameter(
    "words [since T]",
    _asked_search,
    'words that must all occur, a "phrase" in double quotes, begin* for how a word begins; '
    "since and a time at the end: since 3 days ago, since monday",
)


@GROUP.command("search")
async def search(context: CommandContext, words: Annotated[AskedSearch, WORDS]) -> Text:
    """Look for words in everything that was ever said, with every persona, the newest first.

    Capitals and accents make no difference. What was taken back, replaced or left behind by /new is found too.

    Examples:
        /search ring
        /search "speak friend" since last monday
        /search refactor* since 3 days ago
    """
    findings = await context.search.find(words.words, Scope(words.since, None, SHOWN), context.tell)
    return Text(findings_text(findings, context.personas, words.since))


def findings_text(findings: Findings, personas: Personas, since: datetime | None) -> str:
    """Write what was found: for each message a line that says where and when, and the marked line below it."""
    reach = f" since {local(since)}" if since else ""
    if not findings.matches:
        return f"Nothing was found{reach}."
    names = {slug: _name(personas, slug) for slug in {match.message.persona for match in findings.matches}}
    entries = [_entry(match, names[match.message.persona]) for match in findings.matches]
    return "\n\n".join([*entries, *_rest(findings, reach)])


def _name(personas: Personas, slug: str) -> str:
    """Return how a persona is called; whoever is gone is called by the folder that was."""
    try:
        return personas.load(slug).name
    except PersonaError:
        return slug


def _entry(match: Match, name: str) -> str:
    message = match.message
    marks = [str(message.status)] if message.status.broke_off else []
    marks += ["taken back"] if match.taken_back else []
    head = f"#{message.id}  {local(message.timestamp)}  {name}, thread #{message.thread_id}"
    return f"{head}{''.join(f'  [{mark}]' for mark in marks)}\n{speaker(message.role, name)}: {match.excerpt}"


def _rest(findings: Findings, reach: str) -> list[str]:
    if not findings.more:
        return [f"All that was found{reach}."] if reach else []
    count = f"over {findings.more:,}" if findings.more_is_least else f"{findings.more:,}"
    return [f"{count} more{reach}; another word or a nearer time (since 2 days ago) narrows it down."]
