"""``chorus import`` and ``chorus export``: conversations come into the log from files, and go out to files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from chorus_cli.app import opened
from chorus_cli.core.errors import CommandError, StorageError
from chorus_cli.core.text.phrases import counted, enumerated
from chorus_cli.imports.service.exports import Exports
from chorus_cli.imports.service.imports import ImportReport, Imports, Wanted
from chorus_cli.personas.service.persona_admin import PersonaAdmin
from chorus_cli.recall.service import Search
from chorus_cli.sessions.rows import leave_behind
from chorus_cli.subcommands.conventions import options, print_json
from chorus_cli.subcommands.exit_codes import DONE
from chorus_cli.terminal.screen.output import standard_error, standard_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping
    from datetime import tzinfo

    from chorus_cli.imports.service.exports import Exported


async def import_files(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Import conversations and character cards, or with ``--dry-run`` say what that would add."""
    given, tell = options(chosen, environment), standard_error().notice
    zone = _zone(chosen.timezone)
    async with opened(given._replace(persona=None), environment) as app:
        cards = app.services().cards
        taken, paths = await cards.take_in_all(map(Path, chosen.files), is_dry=chosen.dry_run)
        report = ImportReport(is_dry=chosen.dry_run)
        if paths:
            persona_admin = PersonaAdmin(app.store, app.clock, app.personas, app.paths.deleted_personas, leave_behind)
            imports = Imports(app.store, app.clock, persona_admin, app.paths.attachments)
            persona = app.personas.find(given.persona) if given.persona else None
            wanted = Wanted(paths, app.current.slug, persona, zone, [each.slug for each in taken])
            report = await _taken_in(imports, wanted, report, tell)
            if not chosen.dry_run:
                # All is imported, and each search fills the index.
                with suppress(StorageError):
                    await Search(app.store, app.clock).catch_up(tell)
    if chosen.json:
        print_json(report.as_json() | {"cards": [each.as_json() for each in taken]})
    else:
        found = [report.text()] if report.conversations or not taken else []
        standard_output().line("\n".join([*(each.told for each in taken), *found]))
    return DONE


async def export_files(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Write every conversation to a file of its own."""
    given = options(chosen, environment)
    async with opened(given._replace(persona=None), environment) as app:
        persona_admin = PersonaAdmin(app.store, app.clock, app.personas, app.paths.deleted_personas, leave_behind)
        slug = (await persona_admin.logged(given.persona, app.current.slug))[0] if given.persona else None
        exports = Exports(app.store, app.clock, app.paths.attachments)
        folder = Path(chosen.all)
        exported = await exports.export_all(folder, chosen.format, slug, standard_error().notice)
    if chosen.json:
        print_json(asdict(exported) | {"folder": f"{folder}"})
    else:
        standard_output().line(_exported_line(exported, folder))
    return DONE


def _exported_line(exported: Exported, folder: Path) -> str:
    amount = f"{counted(exported.conversations, 'conversation')} with {counted(exported.messages, 'message')}"
    attached = f" and {counted(exported.attachments, 'attachment')}" if exported.attachments else ""
    lost = {
        "attachment": exported.missing,
        "message": exported.damaged,
        "conversation": exported.damaged_conversations,
    }
    unread = enumerated([counted(number, thing) for thing, number in lost.items() if number])
    missing = f" {unread} could not be read." if unread else ""
    return f"Exported {amount}{attached} to {folder}. chorus import reads them back.{missing}"


async def _taken_in(
    imports: Imports, wanted: Wanted, report: ImportReport, tell: Callable[[str], None]
) -> ImportReport:
    """Import everything, unless it is a dry run; one that is stopped or fails reports the messages added until then."""
    if report.is_dry:
        return await imports.preview(wanted)
    try:
        await imports.take_in(wanted, report, tell)
    except BaseException:
        if report.added.messages:
            tell(report.text())
        raise
    return report


def _zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CommandError(f"There is no time zone {name!r}. Name one such as Europe/Berlin or UTC.") from None
