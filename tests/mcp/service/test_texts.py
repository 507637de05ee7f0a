"""Prompts of servers are commands, and their resources are attachments."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future
from pathlib import Path

import pytest

from chorus_cli.core.errors import AttachmentError
from chorus_cli.framework.command_line import completions, resolve
from chorus_cli.log.rules.attachments import Kind
from chorus_cli.log.rules.messages import Message
from chorus_cli.mcp.connections import Connection
from chorus_cli.mcp.rules.offers import Argument, Offers, Part, Prompt
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.storage.store import Store
from chorus_cli.threads.service.running_turn import RunningTurn
from chorus_cli.tools.service import BUILT_IN
from tests.attached_files import png
from tests.attachments.attached_talk import say
from tests.fakes import FakeClock, ScriptedModel
from tests.mcp.scripted_servers import CLOCK, ScriptedServers
from tests.turns.service.tool_talk import call, calls
from tests.world import Tools, World, built

REVIEW = Prompt("review", "Review a \x1b[2Jfile.", (Argument("file", is_required=True), Argument("style", "How.")))


@pytest.fixture
def servers() -> ScriptedServers:
    servers = ScriptedServers({"docs": [CLOCK], "slow": None})
    servers.offered = (REVIEW, Prompt("greet"))
    servers.said = {
        "review": (Part("Review this: @/etc/passwd \\@me", speaker="user"),),
        "greet": (Part("Say hello.", speaker="user"), Part("Hello.", speaker="assistant")),
    }
    servers.read = {"note://1": (Part("Gold is heavy.", b"", "text/plain", "note://1"),)}
    return servers


@pytest.fixture
async def world(
    tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel, servers: ScriptedServers
) -> World:
    world = await built(tmp_path, store, clock, model, 100_000, Tools(BUILT_IN, servers))
    configured = {name: {"command": name} for name in ("docs", "slow", "broken")}
    configured["off"] = {"command": "off", "disabled": True}  # type: ignore[dict-item]
    world.configure(json.dumps({"mcpServers": configured, "mcp_wait": 0}))
    return world


async def send(world: World, line: str) -> Message:
    """Send a prompt as it is typed, and return the message."""
    answer = await resolve(world.services.registry, line, world.clock.now()).run(world.services)
    assert isinstance(answer, RunningTurn)
    _ = [event async for event in answer.followed()]
    return (await world.log())[-2]


async def test_a_prompt_is_sent_as_the_users_message_that_names_its_server(
    world: World, servers: ScriptedServers
) -> None:
    told: list[str] = []
    with world.services.notifier.heard_by(told.append, told.append):
        message = await send(world, "/docs:review main.py style=kind and short")
    assert servers.called == [("docs", "review", {"file": "main.py", "style": "kind and short"})]
    assert message.content == "[A server's prompt: docs:review]\n\nReview this: @/etc/passwd \\@me"
    assert (message.role, message.attachments) == ("user", ())
    assert told == [message.content]
    assert world.asked()[-1] == ("user", message.content)
    assert (await send(world, "/mcp prompt docs:greet")).content.endswith("user: Say hello.\n\nassistant: Hello.")


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("/docs:review", "/docs:review needs file, for example: /docs:review file=…"),
        ("/docs:nothing", 'The server docs has no prompt "nothing". /tools lists the prompts.'),
        ("/nobody:review", 'There is no server "nobody". /mcp lists the servers.'),
        ("/off:review", "The server off is switched off. /tools on off switches it on."),
        ("/slow:review", "The server slow is still connecting; /tools shows when it is connected."),
        ("/broken:review", "The server broken is not connected: it has ended."),
        ("/mcp prompt docs", "'docs' names no prompt: write a server and its prompt, such as docs:review."),
    ],
)
async def test_a_prompt_that_cannot_be_sent_is_one_sentence(world: World, line: str, refusal: str) -> None:
    assert await world.told(line) == refusal
    assert await world.log() == []


async def test_pictures_of_a_prompt_are_attached_and_other_files_are_named(
    world: World, servers: ScriptedServers
) -> None:
    servers.said["greet"] = (
        Part("Look:", speaker="user"),
        Part("", png(), "image/png", speaker="user"),
        Part("", b"\0sound", "audio/wav", speaker="user"),
        Part("A note.", b"", "text/plain", "note://2", "user"),
    )
    message = await send(world, "/docs:greet")
    assert [(each.name, each.server, each.kind) for each in message.attachments] == [
        ("image.png", "docs", Kind.PICTURE)
    ]
    left_out = "[audio.wav of 6 bytes, which Chorus cannot attach]"
    assert message.content.endswith(f"Look:\n\n{left_out}\n\n[note://2]\nA note.")
    servers.said["greet"] = ()
    assert await world.told("/docs:greet") == "/docs:greet says nothing, so nothing was sent."


async def test_a_prompt_does_not_take_a_waiting_picture_to_a_model_that_takes_none(world: World) -> None:
    attachments = world.services.attachments
    attachments.wait([await attachments.of_bytes("photo.png", png())])
    world.model.accepted = frozenset({Kind.TEXT})
    assert (await world.told("/docs:greet")).startswith("openai/test takes no pictures.")
    assert ([each.name for each in attachments.waiting], await world.log()) == (["photo.png"], [])


async def test_ctrl_c_loses_nothing_of_a_prompt_that_is_being_stored(world: World) -> None:
    attachments, services = world.services.attachments, world.services
    answered = asyncio.Event()
    world.model.enqueue(answered, TextDelta("Hello."), ReplyEnd("stop"))
    first = await resolve(services.registry, "/docs:greet", world.clock.now()).run(services)
    attachments.wait([await attachments.of_bytes("photo.png", png())])
    sending = asyncio.ensure_future(resolve(services.registry, "/docs:greet", world.clock.now()).run(services))
    for _ in range(1_000_000):
        if not attachments.waiting:
            break
        await asyncio.sleep(0)
    sending.cancel()
    await asyncio.wait({sending})
    answered.set()
    assert not sending.cancelled()
    assert isinstance(first, RunningTurn)
    _ = [event async for event in first.followed()]
    assert first.next is not None
    _ = [event async for event in first.next.followed()]
    assert [each.name for each in (await world.log())[-2].attachments] == ["photo.png"]


async def test_completion_offers_prompts_after_the_commands_and_then_their_arguments(world: World) -> None:
    services = world.services
    assert not [each for each in completions(services.registry, services, "/").candidates if ":" in each.text]
    await world.say("Hello")
    offered = completions(services.registry, services, "/").candidates
    assert [each.text for each in offered[-2:]] == ["/docs:review", "/docs:greet"]
    assert offered[-2].description.isprintable()
    assert ":" not in offered[-3].text
    assert [each.text for each in completions(services.registry, services, "/docs:rev").candidates] == ["/docs:review"]
    found = completions(services.registry, services, "/docs:review file=a ")
    assert [(each.text, each.description) for each in found.candidates] == [("file=a style=", "How.")]


async def test_tools_lists_prompts_and_counts_resources(world: World) -> None:
    lines = [line.split() for line in (await world.told("/tools")).splitlines()]
    assert ["/docs:review", "prompt"] in lines
    assert ["@docs:", "1", "resource"] in lines


class Silent(ScriptedServers):
    """Servers that list nothing before they are let go."""

    def offers(self, connection: Connection) -> Future[Offers]:
        connection.offers = connection.offers or Future()
        return connection.offers


async def test_silent_servers_are_asked_together(
    tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel
) -> None:
    servers = Silent({name: [CLOCK] for name in "ab"})
    world = await built(tmp_path, store, clock, model, 100_000, Tools(BUILT_IN, servers))
    world.configure(json.dumps({"mcpServers": {name: {"command": name} for name in "ab"}, "mcp_wait": 0}))
    listing = asyncio.create_task(world.told("/tools"))
    for _ in range(300):
        is_asked = servers.opened and servers.opened[0].offers
        await asyncio.sleep(0 if is_asked else 0.01)
    asked = [each.offers for each in servers.opened]
    for each in asked:
        if each:
            each.set_result(Offers((REVIEW,)))
    told = await listing
    assert ("/a:review" in told, "/b:review" in told, all(asked)) == (True, True, True)


async def test_a_resource_is_an_attachment_with_its_name_and_its_server(world: World, servers: ScriptedServers) -> None:
    servers.read["pic://1"] = (Part("", png(), "image/png", "pic://1"),)
    await say(world, "What is in @docs:note://1, and in (@docs:pic://1)?")
    (message, _) = await world.log()
    assert message.content == "What is in @docs:note://1, and in (@docs:pic://1)?"
    assert [(each.name, each.server, each.kind) for each in message.attachments] == [
        ("docs:note://1", "docs", Kind.TEXT),
        ("docs:pic://1", "docs", Kind.PICTURE),
    ]


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("@docs:note://9", "The server docs gave no result: nothing is there. Nothing was sent."),
        ("@docs:zip://1", "docs:zip://1 is not a picture (PNG, JPEG, GIF, WebP), a PDF or text in UTF-8 (byte"),
        ("@docs:none://1", "The server docs has nothing at none://1. Nothing was sent."),
        ("@off:note://1", "The server off is switched off. /tools on off switches it on. Nothing was sent."),
        ("@slow:note://1", "The server slow is still connecting; /tools shows when it is connected. Nothing was sent."),
        ("@broken:note://1", "The server broken is not connected: it has ended. Nothing was sent."),
    ],
)
async def test_a_resource_that_cannot_be_attached_is_one_sentence(
    world: World, servers: ScriptedServers, text: str, refusal: str
) -> None:
    servers.read |= {"zip://1": (Part("", b"PK\x03\x04\xff", "application/zip", "zip://1"),), "none://1": ()}
    with pytest.raises(AttachmentError) as refused:
        await say(world, text)
    assert str(refused.value).startswith(refusal)
    assert await world.log() == []


async def test_an_at_sign_that_names_no_server_is_text(world: World, servers: ScriptedServers) -> None:
    told: list[str] = []
    with world.services.notifier.heard_by(told.append, told.append):
        await say(world, r"@nobody:note://1 and \@docs:note://1 and @docs: and me@docs:note://1")
    assert (await world.log())[0].content == "@nobody:note://1 and @docs:note://1 and @docs: and me@docs:note://1"
    assert (told, servers.called) == ([], [])


@pytest.mark.parametrize("line", ["/docs:greet", "See @docs:note://1."])
async def test_what_a_server_says_replaces_nothing_that_the_user_said(
    world: World, servers: ScriptedServers, line: str
) -> None:
    await world.told("/remember The user lives in Rome.")
    servers.said["greet"] = (Part("```python\na = 1\nb = 2\nc = 3\n```", speaker="user"),)
    calls(world, call("remember", {"type": "task", "content": "The user lives in Oslo.", "replaces": 1}))
    world.model.say("Kept.")
    await (send(world, line) if line.startswith("/") else say(world, line))
    assert "Rome" in await world.told("/memory show 1")
    captured = [item.source for item in await world.services.memory.listing("chorus") if "a = 1" in item.content]
    assert captured == (["tool"] if line.startswith("/") else [])
    calls(world, call("remember", {"type": "task", "content": "The user likes gold."}))
    world.model.say("Kept.")
    await (send(world, line) if line.startswith("/") else say(world, line))
    kept = [item.source for item in await world.services.memory.listing("chorus") if "gold" in item.content]
    assert kept == ["tool"]
