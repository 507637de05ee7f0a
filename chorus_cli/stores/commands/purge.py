"""``/purge``: messages, and all that repeats them or was made of them, overwritten for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from chorus_cli.framework.arguments import DRY_RUN, PERSONA, Candidate, Parameter, flag, phrases
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Question, Text, data_of
from chorus_cli.services import Services
from chorus_cli.stores.rules.purging import NO_CRITERIA, WITH_BACKUPS, AskedPurge, BackupsFate, WantedPurge, asked_purge
from chorus_cli.stores.service.purging import NONE_HOLDS, REWRITES, still_there

GROUP: CommandGroup[Services] = CommandGroup("purge", "Overwrite messages for good.")

_NOTHING = Text("Nothing was purged.")


def _personas(services: Services, _text: str) -> Sequence[Candidate]:
    return [Candidate(slug) for slug in services.personas.slugs()]


def _threads(services: Services, _text: str) -> Sequence[Candidate]:
    return [Candidate(str(each.number), each.title) for each in services.threads.offers()]


MESSAGES = Parameter("number…", partial(asked_purge, "message"), "numbers of messages, as /search shows")
THREAD = Parameter("number", partial(asked_purge, "thread"), "the number of a thread", _threads)
PURGED = Parameter("name", partial(asked_purge, "persona"), "the name of a persona", _personas)
SPAN = Parameter("time [until T]", partial(asked_purge, "since"), "a time, and maybe until and another")
WORDS = Parameter("words", partial(asked_purge, "search"), "words as for /search", typed=phrases)
LIMITED = replace(PERSONA, help="only what was said to this persona, or whose thread it is")
BACKUPS = flag("rewrite the backups that still have it, too")


@GROUP.command("message", stoppable=True)
async def purge_messages(
    services: Services,
    numbers: Annotated[AskedPurge, MESSAGES],
    *,
    dry_run: Annotated[bool, DRY_RUN] = False,
    backups: Annotated[bool, BACKUPS] = False,
) -> Text | Question:
    """Overwrite messages by their numbers.

    With a message go its other wordings, the summaries and sessions that have it, memory items of it, attachments,
    drafts and lines of the input history. It is shown first, you are asked, and no undo brings it back.

    Examples:
        /purge message 12
        /purge message 12 15 16 --dry-run
    """
    return await _asked(services, numbers, is_dry=dry_run, with_backups=backups)


@GROUP.command("thread", stoppable=True)
async def purge_thread(
    services: Services,
    number: Annotated[AskedPurge, THREAD],
    *,
    persona: Annotated[str, LIMITED] = "",
    dry_run: Annotated[bool, DRY_RUN] = False,
    backups: Annotated[bool, BACKUPS] = False,
) -> Text | Question:
    """Overwrite everything said in a thread.

    Examples:
        /purge thread 3
    """
    return await _asked(services, replace(number, persona=persona), is_dry=dry_run, with_backups=backups)


@GROUP.command("persona", stoppable=True)
async def purge_persona(
    services: Services,
    name: Annotated[AskedPurge, PURGED],
    *,
    dry_run: Annotated[bool, DRY_RUN] = False,
    backups: Annotated[bool, BACKUPS] = False,
) -> Text | Question:
    """Overwrite everything said to and by a persona, with its memory and sessions; its files stay.

    Examples:
        /purge persona Frodo
    """
    return await _asked(services, name, is_dry=dry_run, with_backups=backups)


@GROUP.command("since", stoppable=True)
async def purge_span(
    services: Services,
    time: Annotated[AskedPurge, SPAN],
    *,
    persona: Annotated[str, LIMITED] = "",
    dry_run: Annotated[bool, DRY_RUN] = False,
    backups: Annotated[bool, BACKUPS] = False,
) -> Text | Question:
    """Overwrite everything said in a span of time, to all personas or one.

    Examples:
        /purge since 1h
        /purge since monday until yesterday --persona Frodo
    """
    return await _asked(services, replace(time, persona=persona), is_dry=dry_run, with_backups=backups)


@GROUP.command("search", stoppable=True)
async def purge_matches(
    services: Services,
    words: Annotated[AskedPurge, WORDS],
    *,
    persona: Annotated[str, LIMITED] = "",
    dry_run: Annotated[bool, DRY_RUN] = False,
    backups: Annotated[bool, BACKUPS] = False,
) -> Text | Question:
    """Overwrite every message and every other text with these words.

    Examples:
        /purge search "red house" --dry-run
        /purge search hunter2
    """
    return await _asked(services, replace(words, persona=persona), is_dry=dry_run, with_backups=backups)


@GROUP.command("backups", stoppable=True)
async def purge_backups(services: Services, *, backups: Annotated[bool, BACKUPS] = False) -> Text | Question:
    """Rewrite backups that still hold purged texts; with --backups without asking.

    Examples:
        /purge backups
    """
    names = await services.purging.in_backups()
    if names and backups:
        return await _rewritten(services, "", NO_CRITERIA, {})
    return _offered(services, "", names, NO_CRITERIA, {})


async def _asked(services: Services, asked: AskedPurge, *, is_dry: bool, with_backups: bool) -> Text | Question:
    found = await services.purging.find(asked, services.current.slug, services.notifier.progress)
    report: dict[str, object] = {**found.extent.as_json(), "purged": False}
    if found.extent.is_empty and not found.extent.backups:
        return Text(found.extent.text_of_none(), data_of(report))
    extent = found.extent.text(BackupsFate.of(with_backups=with_backups, is_dry=is_dry))
    if is_dry:
        return Text(f"{extent}\nNothing was purged.", data_of(report))
    if found.extent.is_empty:
        if with_backups:
            return await _rewritten(services, "", found.wanted, report)
        return _offered(services, "", found.extent.backups, found.wanted, report)

    async def confirmed() -> Text | Question:
        done = await services.purging.carry_out(found, services.notifier.progress, with_backups=with_backups)
        purged = {**report, "purged": True}
        if done.backups and with_backups:
            return await _rewritten(services, f"{done.sentence}\n", found.wanted, purged)
        return _offered(services, done.sentence, done.backups, found.wanted, purged)

    question = f"{extent}\nOverwrite all of that for good? No undo brings it back."
    return Question(question, confirmed, _NOTHING)


async def _rewritten(services: Services, sentence: str, wanted: WantedPurge, report: Mapping[str, object]) -> Text:
    """Rewrite the backups, and say so after the ``sentence``."""
    failures: list[str] = []
    told = await services.purging.rewrite_backups(failures.append, wanted)
    for failure in failures:
        services.notifier.progress(failure)

    async def data() -> object:
        return {**report, "backups": [*await services.purging.in_backups(wanted)]}

    return Text(f"{sentence}{told}", data, is_failure=bool(failures))


def _offered(
    services: Services, sentence: str, names: Sequence[str], wanted: WantedPurge, report: Mapping[str, object]
) -> Text | Question:
    """Offer to rewrite the backups that still have it, after the ``sentence``; without any, only that is said."""
    data = data_of({**report, "backups": [*names]})
    if not names:
        return Text(sentence or NONE_HOLDS, data)

    async def confirmed() -> Text:
        return await _rewritten(services, "", wanted, report)

    again = f"The same purge with {WITH_BACKUPS} rewrites them." if wanted.words else f"{REWRITES} them."
    declined = Text(f"The backups are as they were: {', '.join(names)}. {again}", data)
    return Question("\n".join(filter(None, (sentence, still_there(names)))), confirmed, declined)
