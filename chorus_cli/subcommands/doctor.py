"""``chorus doctor``: the state of everything, and repairs with consent. It does not open the log as the chat does."""

from __future__ import annotations

import platform
import sqlite3
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli import __version__
from chorus_cli.adapters.machine.clock import SystemClock
from chorus_cli.adapters.machine.paths import paths
from chorus_cli.composition import places_of
from chorus_cli.core.errors import ChorusError
from chorus_cli.core.text.phrases import counted
from chorus_cli.core.time import timestamps
from chorus_cli.core.upkeep.findings import Finding, Mend, State, fine, is_well, note
from chorus_cli.services.personas.personas import Personas
from chorus_cli.services.upkeep import home_checks
from chorus_cli.services.upkeep.home_checks import Folders, check_home
from chorus_cli.services.upkeep.log_checks import check_log
from chorus_cli.storage.backups import archive, restoring
from chorus_cli.storage.sqlite.upkeep import checksums, copying, examination, true_texts
from chorus_cli.subcommands.backup import alone
from chorus_cli.subcommands.conventions import print_json
from chorus_cli.subcommands.exit_codes import DONE, FAILED
from chorus_cli.subcommands.reachability import check_model
from chorus_cli.terminal.consent import agreed, can_ask
from chorus_cli.terminal.screen.output import standard_error, standard_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable, Mapping

    from chorus_cli.adapters.machine.paths import Paths
    from chorus_cli.storage.sqlite.upkeep.salvage import Counts

_SIGNS = {State.FINE: "ok  ", State.NOTE: "note", State.WRONG: "BAD "}
_LIBRARIES = ("litellm", "httpx", "prompt_toolkit", "rich")


async def doctor(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Examine everything, offer a repair of each fault, and return 1 if a fault remains."""
    home = paths(environment, vars(chosen).get("home"))
    findings = _examined(home)
    findings.append(await check_model(home, vars(chosen).get("model"), environment))
    if chosen.json:
        print_json({"well": is_well(findings), "findings": [finding.as_json() for finding in findings]})
        return DONE if is_well(findings) else FAILED
    for finding in findings:
        standard_output().paragraph(f"{_SIGNS[finding.state]} {finding.subject}: {finding.sentence}")
    remaining = [finding for finding in findings if not await _mended(home, finding)]
    return DONE if is_well(remaining) else FAILED


def _examined(home: Paths) -> list[Finding]:
    places, folders = places_of(home), Folders(home.data, home.config, home.state, home.rescue)
    personas = Personas(home.personas, home.config_file)
    return [_versions(), *check_log(places), *check_home(places, folders, personas, SystemClock().now())]


def _versions() -> Finding:
    found = [f"Chorus {__version__}", f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}"]
    missing = []
    for name in _LIBRARIES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    told = ", ".join(found)
    return (
        note("versions", f"{told}; not installed: {', '.join(missing)}.") if missing else fine("versions", f"{told}.")
    )


async def _mended(home: Paths, finding: Finding) -> bool:
    """Offer the repair of a finding and return whether nothing is wrong any more."""
    if finding.state is not State.WRONG:
        return True
    if finding.mend is None or not can_ask():
        return False
    if not await agreed(finding.mend.question, standard_output()):
        return False
    try:
        return await _MENDS[finding.mend](home)
    except (ChorusError, OSError) as error:
        standard_error().error(str(error))
        return False


async def _narrow(home: Paths) -> bool:
    found = home_checks.exposed(Folders(home.data, home.config, home.state, home.rescue))
    home_checks.narrow(found)
    standard_output().paragraph(
        f"Only you can get at {counted(len(found), 'file or folder', 'files and folders')} now."
    )
    return True


async def _renew_index(home: Paths) -> bool:
    with copying.opened(home.database) as connection:
        examination.renew_indexes(connection)
    standard_output().paragraph("The index is made again; the next search fills it.")
    return True


async def _bring_texts(home: Paths) -> bool:
    places = places_of(home)
    with alone(home), copying.opened(home.database) as connection, tempfile.TemporaryDirectory() as folder:
        changed = checksums.checked(connection).changed
        backup = restoring.newest_sound_log(places, Path(folder) / "backup.db")
        connection.execute("BEGIN IMMEDIATE")
        remaining = true_texts.bring(connection, changed, Path(folder) / "backup.db") if backup else changed
        connection.execute("COMMIT")
        standard_output().paragraph(
            f"{counted(len(changed) - len(remaining), 'text')} brought from {backup or 'no backup'}."
        )
        if not remaining:
            return True
        question = f"No backup has the text of {counted(len(remaining), 'message')}. Take the present text for true?"
        if not await agreed(question, standard_output()):
            return False
        connection.execute("BEGIN IMMEDIATE")
        true_texts.accept(connection, remaining)
        connection.execute("COMMIT")
    return True


async def _salvage(home: Paths) -> bool:
    places, now = places_of(home), SystemClock().now()
    with alone(home), restoring.salvaged(places) as found:
        standard_output().paragraph(_counts(found.counts, found.backup))
        if not await agreed("Use the salvaged log? The damaged one is kept beside the backups.", standard_output()):
            standard_output().paragraph("The damaged log is as it was.")
            return False
        kept = None
        if places.database.exists():
            kept = archive.set_aside(places, f"{timestamps.local(now):%Y-%m-%d_%H%M%S}")
        restoring.put_in_place(places, found)
    aside = f" The damaged one is kept as {kept}." if kept else ""
    standard_output().paragraph(f"The salvaged log is in use now.{aside}")
    return True


def _counts(counts: Counts, backup: Path | None) -> str:
    brought = f", {counts.from_backup:,} brought from {backup}" if backup else ""
    changed = f" {counts.changed:,} of them differ from the text that was written." if counts.changed else ""
    others = counts.others + counts.others_from_backup
    return (
        f"{counted(counts.read, 'message')} could be read{brought}; {counts.lost:,} are lost.{changed} "
        f"{others:,} other rows are kept."
    )


_MENDS: dict[Mend, Callable[[Paths], Awaitable[bool]]] = {
    Mend.PERMISSIONS: _narrow,
    Mend.INDEX: _renew_index,
    Mend.CHECKSUMS: _bring_texts,
    Mend.SALVAGE: _salvage,
}
