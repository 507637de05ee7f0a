"""``/copy`` and ``/export``: taking what was said elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from chorus_cli.commands.framework.arguments import Candidate, Parameter
from chorus_cli.commands.framework.command_context import CommandContext
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Question, Text
from chorus_cli.core.errors import CommandError
from chorus_cli.core.log.export import Export
from chorus_cli.core.log.messages import Role, Status
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.services.log import export as exports

GROUP: CommandGroup[CommandContext] = CommandGroup("")

_ALL, _EVERYTHING = "all", "everything that was ever said in the thread"


@dataclass(frozen=True, slots=True)
class AskedExport:
    """The file as it was typed, and whether all of the thread is to be written."""

    file: str = ""
    whole: bool = False


def _asked_export(text: str, _now: datetime) -> AskedExport:
    *before, last = text.rsplit(None, 1)
    if last.casefold() == _ALL:
        return AskedExport("".join(before), whole=True)
    return AskedExport(text)


def _offered(_context: CommandContext, text: str) -> Sequence[Candidate]:
    before = text.removesuffix(text.rpartition(" ")[2])
    whole = () if before.casefold().split()[-1:] == [_ALL] else (Candidate(f"{before}{_ALL}", _EVERYTHING),)
    return [*whole, *map(Candidate, exports.offered(text))]


FILE = Parameter(
    "file [all]",
    _asked_export,
    f"a file that ends in .md or .json, or a folder; {_ALL} for {_EVERYTHING}",
    _offered,
)


@GROUP.command("copy")
async def copy(context: CommandContext) -> Text:
    """Copy the last reply to the clipboard, as it was written.

    By a clipboard tool if there is one, and by the terminal itself, which reaches over SSH.

    Examples:
        /copy
    """
    seen = (await context.context.snapshot(context.focus.target(), context.clock.now())).view
    replies = [
        message
        for message in seen.messages
        if message.role is Role.ASSISTANT and message.content.strip() and message.status is not Status.STREAMING
    ]
    if not replies:
        raise CommandError("No reply is in context, so there is nothing to copy.")
    text = replies[-1].content
    ways = await asyncio.to_thread(context.copy, text)
    return Text(f'Copied {counted(len(text), "character")} {ways}: "{shortened(text)}"')


@GROUP.command("export")
async def export(context: CommandContext, file: Annotated[AskedExport | None, FILE] = None) -> Text | Question:
    """Write the conversation to a file: Markdown, or JSON if its name ends in .json.

    What is in context is written; with "all" at the end everything that was ever said in this thread, as chorus log
    shows it. Without a file it gets a name in the present folder. A file that exists is overwritten only after a yes.

    Examples:
        /export
        /export ~/notes/rivendell.md
        /export talk.json all
    """
    asked, target = file or AskedExport(), context.focus.target()
    path = exports.file_for(asked.file, target, context.clock.now())
    export = await context.exporting.export(target, whole=asked.whole)

    async def overwrite() -> Text:
        await exports.write(path, export, replace=True)
        return _written(path, export)

    try:
        await exports.write(path, export, replace=False)
    except FileExistsError:
        declined = Text(f"{path} is as it was; nothing was written.")
        return Question(f"{path} exists already. Overwrite it?", overwrite, declined)
    return _written(path, export)


def _written(path: Path, export: Export) -> Text:
    what = "all that was said in this thread" if export.is_whole else "what is in context"
    return Text(f"Wrote {what}, {counted(len(export.messages), 'message')}, to {path.absolute()}")
