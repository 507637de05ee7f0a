"""Export of a conversation to a file of the user."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.core.errors import CommandError, OutputError
from chorus_cli.core.log.export import Export, markdown
from chorus_cli.core.log.marks import NO_MARKS, log_marks
from chorus_cli.core.time import timestamps
from chorus_cli.services.log.transcript import Selection, message_as_json, operations_of, transcript
from chorus_cli.storage.files.durable_files import write_atomically

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.core.context.target import Target
    from chorus_cli.ports import Clock
    from chorus_cli.services.context.context import Context

_MARKDOWN = frozenset({".md", ".markdown"})
_JSON = ".json"
_WRITTEN = _MARKDOWN | {_JSON}

# Offers are made at every key.
_MOST_LOOKED_AT = 4_000
_MOST_OFFERED = 100

# Hidden files, and names that would be read as something else if they were typed.
_NOT_OFFERED_UNASKED = (".", "~", " ")


@dataclass(frozen=True, slots=True)
class Exporting:
    """Collects the messages of exports."""

    context: Context
    clock: Clock

    async def export(self, target: Target, *, whole: bool) -> Export:
        """Return the messages in context, or with ``whole`` all messages of the thread.

        Raises:
            CommandError: there are none.
        """
        now, marks = self.clock.now(), NO_MARKS
        if whole:
            selection = Selection(target.persona.slug, target.thread_id)
            operations = await operations_of(self.context.store, selection)
            entries = tuple([entry async for entry in transcript(self.context.store, selection, operations)])
            marks = log_marks(operations)
        else:
            entries = (await self.context.snapshot(target, now)).view.messages
        export = Export(target.persona.slug, target.persona.name, target.thread_id, now, whole, entries, marks)
        if not export.messages:
            otherwise = "" if whole else " /export FILE all writes everything that was said in this thread."
            raise CommandError(
                f"Nothing {'was said yet' if whole else 'is in context'}, so nothing was written.{otherwise}"
            )
        return export


def file_for(typed: str, target: Target, now: datetime) -> Path:
    """Return the path that was typed, relative to the current folder; for a folder, a new name in it.

    Raises:
        CommandError: the ending is neither that of Markdown nor that of JSON.
    """
    try:
        path = Path(typed).expanduser() if typed else Path()
    except RuntimeError:
        raise CommandError(f"There is no home folder for {typed}, so nothing was written.") from None
    if typed.endswith("/") or _is_folder(path):
        return path / f"{target.persona.slug}_{now:%Y-%m-%d_%H%M}.md"
    if not path.suffix:
        return path.with_name(f"{path.name}.md")
    if path.suffix.lower() not in _WRITTEN:
        raise CommandError(f"{path.name} ends in {path.suffix}; write .md for Markdown or .json for JSON.")
    return path


def offered(typed: str) -> list[str]:
    """Return the completions of a path: folders, with a slash, and files with one of the endings.

    There are none for a folder that cannot be read, and not all for a very large one.
    """
    if typed == "~":
        return ["~/"]
    lead = typed[: typed.rfind("/") + 1]
    begun = typed[len(lead) :].casefold()
    if not lead and begun.startswith("~"):
        return []
    try:
        with os.scandir(Path(lead).expanduser()) as entries:
            found = [_name(entry) for entry in islice(entries, _MOST_LOOKED_AT) if _may_be_meant(entry, begun)]
    except (OSError, ValueError, RuntimeError):
        return []
    return [lead + name for name in sorted(found, key=str.casefold)[:_MOST_OFFERED]]


def _may_be_meant(entry: os.DirEntry[str], begun: str) -> bool:
    name = entry.name
    if not name.casefold().startswith(begun) or not name.isprintable():
        return False
    if not begun and name.startswith(_NOT_OFFERED_UNASKED):
        return False
    return Path(name).suffix.lower() in _WRITTEN or _is_folder(entry)


def _name(entry: os.DirEntry[str]) -> str:
    return f"{entry.name}/" if _is_folder(entry) else entry.name


def _is_folder(path: Path | os.DirEntry[str]) -> bool:
    try:
        return path.is_dir()
    except OSError:
        # The error is reported when the file is written.
        return False


async def write(path: Path, export: Export, *, replace: bool) -> None:
    """Write an export to a file, whole or not at all.

    Raises:
        FileExistsError: it is there already and was not to be replaced.
        OutputError: it cannot be written; an old file is as it was.
    """
    text = _json(export) if path.suffix.lower() == _JSON else markdown(export)
    await asyncio.to_thread(_write, path, text, replace=replace)


def _write(path: Path, text: str, *, replace: bool) -> None:
    try:
        if path.exists() and not path.is_file():
            raise OutputError(f"{path} is no plain file, so nothing was written.")
        if not replace:
            # The name is taken first, so that no file of another program can be overwritten.
            path.touch(mode=0o600, exist_ok=False)
        try:
            write_atomically(path, text)
        except BaseException:
            if not replace:
                with suppress(OSError):
                    path.unlink()
            raise
    except FileExistsError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise OutputError(f"{path} cannot be written: {reason}. Nothing was written.") from error


def _json(export: Export) -> str:
    value = {
        "persona": export.persona,
        "name": export.name,
        "thread": export.thread_id,
        "exported_at": timestamps.to_text(export.exported_at),
        "whole_thread": export.is_whole,
        "messages": [message_as_json(message, export.marks) for message in export.messages],
    }
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
