"""``/copy`` and ``/export``: the last reply in the clipboard, the conversation in a file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from chorus_cli.commands.framework.arguments import Candidate, Parameter
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Question, Text
from chorus_cli.commands.framework.services import Services
from chorus_cli.core.errors import CommandError
from chorus_cli.core.log.export import Export, document
from chorus_cli.core.log.messages import Role, Status
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.storage.files import export_files

GROUP: CommandGroup[Services] = CommandGroup("")

_ALL, _EVERYTHING = "all", "every message of the thread"


@dataclass(frozen=True, slots=True)
class AskedExport:
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


@GROUP.command("copy")
async def copy(services: Services) -> Text:
    """Copy the last reply to the clipboard, exactly as the model wrote it.

    It uses a clipboard tool if there is one, and the terminal itself, which also works over SSH.

    Examples:
        /copy
    """
    seen = (await services.context.planner.snapshot(services.focus.target(), services.machine.clock.now())).view
    replies = [
        message
        for message in seen.messages
        if message.role is Role.ASSISTANT and message.content.strip() and message.status is not Status.STREAMING
    ]
    if not replies:
        raise CommandError("There is nothing to copy: no reply is in context.")
    text = replies[-1].content
    ways = await asyncio.to_thread(services.machine.copy, text)
    return Text(f'Copied {counted(len(text), "character")} {ways}: "{shortened(text)}"')


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
    asked, target = file or AskedExport(), services.focus.target()
    new_name = f"{target.persona.slug}_{services.machine.clock.now():%Y-%m-%d_%H%M}.md"
    path = export_files.file_for(asked.file, new_name)
    export = await services.log.exporting.export(target, whole=asked.whole)

    async def overwrite() -> Text:
        await _write(path, export, replace=True)
        return _written(path, export)

    try:
        await _write(path, export, replace=False)
    except FileExistsError:
        declined = Text(f"{path} is unchanged; nothing was written.")
        return Question(f"{path} already exists. Overwrite it?", overwrite, declined)
    return _written(path, export)


async def _write(path: Path, export: Export, *, replace: bool) -> None:
    text = document(export, is_json=path.suffix.lower() == ".json")
    await asyncio.to_thread(export_files.write, path, text, replace=replace)


def _written(path: Path, export: Export) -> Text:
    exported = "the whole thread" if export.is_whole else "the context"
    return Text(f"Exported {exported}, {counted(len(export.messages), 'message')}, to {path.absolute()}")
