"""``/import``: conversations of other programs come into the log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from chorus_cli.commands.cards import imported
from chorus_cli.commands.framework.arguments import Candidate, Parameter
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Report, Text
from chorus_cli.commands.framework.services import Services
from chorus_cli.core.errors import CommandError, ImportFormatError
from chorus_cli.services.imports.imports import Wanted
from chorus_cli.services.imports.report import ImportReport
from chorus_cli.storage.files import card_files, export_files
from chorus_cli.storage.files.card_files import CardFile

GROUP: CommandGroup[Services] = CommandGroup("")

_DRY = "--dry-run"


@dataclass(frozen=True, slots=True)
class AskedImport:
    """The files as typed, and whether only to say what is in them."""

    text: str
    is_dry: bool

    def paths(self) -> list[Path]:
        """Return the files: the whole text if that is one, with all its blanks, or else each word.

        Raises:
            CommandError: there is no home folder for ``~``.
        """
        whole = _path(self.text)
        return [whole] if whole.exists() else [_path(word) for word in self.text.split()]


def _asked(text: str, _now: datetime) -> AskedImport:
    words = text.split()
    is_dry = _DRY in {words[0], words[-1]}
    files = text.removeprefix(_DRY).removesuffix(_DRY).strip() if is_dry else text
    if not files:
        raise CommandError(f"{_DRY} needs a file, for example: /import ~/Downloads/export.zip {_DRY}")
    return AskedImport(files, is_dry)


def _path(typed: str) -> Path:
    try:
        return Path(typed).expanduser()
    except RuntimeError:
        raise CommandError(f"There is no home folder for {typed}.") from None


def _card(paths: Sequence[Path]) -> CardFile | None:
    """Return the character card, if that is all there is."""
    return card_files.read(paths[0]) if len(paths) == 1 else None


def _offered(_services: Services, text: str) -> Sequence[Candidate]:
    return [Candidate(path) for path in export_files.offered(text, None)]


FILES = Parameter(
    f"file… [{_DRY}]", _asked, f"files, archives or folders; at the end {_DRY} only to see what is in them", _offered
)


@GROUP.command("import", stoppable=True)
async def import_files(services: Services, files: Annotated[AskedImport, FILES]) -> Text | Report:
    """Take in conversations of other programs: each becomes a closed thread with its own times.

    Files are recognised by their content. What is in the log already is not added again, so a newer export only adds
    what is new. /search finds the messages at once, /thread TITLE opens a conversation, /context edit or /context
    restore brings it into the context. Ctrl-C stops between two conversations. One /context undo takes all of it back.
    A character card becomes a persona, as by /persona import.

    Examples:
        /import ~/Downloads/export.zip
        /import ~/Downloads/export.zip --dry-run
    """
    paths = await asyncio.to_thread(files.paths)
    card = await asyncio.to_thread(_card, paths)
    if card is not None and not files.is_dry:
        return await imported(services, card)
    wanted = Wanted(paths, services.focus.slug)
    if files.is_dry:
        return Text((await services.imports.preview(wanted)).text())
    report = ImportReport(is_dry=False)
    try:
        await services.imports.take_in(wanted, report, services.machine.notifier.progress)
    except asyncio.CancelledError:
        if not report.added_messages:
            raise
        return Text(f"{report.text()}\nIt was stopped before the end; the same import goes on from there.")
    except ImportFormatError as error:
        if not report.added_messages:
            raise
        return Text(f"{report.text()}\nThen it came to an end: {error}")
    return Text(report.text())
