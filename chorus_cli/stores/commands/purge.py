"""``/purge``: messages, and all that repeats them or was made of them, overwritten for good."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from chorus_cli.framework.arguments import Candidate, Parameter
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Question, Report, Text
from chorus_cli.services import Services
from chorus_cli.stores.rules.purging import NO_CRITERIA, AskedPurge, BackupsFate, WantedPurge, asked_purge
from chorus_cli.stores.service.purging import NONE_HOLDS, Found, still_there

GROUP: CommandGroup[Services] = CommandGroup("purge", "Overwrite messages for good.")

_NOTHING = Text("Nothing was purged.")
_OPTIONS = "at the end --dry-run only to see what would go, --backups to rewrite backups too"


def _personas(services: Services, _text: str) -> Sequence[Candidate]:
    return [Candidate(slug) for slug in services.personas.files.slugs()]


def _threads(services: Services, _text: str) -> Sequence[Candidate]:
    return [Candidate(str(each.number), each.title) for each in services.threads.offers()]


MESSAGES = Parameter("number…", partial(asked_purge, "message"), f"numbers of messages, as /search shows; {_OPTIONS}")
THREAD = Parameter("number", partial(asked_purge, "thread"), f"the number of a thread; {_OPTIONS}", _threads)
PERSONA = Parameter("name", partial(asked_purge, "persona"), f"the name of a persona; {_OPTIONS}", _personas)
SPAN = Parameter(
    "time [until T]", partial(asked_purge, "since"), f"a time, and maybe until and another; --persona P; {_OPTIONS}"
)
WORDS = Parameter("words", partial(asked_purge, "search"), f"words as for /search; --persona P; {_OPTIONS}")


@GROUP.command("message", stoppable=True)
async def purge_messages(services: Services, numbers: Annotated[AskedPurge, MESSAGES]) -> Text | Report | Question:
    """Overwrite messages by their numbers.

    With a message go its other wordings, the summaries and sessions that have it, memory items of it, attachments,
    drafts and lines of the input history. It is shown first, you are asked, and no undo brings it back.

    Examples:
        /purge message 12
        /purge message 12 15 16 --dry-run
    """
    return await _asked(services, numbers)


@GROUP.command("thread", stoppable=True)
async def purge_thread(services: Services, number: Annotated[AskedPurge, THREAD]) -> Text | Report | Question:
    """Overwrite everything that was said in a thread.

    Examples:
        /purge thread 3
    """
    return await _asked(services, number)


@GROUP.command("persona", stoppable=True)
async def purge_persona(services: Services, name: Annotated[AskedPurge, PERSONA]) -> Text | Report | Question:
    """Overwrite everything that was said to and by a persona, with its memory and sessions; its files stay.

    Examples:
        /purge persona Frodo
    """
    return await _asked(services, name)


@GROUP.command("since", stoppable=True)
async def purge_span(services: Services, time: Annotated[AskedPurge, SPAN]) -> Text | Report | Question:
    """Overwrite everything that was said in a span of time, to all personas or to one.

    Examples:
        /purge since 1h
        /purge since monday until yesterday --persona Frodo
    """
    return await _asked(services, time)


@GROUP.command("search", stoppable=True)
async def purge_matches(services: Services, words: Annotated[AskedPurge, WORDS]) -> Text | Report | Question:
    """Overwrite every message that a search finds, and every other text with these words.

    Examples:
        /purge search "red house" --dry-run
        /purge search hunter2
    """
    return await _asked(services, words)


@GROUP.command("backups", stoppable=True)
async def purge_backups(services: Services) -> Text | Question:
    """Rewrite the backups that still hold texts purged before.

    Examples:
        /purge backups
    """
    names = await services.upkeep.purging.in_backups()
    return _offered(services, "", names, NO_CRITERIA) if names else Text(NONE_HOLDS)


async def _asked(services: Services, asked: AskedPurge) -> Text | Report | Question:
    found = await services.upkeep.purging.find(asked, services.current.slug, services.machine.notifier.progress)
    if found.extent.is_empty and not found.extent.backups:
        return Text(found.extent.text_of_none())
    extent = found.extent.text(BackupsFate.of(with_backups=asked.with_backups, is_dry=asked.is_dry))
    if asked.is_dry:
        return Text(f"{extent}\nNothing was purged.")
    if found.extent.is_empty:
        if asked.with_backups:
            return Text(await _rewritten(services, found.wanted))
        return _offered(services, "", found.extent.backups, found.wanted)

    async def confirmed() -> Text | Question:
        return await _purged(services, found, with_backups=asked.with_backups)

    question = f"{extent}\nOverwrite all of that for good? No undo brings it back."
    return Question(question, confirmed, _NOTHING)


async def _purged(services: Services, found: Found, *, with_backups: bool) -> Text | Question:
    done = await services.upkeep.purging.carry_out(found, with_backups=with_backups)
    if not done.backups:
        return Text(done.sentence)
    if with_backups:
        return Text(f"{done.sentence} {await _rewritten(services, found.wanted)}")
    return _offered(services, f"{done.sentence}\n", done.backups, found.wanted)


async def _rewritten(services: Services, wanted: WantedPurge) -> str:
    return await services.upkeep.purging.rewrite_backups(services.machine.notifier.progress, wanted)


def _offered(services: Services, sentence: str, names: Sequence[str], wanted: WantedPurge) -> Question:
    async def confirmed() -> Text:
        return Text(await _rewritten(services, wanted))

    later = "the same purge" if wanted.words else "/purge backups"
    declined = Text(f"The backups are as they were; {later} rewrites them later.")
    return Question(f"{sentence}{still_there(names)}", confirmed, declined)
