"""The commands ``/purge``, ``/backup`` and ``/rescue``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.framework.arguments import DRY_RUN, NUMBER, PERSONA, TEXT, Candidate, Parameter, flag, phrases
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Question, Report, Table, Text, data_of
from chorus_cli.log.rules.wording import local
from chorus_cli.services import Services
from chorus_cli.storage import typed_paths
from chorus_cli.stores.rules.purging import NO_CRITERIA, WITH_BACKUPS, WantedPurge, span
from chorus_cli.stores.service.purging import NONE_HOLDS, REWRITES, still_there

PURGE: CommandGroup[Services] = CommandGroup("purge", "Overwrite messages for good.", topic="log")
RESCUE: CommandGroup[Services] = CommandGroup("rescue", "Texts that could not be stored, and backups.", topic="log")

_NOTHING = Text("Nothing was purged.")


def _personas(services: Services, _text: str) -> Sequence[Candidate]:
    return [Candidate(slug) for slug in services.personas.slugs()]


def _threads(services: Services, _text: str) -> Sequence[Candidate]:
    return [Candidate(str(each.number), each.title) for each in services.threads.offers()]


def _numbers(text: str, now: datetime) -> frozenset[int]:
    return frozenset(NUMBER.parse(word, now) for word in text.replace(",", " ").split())


MESSAGES = Parameter("number…", _numbers, "numbers of messages, as /search shows them")
THREAD = replace(NUMBER, help="the number of a thread", complete=_threads)
PURGED = replace(TEXT, name="name", help="the name of a persona", complete=_personas)
SPAN = Parameter("time [until T]", span, "from this time on, or until T; a day counts to its end")
WORDS = replace(TEXT, name="words", help="words that must all occur as they are written", typed=phrases)
LIMITED = replace(PERSONA, help="only texts of this persona; with a thread, the persona that has it")
BACKUPS = flag("also rewrite the backups that still hold purged texts")


@PURGE.command("message", stoppable=True)
async def purge_messages(
    services: Services,
    numbers: Annotated[frozenset[int], MESSAGES],
    *,
    dry_run: Annotated[bool, DRY_RUN] = False,
    backups: Annotated[bool, BACKUPS] = False,
) -> Text | Question:
    """Overwrite messages by their numbers.

    A purge also takes a message's other wordings and attachments, the summaries and memory items made from it,
    copies in sessions, drafts and the input history, and the output of all jobs. Chorus first shows what it would
    purge, and asks. A purge cannot be undone.

    Examples:
        /purge message 12
        /purge message 12 15 16 --dry-run
    """
    return await _asked(services, WantedPurge(numbers), is_dry=dry_run, with_backups=backups)


@PURGE.command("thread", stoppable=True)
async def purge_thread(
    services: Services,
    number: Annotated[int, THREAD],
    *,
    persona: Annotated[str, LIMITED] = "",
    dry_run: Annotated[bool, DRY_RUN] = False,
    backups: Annotated[bool, BACKUPS] = False,
) -> Text | Question:
    """Overwrite everything said in a thread.

    Examples:
        /purge thread 3
    """
    return await _asked(services, WantedPurge(thread=number, persona=persona), is_dry=dry_run, with_backups=backups)


@PURGE.command("persona", stoppable=True)
async def purge_persona(
    services: Services,
    name: Annotated[str, PURGED],
    *,
    dry_run: Annotated[bool, DRY_RUN] = False,
    backups: Annotated[bool, BACKUPS] = False,
) -> Text | Question:
    """Overwrite the messages, memory and sessions of a persona; its settings and documents stay.

    Examples:
        /purge persona Frodo
    """
    return await _asked(services, WantedPurge(personas=frozenset({name})), is_dry=dry_run, with_backups=backups)


@PURGE.command("since", stoppable=True)
async def purge_span(
    services: Services,
    time: Annotated[WantedPurge, SPAN],
    *,
    persona: Annotated[str, LIMITED] = "",
    dry_run: Annotated[bool, DRY_RUN] = False,
    backups: Annotated[bool, BACKUPS] = False,
) -> Text | Question:
    """Overwrite all messages in a span of time, of all personas or one.

    Examples:
        /purge since 1h
        /purge since monday until yesterday --persona Frodo
    """
    return await _asked(services, time._replace(persona=persona), is_dry=dry_run, with_backups=backups)


@PURGE.command("search", stoppable=True)
async def purge_matches(
    services: Services,
    words: Annotated[str, WORDS],
    *,
    persona: Annotated[str, LIMITED] = "",
    dry_run: Annotated[bool, DRY_RUN] = False,
    backups: Annotated[bool, BACKUPS] = False,
) -> Text | Question:
    """Overwrite every message and other text that contains these words.

    Examples:
        /purge search "red house" --dry-run
        /purge search hunter2
    """
    return await _asked(services, WantedPurge(words=words, persona=persona), is_dry=dry_run, with_backups=backups)


@PURGE.command("backups", stoppable=True)
async def purge_backups(services: Services, *, backups: Annotated[bool, BACKUPS] = False) -> Text | Question:
    """Rewrite the backups that still hold purged texts. --backups skips the question.

    Examples:
        /purge backups
    """
    names = await services.purging.in_backups()
    if names and backups:
        return await _rewritten(services, "", NO_CRITERIA, {})
    return _rewriting_offered(services, "", names, NO_CRITERIA, {})


async def _asked(services: Services, asked: WantedPurge, *, is_dry: bool, with_backups: bool) -> Text | Question:
    found = await services.purging.find(asked, services.current.slug)
    report: dict[str, object] = {**found.extent.as_json(), "purged": False}
    has_output = services.jobs.has_output
    if found.extent.is_empty and not found.extent.backups:
        told = " The output of this run's jobs was not searched; it is gone when you quit." if has_output else ""
        return Text(f"{found.extent.text_of_none()}{told}", data_of(report))
    extent = "\n".join(found.extent.lines())
    if is_dry:
        return Text(f"{extent}\nNothing was purged.", data_of(report))
    if found.extent.is_empty:
        if with_backups:
            return await _rewritten(services, "", found.wanted, report)
        return _rewriting_offered(services, "", found.extent.backups, found.wanted, report)

    async def confirmed() -> Text | Question:
        services.jobs.forget_output()
        done = await services.purging.carry_out(found, services.notifier.progress, with_backups=with_backups)
        purged = {**report, "purged": True}
        if done.backups and with_backups:
            return await _rewritten(services, f"{done.sentence}\n", found.wanted, purged)
        return _rewriting_offered(services, done.sentence, done.backups, found.wanted, purged)

    texts = f"{found.extent.named()}{' and forget the output of all jobs' if has_output else ''}"
    return Question(f"{extent}\nOverwrite {texts} for good? It cannot be undone.", confirmed, _NOTHING)


async def _rewritten(services: Services, sentence: str, wanted: WantedPurge, report: Mapping[str, object]) -> Text:
    """Rewrite the backups; answer with the ``sentence`` and a sentence about the backups."""
    *failures, told = await services.purging.rewrite_backups(wanted)
    for failure in failures:
        services.notifier.progress(failure)

    async def data() -> object:
        return {**report, "backups": [*await services.purging.in_backups(wanted)]}

    return Text(f"{sentence}{told}", data, is_failure=bool(failures))


def _rewriting_offered(
    services: Services, sentence: str, names: Sequence[str], wanted: WantedPurge, report: Mapping[str, object]
) -> Text | Question:
    """Answer with the ``sentence``, and ask whether to rewrite the backups ``names`` if there are any."""
    data = data_of({**report, "backups": [*names]})
    if not names:
        return Text(sentence or NONE_HOLDS.format(services.purging.home.paths.backups), data)

    async def confirmed() -> Text:
        return await _rewritten(services, "", wanted, report)

    has_criteria = wanted.criteria() != NO_CRITERIA
    again = f"The same purge with {WITH_BACKUPS} rewrites them." if has_criteria else f"{REWRITES} them."
    declined = Text(f"Nothing was rewritten in {', '.join(names)}. {again}", data)
    return Question("\n".join(filter(None, (sentence, still_there(names)))), confirmed, declined)


_NO_TEXT = Text("No text waits to be stored or sent.")


def _files(_services: Services, text: str) -> Sequence[Candidate]:
    return [Candidate(path) for path in typed_paths.offered(text, frozenset({".zip"}))]


FILE = replace(TEXT, name="file", help="a new file, or a folder", complete=_files)


@RESCUE.command("backup", aliases=("backup",), stoppable=True)
async def backup(services: Services, file: Annotated[str, FILE] = "") -> Text:
    """Copy everything to one file.

    The file holds the log, personas, sessions, settings, commands and attachments. If you name no file, Chorus makes
    one beside the daily backups. chorus restore FILE brings everything back.

    Examples:
        /backup
        /backup /media/stick/chorus.zip
    """
    return Text((await services.backups.make(file)).sentence())


@RESCUE.command("", "list")
async def rescued(services: Services) -> Text | Report:
    """List texts that were not stored, and messages not sent.

    Examples:
        /rescue
    """
    found = await services.rescued.find()
    unreadable = [Text(f"{path} cannot be read; open it in an editor.") for path in found.unreadable]
    if not found.texts:
        return Report((_NO_TEXT, *unreadable))
    rows = tuple((local(at), text.persona, text.role, shortened(text.content)) for text, at, *_ in found.texts)
    table = Table("", ("When", "Persona", "Role", "Text"), rows, cut=frozenset({"Text"}))
    advice = Text("/rescue keep puts them into the log, /rescue discard deletes them.")
    return Report((table, advice, *unreadable))


@RESCUE.command("keep")
async def keep(services: Services) -> Text:
    """Put each text into the log, in a closed thread of its persona.

    Examples:
        /rescue keep
    """
    found = await services.rescued.find(must_be_rows=True)
    if not found.texts:
        return _NO_TEXT
    brought = await services.rescued.bring_in(found.texts)
    lines = [
        f"{counted(each.texts, 'text')} of {each.persona} in thread #{each.thread_number}, which is closed; "
        f"/thread {each.thread_number} opens it."
        for each in brought
    ]
    return Text("\n".join(["In the log now:", *lines]))


@RESCUE.command("discard")
async def discard(services: Services) -> Text | Question:
    """Delete the texts.

    Examples:
        /rescue discard
    """
    found = await services.rescued.find(must_be_rows=True)
    if not found.texts:
        return _NO_TEXT

    async def confirmed() -> Text:
        await services.rescued.discard(found.texts)
        return Text(f"Deleted {counted(len(found.texts), 'text')}.")

    they_are, them = ("It is", "it") if len(found.texts) == 1 else ("They are", "them")
    question = f"Delete {counted(len(found.texts), 'text')} for good? {they_are} not in the log."
    return Question(question, confirmed, Text(f"Nothing was deleted; /rescue shows {them}."))
