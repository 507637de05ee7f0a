"""``chorus doctor``: the state of everything, and repairs with consent. It does not open the log as the chat does."""

from __future__ import annotations

import platform
import sqlite3
from importlib import metadata
from typing import TYPE_CHECKING

from chorus_cli import __version__
from chorus_cli.core.errors import ChorusError
from chorus_cli.machine.clock import SystemClock
from chorus_cli.machine.paths import paths
from chorus_cli.personas.service.personas import Personas
from chorus_cli.stores.rules.findings import Finding, Repair, State, fine, is_well, note
from chorus_cli.stores.service.checks import check_home, check_leftovers, check_log, unless_refused
from chorus_cli.subcommands.conventions import print_json
from chorus_cli.subcommands.exit_codes import DONE, FAILED
from chorus_cli.subcommands.reachability import check_model
from chorus_cli.subcommands.repairs import MENDS
from chorus_cli.terminal.screen.output import agreed, can_ask, standard_error, standard_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from chorus_cli.machine.paths import Paths

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
    # The others may write into a log that a salvage is to read as it is.
    in_order = sorted(findings, key=lambda finding: finding.repair is not Repair.SALVAGE)
    remaining = [finding for finding in in_order if not await _mended(home, finding)]
    return DONE if is_well(remaining) else FAILED


def _examined(home: Paths) -> list[Finding]:
    personas = Personas(home.personas, home.config_file)
    now = SystemClock().now()
    return [
        _versions(),
        *check_log(home, home.run),
        *unless_refused("leftovers", check_leftovers(home, now)),
        *check_home(home, personas, now),
    ]


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
    """Offer the repair of a finding and return whether it was carried out and nothing of the fault is left."""
    if finding.repair is None or not can_ask():
        return False
    if not await agreed(finding.repair.question, standard_output()):
        return False
    try:
        home.make()
        return await MENDS[finding.repair](home)
    except ChorusError as error:
        standard_error().error(str(error))
    except OSError as error:
        path = error.filename2 or error.filename
        at = f" at {path}" if path else ""
        reason = f"The repair stopped{at}: {error.strerror or error}."
        standard_error().error(f"{reason} Mend that and run chorus doctor again; it tells what is left.")
    return False
