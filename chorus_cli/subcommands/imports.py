"""``chorus import``: conversations of other programs come into the log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from chorus_cli.app import opened
from chorus_cli.core.errors import CommandError
from chorus_cli.services.imports.imports import Imports, Wanted
from chorus_cli.services.log.search import Search
from chorus_cli.services.personas.roster import Roster
from chorus_cli.subcommands.conventions import options, print_json
from chorus_cli.subcommands.exit_codes import DONE
from chorus_cli.terminal.screen.output import standard_error, standard_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from datetime import tzinfo


async def import_files(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Import files and folders, or with ``--dry-run`` say what that would add."""
    given, tell = options(chosen, environment), standard_error().notice
    zone = _zone(chosen.timezone)
    async with opened(given._replace(persona=None), environment) as app:
        roster = Roster(app.store, app.clock, app.personas, app.paths.deleted_personas)
        imports = Imports(app.store, app.clock, roster, app.paths.attachments)
        persona = app.personas.find(given.persona) if given.persona else None
        wanted = Wanted([Path(name) for name in chosen.files], app.focus.slug, persona, zone)
        report = await (imports.preview(wanted) if chosen.dry_run else imports.take_in(wanted, tell))
        if report.added_messages:
            await Search(app.store, app.clock).catch_up(tell)
    if chosen.json:
        print_json(report.as_json())
    else:
        standard_output().line(report.text())
    return DONE


def _zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CommandError(f"There is no time zone {name!r}. Name one such as Europe/Berlin or UTC.") from None
