"""``/mcp``: adds, lists, removes and imports the servers in the settings, and signs in to them."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

from chorus_cli.core import limits
from chorus_cli.core.errors import CommandError, SettingsError
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.core.text.phrases import counted, enumerated
from chorus_cli.core.text.safe_text import safe_line
from chorus_cli.framework.arguments import TEXT, Candidate, Parameter
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Question, Report, Table, Text, data_of
from chorus_cli.mcp.rules import adoption
from chorus_cli.mcp.rules.configuration import Server, servers
from chorus_cli.mcp.service import UNKNOWN
from chorus_cli.personas.rules.persona import Persona
from chorus_cli.services import Services
from chorus_cli.settings.rules.servers import (
    DISABLED,
    ENVIRONMENT,
    HEADERS,
    has_place,
    only_switches,
    server_fault,
    without_keys,
)
from chorus_cli.settings.rules.table import ALLOWED, SERVERS
from chorus_cli.storage import typed_paths
from chorus_cli.storage.files import read_within

GROUP: CommandGroup[Services] = CommandGroup("mcp", "Servers whose tools the model may call (MCP).", topic="settings")

_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_OTHER_ADDRESS = re.compile(r"[\"']?[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def _pairs(text: str, sign: str, example: str) -> Mapping[str, str]:
    """Return names and values from lines such as ``KEY=VALUE``, which may be in quotes."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        name, separator, value = line.strip().strip("\"'").partition(sign)
        if not separator or not name.strip():
            raise CommandError(f"write a name and a value, such as {example}.")
        found[name.strip()] = value.strip().strip("\"'")
    return found


def _variables(text: str, _now: datetime) -> Mapping[str, str]:
    return _pairs(text, "=", "TOKEN=${TOKEN}")


def _headers(text: str, _now: datetime) -> Mapping[str, str]:
    return _pairs(text, ":", '"Authorization: Bearer ${TOKEN}"')


def _server_names(services: Services, _text: str) -> Sequence[Candidate]:
    return [Candidate(name) for name in _placed(services.current.target().persona)]


def _placed(persona: Persona) -> Mapping[str, Mapping[str, JsonValue]]:
    """Return the entries that say where a server is, without entries that only switch a server off or on."""
    entries = persona.settings.mcpServers
    return {name: entry for name, entry in entries.items() if isinstance(entry, dict) and has_place(entry)}


def _personas(services: Services, _text: str) -> Sequence[Candidate]:
    return [Candidate(slug) for slug in services.personas.slugs()]


NEW_NAME = replace(TEXT, name="name", help="a name of your choice, of letters, digits, - and _")
NAME = replace(NEW_NAME, help="the name of a server", complete=_server_names)
PLACE = replace(
    TEXT,
    name="URL or -- COMMAND…",
    help="the address of a server, or after -- the command that starts one",
    typed=shlex.join,
)
VARIABLE = Parameter("KEY=VALUE", _variables, "a variable for the command; ${KEY} is read at each start", repeats=True)
HEADER = Parameter("NAME:VALUE", _headers, "a header for the address", repeats=True)
PERSONA = replace(TEXT, name="P", help="for this persona alone", complete=_personas)
FILE = Parameter(
    "file",
    lambda text, _now: typed_paths.typed_path(text),
    "the settings of another program, such as .mcp.json or config.toml",
    lambda _services, text: [Candidate(path) for path in typed_paths.offered(text, frozenset({".json", ".toml"}))],
    typed=typed_paths.escaped,
)


@GROUP.command("add")
async def add(
    services: Services,
    name: Annotated[str, NEW_NAME],
    place: Annotated[str, PLACE],
    *,
    env: Annotated[Mapping[str, str] | None, VARIABLE] = None,
    header: Annotated[Mapping[str, str] | None, HEADER] = None,
    persona: Annotated[str, PERSONA] = "",
) -> Text:
    """Add a server whose tools the model may call.

    The server is for all personas unless you name one. Chorus asks you before it calls a tool. Write keys as ${KEY}:
    Chorus reads them from the environment at each start, so that no file has them. Options come before the two dashes.

    Examples:
        /mcp add time -- uvx mcp-server-time
        /mcp add github https://api.example.com/mcp --header "Authorization: Bearer ${TOKEN}"
        /mcp add files --persona frodo -- npx -y @modelcontextprotocol/server-filesystem ~/notes
    """
    entry = _entry(place)
    for key, value in ((ENVIRONMENT, env), (HEADERS, header)):
        if value:
            entry[key] = dict(value)
    if (env and "url" in entry) or (header and "command" in entry):
        raise CommandError("--env is for a command, --header for an address.")
    if fault := server_fault(name, entry):
        raise CommandError(f"{fault[0].upper()}{fault[1:]}. Nothing was added.")
    slug = _slug(services, persona)
    if name in await _names(services, slug):
        removal = f"/mcp remove {name}{f' --persona {slug}' if slug else ''}"
        there = f'There is a server "{name}" already, in {file_of(services, slug)}.'
        raise CommandError(f"{there} Remove it first: {removal}")
    await _set(services, slug, (SERVERS, name), entry)
    told = f'Added the server "{name}" {_for_whom(services, slug)}: {_shown_place(_of_entry(name, entry))}'
    return Text(told, data_of({"added": [name], "file": str(file_of(services, slug))}))


def _entry(place: str) -> dict[str, JsonValue]:
    words = place.removeprefix("--").strip() if place == "--" or place.startswith("-- ") else place
    if _ADDRESS.fullmatch(words):
        return {"type": "http", "url": words}
    if _OTHER_ADDRESS.match(words):
        raise CommandError("An address begins with http:// or https://, and has no spaces. Nothing was added.")
    if not words:
        raise CommandError("Write a command after the two dashes, such as: /mcp add time -- uvx mcp-server-time")
    try:
        command, *arguments = shlex.split(words)
    except ValueError as error:
        raise CommandError(f"The command cannot be read ({error}); check its quotes.") from error
    return {"command": command, **({"args": [*arguments]} if arguments else {})}


@GROUP.command("", "list")
async def listing(services: Services) -> Report:
    """List the servers in the settings.

    Values of variables and headers are not shown.

    Examples:
        /mcp
        /mcp list
    """
    persona = services.current.target().persona
    own = services.personas.own_settings(persona.slug).mcpServers
    known = [_of_entry(name, entry, persona.settings.mcp_allow) for name, entry in _placed(persona).items()]
    rows, values = [], []
    for server in known:
        entry = own.get(server.name)
        is_own = isinstance(entry, dict) and has_place(entry)
        whose = persona.name if is_own else "all personas"
        rows.append((server.name, _shown_place(server), _state(server), whose))
        values.append(_facts(server, file_of(services, persona.slug if is_own else None)))
    told = [warning for warning in persona.warnings if "the server " in warning or SERVERS in warning]
    if not known:
        told.append("There is no server. To add one: /mcp add time -- uvx mcp-server-time")
    table = Table(
        "", ("Server", "Command or address", "State", "For"), tuple(rows), cut=frozenset({"Command or address"})
    )
    return Report((*([table] if known else []), *map(Text, told)), data_of(values))


def _of_entry(name: str, entry: Mapping[str, JsonValue], allowed: Mapping[str, JsonValue] | None = None) -> Server:
    """Return the server of an entry, without replacing the variables in its texts."""
    (server,) = servers({SERVERS: {name: {**entry, DISABLED: True}}, ALLOWED: allowed}, {})
    return server._replace(is_on=entry.get(DISABLED) is not True)


def _shown_place(server: Server) -> str:
    return without_keys(server.url or shlex.join([server.command, *server.arguments]))


def _state(server: Server) -> str:
    words = ["on" if server.is_on else "off", *(["trusted"] if server.trust else [])]
    return ", ".join([*words, *([f"{len(server.allow)} allowed"] if server.allow else [])])


def _facts(server: Server, file: Path) -> dict[str, object]:
    """Return a server for ``--json``, without the values of its variables and headers."""
    return {
        "name": server.name,
        "command": server.command or None,
        "args": [*map(without_keys, server.arguments)],
        "env": [*server.environment],
        "cwd": server.folder or None,
        "url": without_keys(server.url) or None,
        "headers": [*server.headers],
        "trust": server.trust,
        "on": server.is_on,
        "allowed": [*server.allow],
        "file": str(file),
    }


@GROUP.command("remove", guesses=("rm", "delete"))
async def remove(services: Services, name: Annotated[str, NAME], *, persona: Annotated[str, PERSONA] = "") -> Text:
    """Remove this persona's server of that name, or else the one of all personas.

    Its switches, the permissions for its tools and your sign-in are removed too.

    Examples:
        /mcp remove time
        /mcp remove time --persona frodo
    """
    slugs = [_slug(services, persona)] if persona else [services.current.slug, None]
    for slug in slugs:
        if name in await _names(services, slug):
            server = services.servers.server(slug or services.current.slug, name)
            for edited in [slug] if slug else await _sharing(services, name):
                await _drop(services, edited, name)
            if server and server.url:
                await services.servers.sign_out(server)
            told = f'Removed the server "{name}" {_for_whom(services, slug)}, with its switches and permissions.'
            return Text(told, data_of({"removed": [name], "file": str(file_of(services, slug))}))
    if persona:
        raise CommandError(f'There is no server "{name}" {_for_whom(services, slugs[0])}. /mcp lists the servers.')
    raise CommandError(UNKNOWN.format(server=name))


async def _names(services: Services, slug: str | None) -> set[str]:
    """Return the names of the servers in a file, except those that the file only switches off or on."""
    entries = await services.persona_admin.entries(slug, SERVERS)
    return {name for name, entry in entries.items() if entry is not None and not only_switches(entry)}


async def _sharing(services: Services, name: str) -> list[str | None]:
    """Return the personas that have no server of that name of their own, and ``None``: the file of all personas."""
    sharing: list[str | None] = []
    for slug in (*services.personas.slugs(), *services.personas.archived()):
        # In a file that cannot be read, nothing is allowed; the persona's next message says so.
        with suppress(SettingsError):
            sharing += [slug] if name not in await _names(services, slug) else []
    return [*sharing, None]


async def _drop(services: Services, slug: str | None, name: str) -> None:
    """Remove a server and its permissions from a file."""
    allowed = await services.persona_admin.entries(slug, ALLOWED)
    found = [(ALLOWED, each) for each in allowed if each.startswith(f"{name}.")]
    # The server is removed last: then /undo, which cannot restore it, asks before it restores only a permission.
    found += [(SERVERS, name)] if name in await services.persona_admin.entries(slug, SERVERS) else []
    for keys in found:
        await _set(services, slug, keys, None)


@GROUP.command("import")
async def import_servers(
    services: Services, file: Annotated[Path, FILE], *, persona: Annotated[str, PERSONA] = ""
) -> Text | Question:
    """Add the servers in another program's settings, after you have confirmed them.

    Chorus reads the settings of Claude Desktop, Claude Code, Cursor, VS Code, Gemini CLI, Codex, opencode and gptme.
    A server whose name is taken is left out. Keys are copied as they are written. Permissions are not copied.

    Examples:
        /mcp import ~/.cursor/mcp.json
        /mcp import .mcp.json --persona frodo
    """
    slug = _slug(services, persona)
    taken = await _names(services, slug)
    found: dict[str, dict[str, JsonValue]] = {}
    refused: list[str] = []
    for name, entry in adoption.read(await asyncio.to_thread(_text_of, file), file.name):
        if fault := server_fault(name, entry):
            refused.append(f"Left out: {fault}.")
        elif name in taken or name in found:
            refused.append(f'Left out: there is a server "{name}" already.')
        elif isinstance(entry, dict):
            found[name] = entry
    data = data_of({"added": [*found], "left_out": refused, "file": str(file_of(services, slug))})
    if not found:
        return Text("\n".join(["No server was added.", *refused]), data)

    async def confirmed() -> Text:
        for name, entry in found.items():
            await _set(services, slug, (SERVERS, name), entry)
        added = f"Added {counted(len(found), 'server')} {_for_whom(services, slug)}: {enumerated([*found])}."
        # With --yes, the user has not seen the question, which lists the refused servers too.
        return Text("\n".join([added, *refused]), data)

    question = f"Add {counted(len(found), 'server')} {_for_whom(services, slug)}?"
    lines = (*(_offered(*each) for each in found.items()), *refused, question)
    return Question("\n".join(lines), confirmed, Text("No server was added."))


def _offered(name: str, entry: Mapping[str, JsonValue]) -> str:
    """Return a line about a server to add: its command or address, and the names of its variables and headers."""
    server = _of_entry(name, entry)
    named = [safe_line(each) for each in (*server.environment, *server.headers)]
    return f"{name}: {safe_line(_shown_place(server))}{f' (with {enumerated(named)})' if named else ''}"


@GROUP.command("login", guesses=("auth", "signin"), stoppable=True)
async def login(services: Services, name: Annotated[str, NAME]) -> Text:
    """Sign in to a server with an address, in your browser.

    Chorus opens the server's page, and waits up to five minutes for your sign-in there. It keeps the server's
    token in a file that only you can read, and renews it by itself. /mcp logout deletes it.

    Examples:
        /mcp login github
    """
    server = _remote(services, name)

    def show(page: str) -> None:
        told = f"Sign in to {name} in your browser. If no page opens there, open this address:"
        services.notifier.progress(f"{told}\n{page}")
        services.browse(page)

    await services.servers.sign_in(server, show)
    return Text(
        f"You are signed in to {name}, whose tools are offered with your next message.", data_of({"name": name})
    )


@GROUP.command("logout", guesses=("signout",))
async def logout(services: Services, name: Annotated[str, NAME]) -> Text:
    """Sign out of a server: delete its token.

    Examples:
        /mcp logout github
    """
    was_signed_in = await services.servers.sign_out(_remote(services, name))
    told = f"You are signed out of {name}." if was_signed_in else f"You are not signed in to {name}."
    return Text(told, data_of({"name": name, "was_signed_in": was_signed_in}))


def _remote(services: Services, name: str) -> Server:
    """Return a server to which the user can sign in."""
    server = services.servers.usable(services.current.slug, name)
    if not server.url:
        raise CommandError(f"{name} is a program on this machine; you sign in only to a server with an address.")
    if server.has_own_token:
        raise CommandError(f"The settings of {name} have the header Authorization. Remove it to sign in instead.")
    return server


def _text_of(path: Path) -> str:
    try:
        return read_within(path, limits.SERVERS_FILE).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not text in UTF-8.") from error
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror or error}.") from error


def _slug(services: Services, persona: str) -> str | None:
    return services.personas.find_any(persona) if persona else None


def file_of(services: Services, slug: str | None) -> Path:
    """Return the settings file of the persona ``slug``, or ``config.jsonc`` if it is ``None``."""
    return services.personas.settings_path(slug) if slug else services.personas.config_file


def _for_whom(services: Services, slug: str | None) -> str:
    whom = services.personas.load(slug).name if slug else "all personas"
    return f"for {whom}, in {file_of(services, slug)}"


async def _set(services: Services, slug: str | None, keys: tuple[str, str], entry: JsonValue) -> None:
    if slug is not None:
        await services.persona_admin.set_entry(slug, keys, entry)
    else:
        await services.persona_admin.set_entry_for_all(keys, entry)
        way_back = f"/mcp remove {keys[1]} does" if entry is not None else "/mcp add does"
        services.done_beside(f"changed the servers of all personas, which /undo does not revert; {way_back}.")
    services.servers.end_unused()
