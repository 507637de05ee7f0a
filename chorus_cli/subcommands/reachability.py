"""The model that would answer, for ``chorus doctor``: its key, and whether its server can be reached."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chorus_cli.core.errors import ChorusError
from chorus_cli.models.providers import providers, servers
from chorus_cli.models.providers.model_map import package_folder
from chorus_cli.models.providers.servers import is_ollama, request_problem
from chorus_cli.models.rules.choice import ELIZA, LOCAL, Naming, detected_model, missing_key
from chorus_cli.personas.service.personas import Personas
from chorus_cli.storage import meta_rows
from chorus_cli.storage.permissions import is_there
from chorus_cli.stores.rules.findings import Finding, fine, note, wrong
from chorus_cli.stores.salvage import examination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.machine.paths import Paths

_SUBJECT = "model"
_PATIENCE_SECONDS = 5.0
_PORTS = {"http": 80, "https": 443}


async def check_model(home: Paths, option: str | None, environment: Mapping[str, str]) -> Finding:
    """Return the finding about the model of the persona last used; nothing is asked of it, so nothing is paid."""
    naming = Naming(option, environment, lambda: servers.most_recent_model(environment))
    personas = Personas(home.personas, home.config_file)
    try:
        persona = personas.load(_last_persona(home) or personas.first())
        named = naming.named(persona.settings.model, persona.sources)
    except ChorusError:
        named = naming.named(None, {})
    choice = named or detected_model(await asyncio.to_thread(naming.ask_ollama))
    model = choice.model
    answers = f"{model} answers ({choice.reason})"
    if model == ELIZA or model.startswith(LOCAL):
        return fine(_SUBJECT, f"{answers}; it needs no server.")
    if problem := request_problem(model, environment) or missing_key(model, environment):
        return wrong(_SUBJECT, f"{answers}. {problem}")
    endpoint = providers.endpoint(model, environment)
    address = servers.ollama_address(environment) if is_ollama(model) else endpoint.address if endpoint else ""
    if not address:
        return _through_litellm(answers)
    way = "litellm" if endpoint is None else "the wire"
    if failure := await _failure(address):
        return wrong(
            _SUBJECT, f"{answers}, but {address} cannot be reached: {failure}. Check the network and the address."
        )
    return fine(_SUBJECT, f"{answers} through {way}; {address} can be reached.")


def _through_litellm(answers: str) -> Finding:
    if package_folder("litellm") is None:
        return wrong(
            _SUBJECT, f"{answers} through litellm, which is not installed. Install it with: pip install litellm."
        )
    return note(_SUBJECT, f"{answers} through litellm, which alone knows the address.")


def _last_persona(home: Paths) -> str | None:
    if is_there(home.database):
        # A log that cannot be read has a finding of its own.
        with suppress(ChorusError), examination.opened_untrusted(home.database) as connection:
            return meta_rows.value(connection, meta_rows.LAST_PERSONA)
    return None


async def _failure(address: str) -> str:
    """Connect to a server and return the reason why that fails, empty if it does not."""
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
