"""``/tools``: lists the tools that the model may call, switches servers and tools off and on, and ends permissions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from chorus_cli.core.errors import CommandError
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.core.text.phrases import counted
from chorus_cli.framework.arguments import TEXT, Candidate
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Report, Table, Text, data_of
from chorus_cli.log.rules.acts import ASKS
from chorus_cli.mcp.rules.configuration import Server
from chorus_cli.mcp.rules.offers import Offers
from chorus_cli.mcp.rules.permissions import shown_name
from chorus_cli.mcp.service import UNKNOWN, ServerState
from chorus_cli.models.rules.declaration import Tool
from chorus_cli.services import Services
from chorus_cli.settings.rules.servers import DISABLED, EXCLUDED, TRUST
from chorus_cli.settings.rules.table import ALLOWED, SERVERS

GROUP: CommandGroup[Services] = CommandGroup("tools", "The tools that the model may call.", topic="settings")


def _tool_names(services: Services, _text: str) -> Sequence[Candidate]:
    states = services.servers.known(services.current.slug)
    tools = [tool.origin.label for state in states for tool in state.tools if tool.origin]
    return [Candidate(name) for name in (*(state.server.name for state in states), *tools)]


TOOL = replace(TEXT, name="name", help="a server, or a tool such as time.now", complete=_tool_names)


@GROUP.command("", "list")
async def tools_listing(services: Services) -> Report:
    """List the tools that the model may call, with their tokens in each request, and the servers' prompts.

    Before a server's tool runs, Chorus asks you. You allow it once, for this session, or for always. The tools of a
    trusted server run without a question. /tools off keeps a server or a tool from the model, /tools ask ends a
    permission.

    Examples:
        /tools
        /tools list
    """
    target = services.current.target()
    states = await services.servers.listed(target.persona.slug)
    # Table cells may be cut, but the user must see the whole reason.
    told = [f"The server {state.server.name} {state.words}." for state in states if ":" in state.words]
    offer = (await services.context.request_settings(target)).offer
    counts = dict(zip(offer.tools, offer.counts, strict=True))
    texts = await services.texts.offered()
    built_in = [(tool, tokens) for tool, tokens in counts.items() if tool.origin is None]
    rows = [("built in", f"{len(built_in)} offered" if built_in else "off", f"{sum(each for _, each in built_in):,}")]
    for state in states:
        tokens = sum(counts.get(tool, 0) for tool in state.tools)
        rows.append((state.server.name, state.words, f"{tokens:,}" if state.tools else ""))
        rows += [
            (f"  {shown_name(tool.origin.tool)}", words, f"{counts[tool]:,}" if tool in counts else "")
            for tool, words in zip(state.tools, state.permissions, strict=True)
            if tool.origin
        ]
        prompts, resources = texts.get(state.server.name, Offers())
        rows += [(f"  /{state.server.name}:{prompt.word}", "prompt", "") for prompt in prompts]
        if resources:
            rows.append((f"  @{state.server.name}:", counted(len(resources), "resource"), ""))
        if state.left_out:
            left_out = f"{counted(state.left_out, 'tool')} of {state.server.name} cannot be offered"
            told.append(f"{left_out}: too large, or not as the protocol demands.")
    if offer.left_out:
        told.append(f"{counted(len(offer.left_out), 'tool')} had no room in a request. /tools off NAME makes room.")
    table = Table("", ("Tool", "State", "Tokens"), tuple(rows), cut=frozenset({"State"}))
    return Report((table, *map(Text, told)), data_of(_as_values(states, counts)))


def _as_values(states: Sequence[ServerState], counts: Mapping[Tool, int]) -> dict[str, JsonValue]:
    servers: list[JsonValue] = [{"server": state.server.name, "state": state.words} for state in states]
    tools: list[JsonValue] = [
        {"server": None, "tool": tool.name, "state": "offered", "tokens": tokens}
        for tool, tokens in counts.items()
        if tool.origin is None
    ]
    tools += [
        {"server": tool.origin.server, "tool": tool.origin.tool, "state": words, "tokens": counts.get(tool)}
        for state in states
        for tool, words in zip(state.tools, state.permissions, strict=True)
        if tool.origin
    ]
    return {"servers": servers, "tools": tools}


@GROUP.command("off")
async def switch_off(services: Services, name: Annotated[str, TOOL]) -> Text:
    """Keep a server, or one tool of a server, from the model.

    This is a setting of the persona; /tools on and /undo revert it.

    Examples:
        /tools off time
        /tools off time.convert_time
    """
    return await _switched(services, name, is_on=False)


@GROUP.command("on")
async def switch_on(services: Services, name: Annotated[str, TOOL]) -> Text:
    """Offer a server, or one tool of a server, to the model again; connect again to a server that has failed.

    Examples:
        /tools on time
    """
    return await _switched(services, name, is_on=True)


@GROUP.command("ask")
async def ask_again(services: Services, name: Annotated[str, TOOL]) -> Text:
    """Have Chorus ask you again before a tool runs that you have allowed.

    Examples:
        /tools ask time.now
    """
    server, tool = _known(services, name)
    if not tool:
        raise CommandError(f"Name the tool too, such as /tools ask {server.name}.now. /tools lists the tools.")
    services.servers.revoke(server, tool)
    slug, label = services.current.slug, f"{server.name}.{tool}"
    is_for_all = label in await services.persona_admin.entries(None, ALLOWED)
    await services.persona_admin.set_entry(slug, (ALLOWED, label), ASKS if is_for_all else None)
    if not server.trust:
        return Text(f"Chorus asks you before it runs {label}.")
    return Text(f'{label} still runs without a question, because the settings of {server.name} have "{TRUST}": true.')


async def _switched(services: Services, name: str, *, is_on: bool) -> Text:
    server, tool = _known(services, name)
    slug, keys = services.current.slug, (SERVERS, server.name)
    if tool:
        excluded: list[JsonValue] = [each for each in server.excluded if each != tool]
        await services.persona_admin.set_entry(slug, (*keys, EXCLUDED), excluded + ([] if is_on else [tool]))
    else:
        await services.persona_admin.set_entry(slug, (*keys, DISABLED), not is_on)
        services.servers.end_unused()
        if is_on:
            services.servers.forget(server)
    label = f"{server.name}.{tool}" if tool else server.name
    return Text(f"{label} is {'on' if is_on else 'off'} for {services.current.target().persona.name}.")


def _known(services: Services, name: str) -> tuple[Server, str]:
    """Return the server and the tool that ``name`` means; the tool is empty for the name of a server alone."""
    server_name, _, tool = name.partition(".")
    states = services.servers.known(services.current.slug)
    state = next((each for each in states if each.server.name == server_name), None)
    if state is None:
        raise CommandError(UNKNOWN.format(server=server_name))
    known = [each.origin.tool for each in state.tools if each.origin]
    tool = next((each for each in known if tool == shown_name(each)), tool)
    if tool and known and tool not in known:
        raise CommandError(f'The server "{server_name}" has no tool "{tool}". /tools lists the tools.')
    return state.server, tool
