"""Which tools of servers a model is offered, how a message waits for them, and what ``/tools`` and ``/context`` say."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from chorus_cli.core.errors import ToolsRefusedError
from chorus_cli.framework.command_line import completions
from chorus_cli.models.rules.events import Connecting, Notice
from chorus_cli.storage.store import Store
from chorus_cli.tools.service import BUILT_IN
from tests.fakes import FakeClock, ScriptedModel
from tests.mcp.scripted_servers import CLOCK, ScriptedServers, allowance
from tests.turns.service.tool_talk import call, calls, events_of, results
from tests.world import Tools, World, built

TIME = {"command": "time"}
BUILT_IN_NAMES = [each.tool.name for each in BUILT_IN]


def configured(*names: str, **further: object) -> str:
    return json.dumps({"mcpServers": {name: {"command": name} for name in names}, "mcp_wait": 0, **further})


@pytest.fixture
def servers() -> ScriptedServers:
    return ScriptedServers({"time": [CLOCK, CLOCK._replace(name="zones")], "slow": None})


@pytest.fixture
async def world(
    tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel, servers: ScriptedServers
) -> World:
    world = await built(tmp_path, store, clock, model, 100_000, Tools(BUILT_IN, servers))
    world.configure(configured("time"))
    return world


def offered(world: World) -> list[str]:
    return [tool.name for tool in world.model.requests[-1].tools if tool.name not in BUILT_IN_NAMES]


async def test_tools_of_servers_follow_the_built_in_ones(world: World) -> None:
    await world.say("Hello")
    assert [tool.name for tool in world.model.requests[-1].tools] == [*BUILT_IN_NAMES, "time__now", "time__zones"]


async def test_without_tools_no_server_is_waited_for(world: World) -> None:
    world.configure(configured("slow", mcp_wait=600, tools=False))
    await world.say("Hello")
    assert world.model.requests[-1].tools == ()


async def test_a_message_waits_for_servers_that_still_connect(world: World, servers: ScriptedServers) -> None:
    world.configure(configured("slow", mcp_wait=600))

    events = []
    async for event in world.conversation.answer(world.current.target(), "Hello"):
        events.append(event)
        if event == Connecting(("slow",)):
            servers.opened[0].take([CLOCK])
            asyncio.get_running_loop().call_later(0.01, servers.opened[0].settle)
    assert Connecting(("slow",)) in events
    assert offered(world) == ["slow__now"]


async def test_a_server_that_is_late_or_fails_costs_one_sentence_and_one_wait(
    world: World, servers: ScriptedServers
) -> None:
    world.configure(configured("time", "slow", "broken"))
    told = [event.text for event in await events_of(world, "Hello") if isinstance(event, Notice)]
    assert told == [
        "The server slow is still connecting; /tools shows when it is connected.",
        "The server broken is not connected: it has ended.",
    ]
    assert offered(world) == ["time__now", "time__zones"]
    assert not [event for event in await events_of(world, "Again") if isinstance(event, Notice | Connecting)]
    (slow,) = [each for each in servers.opened if each.server.name == "slow"]
    slow.problem = "it does not answer"
    slow.settle()
    for told in (["The server slow is not connected: it does not answer."], []):
        assert await world.notices("Now?") == told


async def test_a_missing_variable_costs_one_sentence_and_no_other_server(
    world: World, servers: ScriptedServers
) -> None:
    world.configure(json.dumps({"mcpServers": {"bad": {"command": "x", "args": ["${NOWHERE}"]}, "time": TIME}}))
    (told,) = await world.notices("Hello")
    assert told.startswith('The server bad is not connected: its "args" names the variable NOWHERE, ')
    assert await world.notices("Again") == []
    assert offered(world) == ["time__now", "time__zones"]
    assert [connection.server.name for connection in servers.opened] == ["time"]
    assert 'bad failed: its "args" names' in " ".join((await world.told("/tools")).split())
    found = completions(world.services.registry, world.services, "/tools off b")
    assert "bad" in [each.text for each in found.candidates]
    assert await world.told("/tools off bad") == "bad is off for chorus."


async def test_a_server_that_ended_is_started_again_but_not_for_ever(world: World, servers: ScriptedServers) -> None:
    for _ in range(6):
        await world.say("Hello")
        servers.opened[-1].problem = "it has ended"
    assert len(servers.opened) == 4


async def test_a_server_that_was_there_is_tried_again_until_it_is_back(world: World, servers: ScriptedServers) -> None:
    await world.say("Hello")
    servers.opened[-1].problem = "it has ended"
    back = servers.declared.pop("time")
    await world.say("Hello")
    assert offered(world) == []
    servers.declared["time"] = back
    await world.say("Hello")
    assert offered(world) == ["time__now", "time__zones"]


async def test_of_300_tools_as_many_are_offered_as_a_request_may_have(world: World, servers: ScriptedServers) -> None:
    servers.declared["time"] = [CLOCK._replace(name=f"t{number}") for number in range(300)]
    await world.say("Hello")
    assert len(world.model.requests[-1].tools) == 128
    assert "177 tools had no room in a request." in await world.told("/tools")
    shown = await world.told("/context")
    assert "no room for time.t123, time.t124, " in " ".join(shown.split())


async def test_long_declarations_leave_room_for_the_conversation(world: World, servers: ScriptedServers) -> None:
    long = " ".join(f"word{number}" for number in range(1500))
    servers.declared["time"] = [CLOCK._replace(name=f"t{number}", description=long) for number in range(30)]
    await world.say("Hello")
    assert 10 < len(offered(world)) < 20


async def test_tools_lists_servers_with_their_state_and_their_tools_with_tokens(world: World) -> None:
    world.configure(configured("time", "slow", "broken", mcp_allow={"time.now": allowance("time", "time")}))
    lines = (await world.told("/tools")).splitlines()
    heads = [" ".join(line.split()[:3]) for line in lines]
    assert heads[:3] == ["Tool State Tokens", f"built in {len(BUILT_IN)}", "time connected " + lines[2].split()[2]]
    now, zones = (line.split() for line in lines[3:5])
    assert (now[:3], zones[:2]) == (["now", "runs", "always"], ["zones", "asks"])
    assert int(lines[2].split()[2]) == int(now[3]) + int(zones[2])
    assert lines[5].split() == ["slow", "connecting"]
    assert lines[6].split() == ["broken", "failed:", "it", "has", "ended"]
    assert lines[7:] == ["", "The server broken failed: it has ended."]


async def test_tools_whose_names_look_alike_differ_in_the_list(world: World, servers: ScriptedServers) -> None:
    servers.declared["time"] = [CLOCK._replace(name=name) for name in ("now", "n\x1b[2Jow", "n\u043ew", "no\u200bw")]
    names = [line.split()[0] for line in (await world.told("/tools")).splitlines()[3:]]
    assert names == ["now", '"n\\u001b[2Jow"', '"n\\u043ew"', '"no\\u200bw"']
    assert await world.told(f"/tools off time.{names[2]}") == "time.n\u043ew is off for chorus."
    assert json.loads(world.settings_text())["mcpServers"]["time"]["excludeTools"] == ["n\u043ew"]


async def test_the_list_of_tools_leaves_the_notices_to_the_message(world: World) -> None:
    world.configure(configured("slow", "broken"))
    shown = await world.told("/tools")
    assert ("connecting" in shown, "message" in shown, "missing" in shown) == (True, False, False)
    assert await world.notices("Hello") == [
        "The server slow is still connecting; /tools shows when it is connected.",
        "The server broken is not connected: it has ended.",
    ]


async def test_a_message_makes_no_declaration_anew(world: World) -> None:
    await world.say("Hello")
    first = world.model.requests[-1].tools
    await world.say("Again")
    assert all(again is tool for again, tool in zip(world.model.requests[-1].tools, first, strict=True))


async def test_context_has_a_row_for_each_server(world: World) -> None:
    await world.say("Hello")
    told = await world.told("/context")
    assert "tools of time" in told
    assert "time__now, time__zones" in told


async def test_servers_and_tools_are_switched_off_and_on_and_undo_reverts_that(
    world: World, servers: ScriptedServers
) -> None:
    await world.say("Hello")
    assert await world.told("/tools off time.now") == "time.now is off for chorus."
    await world.say("Hello")
    assert offered(world) == ["time__zones"]
    assert await world.told("/tools off time") == "time is off for chorus."
    assert servers.opened[-1].problem
    await world.say("Hello")
    assert offered(world) == []
    await world.told("/undo")
    assert "off" in await world.told("/tools")
    await world.told("/tools on time")
    await world.told("/tools on time.now")
    await world.say("Hello")
    assert offered(world) == ["time__now", "time__zones"]


async def test_a_server_that_no_persona_names_any_more_is_ended(world: World, servers: ScriptedServers) -> None:
    await world.told("/mcp add slow -- slow")
    await world.say("Hello")
    slow, time = servers.opened
    await world.told("/mcp remove slow")
    assert (time.problem, slow.problem) == ("", "it has ended")
    world.configure(configured())
    await world.say("Hello")
    assert time.problem == "it has ended"


async def test_what_one_persona_ends_another_keeps(world: World, servers: ScriptedServers) -> None:
    for line in ("/mcp remove time", "/mcp add time -- time", "/mcp add slow --persona chorus -- a"):
        await world.told(line)
    await world.say("Hello")
    await world.told("/persona new frodo")
    await world.told("/mcp add slow --persona frodo -- b")
    await world.say("Hello")
    assert [connection.server.command for connection in servers.opened] == ["time", "a", "b"]
    await world.told("/tools off time")
    await world.told("/tools on slow")
    await world.told("/tools off slow")
    assert [connection.problem for connection in servers.opened] == ["", "", "it has ended", "it has ended"]


async def test_an_entry_that_only_switches_is_no_server(world: World) -> None:
    world.configure('{"mcpServers": {"time": {"disabled": true}}}')
    await world.say("Hello")
    assert "time" not in await world.told("/tools")
    found = completions(world.services.registry, world.services, "/tools on t")
    assert "time" not in [each.text for each in found.candidates]
    assert (await world.told("/tools on time")).startswith('There is no server "time".')


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        *((f"/tools off {name}", 'There is no server "nobody".') for name in ("nobody", "nobody.now")),
        ("/tools off time.nothing", 'The server "time" has no tool "nothing".'),
        ("/tools ask time", "Name the tool too"),
    ],
)
async def test_unknown_names_are_refused(world: World, line: str, refusal: str) -> None:
    await world.say("Hello")
    assert refusal in await world.told(line)


async def test_ask_ends_a_permission(world: World) -> None:
    world.configure(configured("time", mcp_allow={"time.now": allowance("time", "time")}))
    assert await world.told("/tools ask time.now") == "Chorus asks you before it runs time.now."
    assert "runs always" not in await world.told("/tools")


async def test_ask_ends_for_one_persona_what_is_allowed_for_all(world: World) -> None:
    defaults = configured("time", mcp_allow={"time.now": allowance("time", "time")})
    (world.folder / "config.jsonc").write_text(f'{{"defaults": {defaults}}}', encoding="utf-8")
    world.configure('{"mcp_wait": 0}')
    assert "runs always" in await world.told("/tools")
    assert await world.told("/tools ask time.now") == "Chorus asks you before it runs time.now."
    assert json.loads(world.settings_text())["mcp_allow"] == {"time.now": "ask"}
    assert "runs always" not in await world.told("/tools")
    assert "allowed" not in await world.told("/mcp")
    assert 'permission "time.now" removed' in await world.told("/undo list")
    await world.told("/undo")
    assert "runs always" in await world.told("/tools")


async def test_ask_says_what_still_lets_a_tool_run(world: World) -> None:
    world.configure(json.dumps({"mcpServers": {"time": {**TIME, "trust": True}}, "mcp_wait": 0}))
    still = 'time.now still runs without a question, because the settings of time have "trust": true.'
    assert await world.told("/tools ask time.now") == still


async def test_a_tool_that_is_not_offered_cannot_be_called(world: World, servers: ScriptedServers) -> None:
    calls(world, call("slow__now", {}))
    await world.say("Hello")
    names = ", ".join([*BUILT_IN_NAMES, "time__now", "time__zones"])
    assert results(world)[0] == f"There is no tool 'slow__now'. The tools are: {names}."
    assert servers.called == []


async def test_a_provider_that_refuses_servers_tools_keeps_the_built_in_ones(world: World) -> None:
    world.model.enqueue(ToolsRefusedError("Invalid schema for function 'time__now'."))
    world.model.say("Hello!")
    assert await world.notices("Hi") == ["openai/test refused the tools of servers, so it gets none until you quit."]
    assert [len(request.tools) for request in world.model.requests] == [len(BUILT_IN) + 2, len(BUILT_IN)]
    assert await world.notices("Again") == []
    assert len(world.model.requests[-1].tools) == len(BUILT_IN)


async def test_a_provider_that_refuses_all_tools_is_asked_without_any(world: World) -> None:
    world.model.enqueue(ToolsRefusedError("No tools."))
    world.model.enqueue(ToolsRefusedError("No tools."))
    world.model.say("Hello!")
    assert (await world.notices("Hi"))[-1] == "openai/test takes no tools, so Chorus sends it none."
    assert [len(request.tools) for request in world.model.requests] == [len(BUILT_IN) + 2, len(BUILT_IN), 0]
