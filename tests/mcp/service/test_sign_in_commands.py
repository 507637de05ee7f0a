"""``/mcp login`` and ``/mcp logout``, and how the chat says that a server wants a sign-in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chorus_cli.catalogue import groups
from chorus_cli.framework.command_line import resolve
from chorus_cli.framework.registry import CommandRegistry
from chorus_cli.models.rules.events import Notice
from chorus_cli.private import private_groups
from chorus_cli.storage.store import Store
from chorus_cli.tools.service import BUILT_IN
from tests.fakes import FakeClock, ScriptedModel
from tests.mcp.scripted_servers import CLOCK, ScriptedServers
from tests.turns.service.tool_talk import events_of
from tests.world import Tools, World, built

SERVERS = {
    "far": {"url": "https://far.example/mcp"},
    "near": {"command": "near"},
    "off": {"url": "https://off.example/mcp", "disabled": True},
    "own": {"url": "https://own.example/mcp", "headers": {"authorization": "Bearer x"}},
}


@pytest.fixture
def servers() -> ScriptedServers:
    return ScriptedServers({"near": [CLOCK], "own": [CLOCK]}, wanting={"far": "sign in"})


@pytest.fixture
async def world(
    tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel, servers: ScriptedServers
) -> World:
    world = await built(tmp_path, store, clock, model, 100_000, Tools(BUILT_IN, servers))
    world.configure(json.dumps({"mcpServers": SERVERS, "mcp_wait": 0}))
    return world


async def test_a_server_that_wants_a_sign_in_is_told_once_and_opens_nothing(world: World) -> None:
    asked = "far wants you to sign in: /mcp login far"
    assert [event.text for event in await events_of(world, "Hello") if isinstance(event, Notice)] == [asked]
    assert not [event for event in await events_of(world, "Again") if isinstance(event, Notice)]
    assert "wants you to sign in: /mcp login far" in " ".join((await world.told("/tools")).split())
    assert world.kept.browsed == []


async def test_login_opens_the_page_and_connects_anew(world: World, servers: ScriptedServers) -> None:
    told: list[str] = []
    with world.services.notifier.heard_by(told.append, told.append):
        assert await world.told("/mcp login far") == (
            "You are signed in to far, whose tools are offered with your next message."
        )
    assert told == [
        "Sign in to far in your browser. If no page opens there, open this address:\nhttps://far.example/mcp/authorize"
    ]
    assert world.kept.browsed == ["https://far.example/mcp/authorize"]
    servers.wanting.clear()
    servers.declared["far"] = [CLOCK]
    await world.say("Hello")
    assert "far__now" in [tool.name for tool in world.model.requests[-1].tools]
    assert await world.told("/mcp logout far") == "You are signed out of far."
    assert await world.told("/mcp logout far") == "You are not signed in to far."
    assert [each.problem for each in servers.opened if each.server.name == "far"] == ["it has ended"]


async def test_a_server_that_is_removed_keeps_no_sign_in(world: World, servers: ScriptedServers) -> None:
    await world.told("/mcp login far")
    await world.told("/mcp remove far")
    assert servers.signed_in == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nobody", 'There is no server "nobody". /mcp lists the servers.'),
        ("near", "near is a program on this machine; you sign in only to a server with an address."),
        ("off", "The server off is switched off. /tools on off switches it on."),
        ("own", "The settings of own have the header Authorization. Remove it to sign in instead."),
    ],
)
async def test_where_there_is_no_sign_in_a_sentence_says_why(world: World, name: str, told: str) -> None:
    assert await world.told(f"/mcp login {name}") == told
    assert world.kept.browsed == []


async def test_a_private_chat_signs_in_until_it_ends(world: World) -> None:
    commands = CommandRegistry(private_groups(groups()))
    told: list[str] = []
    with world.services.notifier.heard_by(told.append, told.append):
        await resolve(commands, "/mcp login far", world.clock.now()).run(world.services)
    assert told[0] == "This holds until the private chat ends."
    assert world.kept.browsed
