"""``chorus doctor`` examines everything, even a damaged log, and repairs faults if the user agrees."""

from __future__ import annotations

import argparse
import asyncio
import platform
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

from chorus_cli import __version__
from chorus_cli.core.errors import ChorusError, SettingsError
from chorus_cli.machine.clock import SystemClock
from chorus_cli.machine.paths import Paths, paths
from chorus_cli.models.local.client import LocalFiles
from chorus_cli.models.providers import providers, servers
from chorus_cli.models.providers.model_files import has_litellm, litellm_is_missing
from chorus_cli.models.providers.servers import is_ollama, request_problem
from chorus_cli.models.rules.choice import ELIZA, LOCAL, Naming, detected_model, missing_key
from chorus_cli.personas.service.personas import Personas
from chorus_cli.run_storage import chosen_log, log_store
from chorus_cli.storage import meta_rows
from chorus_cli.storage.permissions import is_there
from chorus_cli.storage.postgres.address import digest
from chorus_cli.stores.rules.findings import Finding, Repair, State, fine, is_well, note, wrong
from chorus_cli.stores.salvage import examination
from chorus_cli.stores.service.checks import check_home, check_leftovers, check_log, check_server, unless_refused
from chorus_cli.subcommands.conventions import print_json
from chorus_cli.subcommands.exit_codes import DONE, FAILED
from chorus_cli.subcommands.repairs import MENDS
from chorus_cli.terminal.screen.output import agreed, can_ask, standard_error, standard_output

_SIGNS = {State.FINE: "ok  ", State.NOTE: "note", State.WRONG: "BAD "}
_LIBRARIES = ("litellm", "httpx", "prompt_toolkit", "rich")
_SUBJECT = "model"
_AT_A_TERMINAL = "chorus doctor can repair this at a terminal; it asks before it changes anything."
_PATIENCE_SECONDS = 5.0
_PORTS = {"http": 80, "https": 443}


async def doctor(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Examine everything, offer repairs of the faults, and return 1 if a fault remains."""
    home = paths(environment, vars(chosen).get("home"))
    findings, last_persona = await _examined(home, environment, vars(chosen).get("log"))
    findings.append(await _model(home, chosen, environment, last_persona))
    if chosen.json:
        print_json({"well": is_well(findings), "findings": [finding.as_json() for finding in findings]})
        return DONE if is_well(findings) else FAILED
    for finding in findings:
        sign = f"{_SIGNS[finding.state]} "
        standard_output().paragraph(f"{sign}{finding.subject}: {finding.sentence}", " " * len(sign))
    if any(finding.repair for finding in findings) and not can_ask():
        standard_output().paragraph(_AT_A_TERMINAL)
    # A salvage comes first, because other repairs may write into the log that it reads.
    in_order = sorted(findings, key=lambda finding: finding.repair is not Repair.SALVAGE)
    remaining = [finding for finding in in_order if not await _mended(home, finding)]
    return DONE if is_well(remaining) else FAILED


async def _examined(
    home: Paths, environment: Mapping[str, str], option: str | None
) -> tuple[list[Finding], str | None]:
    """Return the findings and the persona last used, which a local file names even if the log is on a server."""
    personas = Personas(home.personas, home.config_file)
    now, file, server = SystemClock().now(), home.database, ""
    try:
        if url := chosen_log(home, environment, option):
            store, file = log_store(home, url), home.beside(digest(url))
            server, of_log = store.server, [await check_server(store)]
        else:
            of_log = [*check_log(home)]
    except SettingsError as error:
        of_log = [wrong("log", str(error))]
    findings = [
        _versions(),
        *of_log,
        *unless_refused("leftovers", check_leftovers(home, now)),
        *check_home(home, personas, now, server),
    ]
    return findings, _last_persona(file)


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


async def _model(
    home: Paths, given: argparse.Namespace, environment: Mapping[str, str], last_persona: str | None
) -> Finding:
    """Return the finding about the model of the persona that a chat would open with. The model itself is not asked."""
    naming = Naming(vars(given).get("model"), environment, lambda: servers.most_recent_model(environment))
    personas = Personas(home.personas, home.config_file)
    wanted = vars(given).get("persona") or environment.get("CHORUS_PERSONA")
    try:
        last = last_persona if last_persona in personas.slugs() else personas.first()
        persona = personas.load(personas.find(wanted) if wanted else last)
        named = naming.named(persona.settings.model, persona.sources)
    except ChorusError as error:
        if wanted:
            return wrong(_SUBJECT, str(error))
        named = naming.named(None, {})
    choice = named or detected_model(await asyncio.to_thread(naming.ask_ollama))
    model = choice.model
    chosen = f"{model} ({choice.reason})"
    doubt = LocalFiles().doubt(model) if model.startswith(LOCAL) else ""
    if not doubt and (model == ELIZA or model.startswith(LOCAL)):
        return fine(_SUBJECT, f"{chosen} needs no server.")
    keyless = missing_key(providers.prefixed(model), environment)
    if problem := doubt or request_problem(model, environment) or keyless:
        return wrong(_SUBJECT, f"{chosen}: {problem}")
    endpoint = providers.endpoint(model, environment)
    address = servers.ollama_address(environment) if is_ollama(model) else endpoint.address if endpoint else ""
    if address:
        if failure := await _failure(address):
            advice = f"cannot be reached: {failure}. Check the network and the address."
            return wrong(_SUBJECT, f"{chosen}: {address} {advice}")
        return fine(_SUBJECT, f"{chosen}: {address} can be reached.")
    if has_litellm():
        return note(_SUBJECT, f"{chosen}: only litellm knows its address, so its server was not tried.")
    return wrong(_SUBJECT, f"{chosen}: {litellm_is_missing(model)}")


def _last_persona(file: Path) -> str | None:
    if is_there(file):
        # A log that cannot be read has a finding of its own.
        with suppress(ChorusError), examination.opened_untrusted(file) as connection:
            return meta_rows.value(connection, meta_rows.LAST_PERSONA)
    return None


async def _failure(address: str) -> str:
    """Connect to a server, and return the reason if that fails; empty if it succeeds."""
    parts = urlsplit(address)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or _PORTS[parts.scheme])
    except TimeoutError:
        return f"no answer within {_PATIENCE_SECONDS:g} s"
    except (OSError, ValueError, KeyError) as error:
        return str(error.strerror or error) if isinstance(error, OSError) else str(error)
    writer.close()
    return ""


async def _mended(home: Paths, finding: Finding) -> bool:
    """Offer the repair of a finding, and return whether it was carried out and mended the whole fault."""
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
        standard_error().error(f"{reason} Remove the cause and run chorus doctor again.")
    return False
