"""``/import``: conversations of other programs come into the log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from chorus_cli.cards.commands import arrived
from chorus_cli.core.errors import CommandError, ImportFormatError
from chorus_cli.framework.arguments import Candidate, Parameter
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Report, Text
from chorus_cli.imports.service.imports import Wanted
from chorus_cli.imports.service.report import ImportReport
from chorus_cli.services import Services
from chorus_cli.storage import export_files
from chorus_cli.storage.typed_paths import typed_paths

GROUP: CommandGroup[Services] = CommandGroup("")

_DRY = "--dry-run"


@dataclass(frozen=True, slots=True)
class AskedImport:
    """The files as typed, and whether this is a dry run."""

    text: str
    is_dry: bool

    def paths(self) -> list[Path]:
        """Return the files: the whole text if that is one, with all its blanks, or else each word.

        Raises:
            CommandError: there is no home folder for ``~``.
        """
        return typed_paths(self.text)


def _asked(text: str, _now: datetime) -> AskedImport:
    words = text.split()
    is_dry = _DRY in {words[0], words[-1]}
    files = text.removeprefix(_DRY).removesuffix(_DRY).strip() if is_dry else text
    if not files:
        raise CommandError(f"{_DRY} needs a file, for example: /import ~/Downloads/export.zip {_DRY}")
    return AskedImport(files, is_dry)


def _offered(_services: Services, text: str) -> Sequence[Candidate]:
    return [Candidate(path) for path in export_files.offered(text, None)]


FILES = Parameter(
    f"file… [{_DRY}]", _asked, f"files, archives or folders; at the end {_DRY} only to see what is in them", _offered
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
    asked = await asyncio.to_thread(files.paths)
    taken, paths = await services.cards.take_in_all(asked, is_dry=files.is_dry)
    if len(taken) == 1 and not paths and not files.is_dry:
        return await arrived(services, taken[0])
    wanted = Wanted(paths, services.focus.slug, card_personas=[each.slug for each in taken])
    number, told = await _take_in(services, wanted, is_dry=files.is_dry) if paths else (0, "")
    return Text("\n".join([*(each.told for each in taken), *([told] if number or not taken else [])]))


async def _take_in(services: Services, wanted: Wanted, *, is_dry: bool) -> tuple[int, str]:
    """Import conversations, or for a dry run only look at them; return their number and the report."""
    if is_dry:
        found = await services.imports.preview(wanted)
        return found.conversations, found.text()
    report = ImportReport(is_dry=False)
    try:
        await services.imports.take_in(wanted, report, services.machine.notifier.progress)
    except asyncio.CancelledError:
        if not report.added_messages:
            raise
        stopped = "It was stopped before the end; the same import goes on from there."
        return report.conversations, f"{report.text()}\n{stopped}"
    except ImportFormatError as error:
        if not report.added_messages:
            raise
        return report.conversations, f"{report.text()}\nThen it came to an end: {error}"
    return report.conversations, report.text()
