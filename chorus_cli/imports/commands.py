"""``/copy``, ``/export`` and ``/import``: the last reply, a conversation in a file, and conversations from files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

from chorus_cli.cards.commands import arrived
from chorus_cli.context.service.transcript import exported
from chorus_cli.core.errors import CommandError, ImportFormatError
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.framework.arguments import NUMBER, Candidate, Parameter
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Question, Report, Text
from chorus_cli.imports.service.imports import ImportReport, Wanted
from chorus_cli.log.rules.messages import Role, Status
from chorus_cli.log.rules.wording import Export, document
from chorus_cli.memory.rules.capture import code_in
from chorus_cli.services import Services
from chorus_cli.storage import typed_paths as export_files
from chorus_cli.storage.typed_paths import typed_paths

GROUP: CommandGroup[Services] = CommandGroup("")

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
    f"a file ending in .md or .json, or a folder; at the end {_ALL} for {_EVERYTHING}",
    _offered,
)


def _asked_code(text: str, now: datetime) -> int:
    """Return the number of a code block in a reply, 0 for the last one."""
    word, *rest = text.split(None, 1)
    if word.casefold() != _CODE:
        raise CommandError(f"/copy takes nothing, or {_CODE} and a number, such as /copy {_CODE} 2.")
    return NUMBER.parse(rest[0], now) if rest else 0


CODE = Parameter(
    f"{_CODE} [n]",
    _asked_code,
    f"{_CODE} for the last code block of the last reply that has one, {_CODE} 2 for its second one",
    lambda _services, _text: [Candidate(_CODE, "a code block of the last reply")],
)


@GROUP.command("copy")
async def copy(services: Services, code: Annotated[int | None, CODE] = None) -> Text:
    """Copy the last reply to the clipboard, exactly as the model wrote it, or a code block in it.

    It uses a clipboard tool if there is one, and the terminal itself, which also works over SSH.

    Examples:
        /copy
        /copy code
        /copy code 2
    """
    replies = await _replies(services)
    if not replies:
        raise CommandError("There is nothing to copy: no reply is in context.")
    text, named = (replies[-1], "") if code is None else _code_of(replies, code)
    ways = await asyncio.to_thread(services.copy, text)
    return Text(f'Copied {named}{counted(len(text), "character")} {ways}: "{shortened(text)}"')


async def _replies(services: Services) -> list[str]:
    """Return the texts of the replies in context."""
    seen = (await services.context.snapshot(services.current.target(), services.clock.now())).view
    return [
        message.content
        for message in seen.messages
        if message.role is Role.ASSISTANT and message.content.strip() and message.status is not Status.STREAMING
    ]


def _code_of(replies: Sequence[str], asked: int) -> tuple[str, str]:
    """Return a code block of the last reply that has one, and words that name it."""
    blocks = next(filter(None, map(code_in, reversed(replies))), [])
    if not blocks:
        raise CommandError("There is nothing to copy: no reply in context has a code block.")
    number = asked or len(blocks)
    if number > len(blocks):
        raise CommandError(f"The last reply with code has {counted(len(blocks), 'code block')}; there is no #{number}.")
    return blocks[number - 1], f"code block {number} of {len(blocks)}, "


@GROUP.command("export")
async def export(services: Services, file: Annotated[AskedExport | None, FILE] = None) -> Text | Question:
    """Write the conversation to a file: Markdown, or JSON if its name ends in .json.

    The context is exported; with "all" at the end, every message of the thread. Replies that failed without a word are
    left out. Without a file, a new one is made in the current folder. An existing file is overwritten only if you
    confirm.

    Examples:
        /export
        /export ~/notes/rivendell.md
        /export talk.json all
    """
    asked, target = file or AskedExport(), services.current.target()
    new_name = f"{target.persona.slug}_{services.clock.now():%Y-%m-%d_%H%M}.md"
    path = export_files.file_for(asked.file, new_name)
    export = await exported(services.context, target, services.clock.now(), whole=asked.whole)

    try:
        return await _written(path, export, replace=False)
    except FileExistsError:
        declined = Text(f"{path} is unchanged; nothing was written.")
        overwrite = partial(_written, path, export, replace=True)
        return Question(f"{path} already exists. Overwrite it?", overwrite, declined)


async def _written(path: Path, export: Export, *, replace: bool) -> Text:
    text = document(export, is_json=path.suffix.lower() == ".json")
    await asyncio.to_thread(export_files.write, path, text, replace=replace)
    return Text(_exported(path, export))


def _exported(path: Path, export: Export) -> str:
    exported = "the whole thread" if export.is_whole else "the context"
    return f"Exported {exported}, {counted(len(export.messages), 'message')}, to {path.absolute()}"


_DRY = "--dry-run"


class AskedImport(NamedTuple):
    """The files as typed, and whether this is a dry run."""

    text: str
    is_dry: bool


def _asked(text: str, _now: datetime) -> AskedImport:
    words = text.split()
    is_dry = _DRY in {words[0], words[-1]}
    files = text.removeprefix(_DRY).removesuffix(_DRY).strip() if is_dry else text
    if not files:
        raise CommandError(f"{_DRY} needs a file, for example: /import ~/Downloads/export.zip {_DRY}")
    return AskedImport(files, is_dry)


def _offered_paths(_services: Services, text: str) -> Sequence[Candidate]:
    return [Candidate(path) for path in export_files.offered(text, None)]


FILES = Parameter(
    f"file… [{_DRY}]",
    _asked,
    f"files, archives or folders; at the end {_DRY} only to see what is in them",
    _offered_paths,
)


@GROUP.command("import", stoppable=True)
async def import_files(services: Services, files: Annotated[AskedImport, FILES]) -> Text | Report:
    """Take in conversations of other programs: each becomes a closed thread with its own times.

    Files are recognised by their content. Messages that are in the log already are not added again, so a newer export
    adds only new ones. /search finds the messages at once, /thread TITLE opens a conversation, /context edit or
    /context restore brings it into the context. Ctrl-C stops between two conversations. One /context undo takes all of
    it back. A character card makes a persona, as with /persona import.

    Examples:
        /import ~/Downloads/export.zip
        /import ~/Downloads/export.zip --dry-run
    """
    asked = await asyncio.to_thread(typed_paths, files.text)
    taken, paths = await services.cards.take_in_all(asked, is_dry=files.is_dry)
    if len(taken) == 1 and not paths and not files.is_dry:
        return await arrived(services, taken[0])
    wanted = Wanted(paths, services.current.slug, card_personas=[each.slug for each in taken])
    number, told = await _take_in(services, wanted, is_dry=files.is_dry) if paths else (0, "")
    return Text("\n".join([*(each.told for each in taken), *([told] if number or not taken else [])]))


async def _take_in(services: Services, wanted: Wanted, *, is_dry: bool) -> tuple[int, str]:
    """Import conversations, or for a dry run only look at them; return their number and the report."""
    if is_dry:
        found = await services.imports.preview(wanted)
        return found.conversations, found.text()
    report = ImportReport(is_dry=False)
    try:
        await services.imports.take_in(wanted, report, services.notifier.progress)
    except asyncio.CancelledError:
        if not report.added.messages:
            raise
        stopped = "It was stopped before the end; the same import goes on from there."
        return report.conversations, f"{report.text()}\n{stopped}"
    except ImportFormatError as error:
        if not report.added.messages:
            raise
        return report.conversations, f"{report.text()}\nThen it came to an end: {error}"
    return report.conversations, report.text()
