"""``/copy`` copies a reply, ``/export`` writes conversations to files, ``/import`` reads conversations from files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from chorus_cli.cards.commands import arrived, introduced
from chorus_cli.context.service.transcript import exported
from chorus_cli.core.errors import CommandError, StorageError
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.framework.arguments import DRY_RUN, NUMBER, PERSONA, TEXT, Candidate, Parameter
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Question, Reply, Report, Text, data_of, unless_there
from chorus_cli.imports.service import ENDINGS, ImportReport, Wanted
from chorus_cli.log.rules.messages import Role, Status
from chorus_cli.log.rules.wording import Export, document
from chorus_cli.memory.rules.capture import code_in
from chorus_cli.services import Services
from chorus_cli.storage import typed_paths as export_files
from chorus_cli.storage.typed_paths import escaped, typed_path, typed_paths

GROUP: CommandGroup[Services] = CommandGroup("", topic="log")

_CODE = "code"
_ALL, _EVERYTHING = "all", "every message of the thread"


class AskedExport(NamedTuple):
    """The file as typed, and whether to export the whole thread instead of the context."""

    file: str = ""
    whole: bool = False


def _asked_export(text: str, _now: datetime) -> AskedExport:
    *before, last = text.rsplit(None, 1)
    if last.casefold() == _ALL:
        return AskedExport("".join(before), whole=True)
    return AskedExport(text)


def _offered(_services: Services, text: str) -> Sequence[Candidate]:
    before = text.removesuffix(text.rpartition(" ")[2])
    whole = () if before.casefold().split()[-1:] == [_ALL] else (Candidate(f"{before}{_ALL}", _EVERYTHING),)
    return [*whole, *map(Candidate, export_files.offered(text))]


FILE = Parameter(
    "file [all]",
    _asked_export,
    f"a file ending in .md or .json, or a folder; add {_ALL} for {_EVERYTHING}",
    _offered,
)


def _asked_code(text: str, now: datetime) -> int:
    """Return the number of the code block to copy, 0 for the last block."""
    word, *rest = text.split(None, 1)
    if word.casefold() != _CODE:
        raise CommandError(f"/copy takes nothing, or {_CODE} and a number, such as /copy {_CODE} 2.")
    return NUMBER.parse(rest[0], now) if rest else 0


CODE = Parameter(
    f"{_CODE} [n]",
    _asked_code,
    f"{_CODE} for the last code block of the last reply with code, {_CODE} 2 for the second block of that reply",
    lambda _services, _text: [Candidate(_CODE, "a code block of the last reply")],
)


@GROUP.command("copy")
async def copy(services: Services, code: Annotated[int | None, CODE] = None) -> Text:
    """Copy the last reply, as the model wrote it, or a code block in it.

    A clipboard tool, if installed, copies the text. The terminal copies it too, even over SSH.

    Examples:
        /copy
        /copy code
        /copy code 2
    """
    replies = await _replies(services)
    if not replies:
        raise CommandError("There is nothing to copy: no reply is in context.")
    text, named = (replies[-1], "the last reply") if code is None else _code_of(replies, code)
    ways = await asyncio.to_thread(services.copy, text)
    return Text(f'Copied {named} ({counted(len(text), "character")}) {ways}: "{shortened(text)}"')


async def _replies(services: Services) -> list[str]:
    seen = (await services.context.snapshot(services.current.target(), services.clock.now())).view
    return [
        message.content
        for message in seen.messages
        if message.role is Role.ASSISTANT and message.content.strip() and message.status is not Status.STREAMING
    ]


def _code_of(replies: Sequence[str], asked: int) -> tuple[str, str]:
    """Return block ``asked`` (0: the last) of the last reply with code, and words that name the block."""
    blocks = next(filter(None, map(code_in, reversed(replies))), [])
    if not blocks:
        raise CommandError("There is nothing to copy: no reply in context has a code block.")
    number = asked or len(blocks)
    if number > len(blocks):
        raise CommandError(f"The last reply with code has {counted(len(blocks), 'code block')}; there is no #{number}.")
    return blocks[number - 1], f"code block {number} of {len(blocks)}"


ALL = replace(TEXT, name="DIR", help="write every conversation of every persona to this folder, each to its own file")
FORMAT = replace(TEXT, name="F", help="with --all: md (the default) or jsonl", choices=ENDINGS)
OF_PERSONA = replace(PERSONA, help="with --all: only the conversations of this persona")


@GROUP.command("export")
async def export(
    services: Services,
    file: Annotated[AskedExport | None, FILE] = None,
    *,
    all_: Annotated[str, ALL] = "",
    format_: Annotated[str, FORMAT] = ENDINGS[0],
    persona: Annotated[str, OF_PERSONA] = "",
) -> Text | Question:
    """Write the conversation to a file: Markdown, or JSON if its name ends in .json.

    The file gets the context, or with "all" at the end every message of the thread. Failed replies without text are
    left out. If you name no file, Chorus makes one in the current folder. An existing file is overwritten only if you
    confirm. With --all, Chorus writes every conversation with its times, models, branches and attachments; an import
    reads these files back exactly.

    Examples:
        /export
        /export ~/notes/rivendell.md
        /export talk.json all
        /export --all ~/talks
    """
    if all_ and file:
        raise CommandError("--all takes only a folder; leave the file out.")
    if all_:
        return await _export_all(services, typed_path(all_), format_, persona)
    if persona or format_ != ENDINGS[0]:
        raise CommandError("--persona and --format need --all DIR; a FILE gets this conversation, as .md or .json.")
    asked, target = file or AskedExport(), services.current.target()
    new_name = f"{target.persona.slug}_{services.clock.now():%Y-%m-%d_%H%M}.md"
    path = export_files.file_for(asked.file, new_name)
    export = await exported(services.context, target, services.clock.now(), whole=asked.whole)

    return await unless_there(path, partial(_written, path, export))


async def _export_all(services: Services, folder: Path, ending: str, persona: str) -> Text:
    progress, slug = services.notifier.progress, await services.only_of(persona)
    amounts = await services.imports.export_all(folder, ending, slug, progress)
    return Text(amounts.sentence(folder), data_of(asdict(amounts) | {"folder": f"{folder}"}))


async def _written(path: Path, export: Export, *, replace: bool) -> Text:
    text = document(export, is_json=path.suffix.lower() == ".json")
    await asyncio.to_thread(export_files.write, path, text, replace=replace)
    return Text(_exported(path, export))


def _exported(path: Path, export: Export) -> str:
    exported = "the whole thread" if export.is_whole else "the context"
    return f"Exported {exported}, {counted(len(export.messages), 'message')}, to {path.absolute()}"


def _zone(name: str, _now: datetime) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CommandError(f"There is no time zone {name!r}. Name one such as Europe/Berlin or UTC.") from None


FILES = replace(
    TEXT,
    name="file…",
    help="files, archives or folders",
    complete=lambda _services, text: [Candidate(path) for path in export_files.offered(text, None)],
    typed=escaped,
)
INTO = replace(PERSONA, help="who gets all conversations; by default the persona that a file names, or the current one")
ZONE = Parameter("Z", _zone, "the time zone for times without one, such as Europe/Berlin")


@GROUP.command("import", stoppable=True)
async def import_files(
    services: Services,
    files: Annotated[str, FILES],
    *,
    dry_run: Annotated[bool, DRY_RUN] = False,
    persona: Annotated[str, INTO] = "",
    timezone: Annotated[tzinfo | None, ZONE] = None,
) -> Reply:
    """Import conversations of other programs, each as a closed thread.

    Chorus recognises files by their content, and adds only messages that are not in the log yet. /search finds the
    messages at once, /thread TITLE opens a conversation, /context edit brings old messages into the context. Ctrl-C
    stops between two conversations. To revert the import, type /context undo with each persona that got messages. A
    character card makes a persona, as with /persona import.

    Examples:
        /import ~/Downloads/export.zip
        /import ~/Downloads/export.zip --dry-run
    """
    asked = await asyncio.to_thread(typed_paths, files)
    into = services.personas.find(persona) if persona else None
    wanted = Wanted(asked, services.current.slug, into, timezone)
    if dry_run:
        return await _sorted_and_taken_in(services, wanted, dry_run=True)
    return await introduced(services, asked, partial(_sorted_and_taken_in, services, wanted))


async def _sorted_and_taken_in(services: Services, asked: Wanted, *, dry_run: bool = False) -> Text | Report:
    """Make personas from cards, import the other files, and report both; a dry run only reports."""
    taken, cards, paths = await services.cards.take_in_all(asked.paths, is_dry=dry_run)
    report, slugs = ImportReport(dry_run), [each.slug for each in taken]
    wanted = asked._replace(paths=paths, card_personas=slugs, cards=frozenset(cards))
    try:
        told = await _taken_in(services, wanted, report) if paths else ""
    except BaseException:
        for each in taken:
            services.notifier.progress(each.told)
        raise
    data = data_of(report.as_json() | {"cards": [each.as_json() for each in taken]})
    if len(taken) == 1 and not paths and not dry_run and services.is_chat:
        return replace(await arrived(services, taken[0]), data=data)
    lines = [*(each.told for each in taken), *([told] if report.conversations or not taken else [])]
    return Text("\n".join(lines), data)


async def _taken_in(services: Services, wanted: Wanted, report: ImportReport) -> str:
    """Import conversations, or only count them in a dry run; return the report as text."""
    if report.is_dry:
        await services.imports.preview(wanted, report)
        return report.text()
    try:
        await services.imports.take_in(wanted, report, services.notifier.progress)
    except BaseException as error:
        if report.added.messages and services.is_chat and isinstance(error, asyncio.CancelledError):
            return f"{report.text()}\nYou stopped the import; the same command goes on from there."
        if report.added.messages:
            services.notifier.progress(report.text())
        raise
    if not services.is_chat:
        # The import is complete; if the search index cannot be filled now, the next search fills it.
        with suppress(StorageError):
            await services.search.catch_up(services.notifier.progress)
    return report.text()
