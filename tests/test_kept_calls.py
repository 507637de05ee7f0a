"""A home with calls of tools that Chorus 0.1.0 made before it kept thoughts opens, and its talks go on.

``chorus`` has talked to DeepSeek and ``frodo`` to Gemini, whose signatures are in the ids of its calls.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from chorus_cli.models.providers.providers import endpoint
from chorus_cli.models.wire.chat_completions import ChatCompletions
from chorus_cli.models.wire.gemini import GeminiContents
from chorus_cli.models.wire.protocol import WireProtocol
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel
from tests.loopback_server import Asked
from tests.models.providers.ways import MODEL_MAP
from tests.strict.providers import PROVIDERS
from tests.strict.server import Call, Reply, Sent, StrictServer, serving
from tests.terminal.driver import Home
from tests.world import World, built

ARCHIVE = Path(__file__).with_name("kept_calls.zip")
MADE_AT = datetime(2026, 11, 23, 20, 16, tzinfo=UTC)
DEEPSEEK, GEMINI = "deepseek/deepseek-v4-flash", "gemini/gemini-3-pro-preview"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """The kept home."""
    with ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    return Home(tmp_path / "home")


@pytest.fixture
async def kept(home: Home) -> AsyncIterator[World]:
    """A world on the kept home, a minute after it was left."""
    store = Store(home.path / "chorus.db")
    await store.open()
    yield await built(home.path, store, FakeClock(MADE_AT), ScriptedModel(), 128_000)
    await store.close()


async def sent(kept: World, persona: str, model: str, protocol: WireProtocol) -> Any:
    """Return the body of the next request, as it goes to the provider of ``model``."""
    await kept.current.turn_to(persona)
    await kept.say("And now?")
    asked = endpoint(model, {})
    assert asked is not None
    return json.loads(protocol.post(kept.model.requests[-1], asked).body)


@pytest.mark.parametrize("persona", ["chorus", "frodo"])
async def test_calls_of_one_reply_go_back_together(kept: World, persona: str) -> None:
    await kept.current.turn_to(persona)
    await kept.say("And now?")
    roles = [message.role for message in kept.model.requests[-1].messages]
    assert " ".join(roles) == (
        "system user assistant user assistant tool tool assistant "
        "user assistant tool assistant tool assistant user assistant user"
    )


async def test_replies_of_deepseek_without_thoughts_have_the_least_that_it_takes(kept: World) -> None:
    body = await sent(kept, "chorus", DEEPSEEK, ChatCompletions(MODEL_MAP))
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    assert [message["reasoning_content"] for message in said] == [" "] * 7


async def test_signatures_in_the_ids_of_calls_go_back_to_gemini(kept: World) -> None:
    body = await sent(kept, "frodo", GEMINI, GeminiContents(MODEL_MAP))
    calls = [part for content in body["contents"] for part in content["parts"] if "functionCall" in part]
    assert [(call["functionCall"]["id"], call.get("thoughtSignature")) for call in calls] == [
        ("g1", "c2lnLW9uZQ=="),
        ("g2", None),
        ("s0", "c2lnLXN0ZXA="),
        ("s1", "c2lnLXN0ZXA="),
    ]


def was_sent(text: str, signature: str, **queries: str) -> Sent:
    """Return a reply with calls by their ids, the first of which Gemini had signed."""
    calls = tuple(Call("search_history", {"query": query}, id_) for id_, query in queries.items())
    return Sent(text, calls, [{"call": 0, "signature": signature}], Asked("", {}, {}))


SIGNED = [
    was_sent("I look.", "c2lnLW9uZQ==", g1="ring", g2="shire"),
    was_sent("", "c2lnLXN0ZXA=", s0="word0"),
    was_sent("", "c2lnLXN0ZXA=", s1="word1"),
]


@pytest.mark.parametrize(
    ("persona", "model", "provider", "before"),
    [("chorus", DEEPSEEK, "deepseek", []), ("frodo", GEMINI, "gemini-3", SIGNED)],
)
def test_the_program_goes_on_with_them(
    home: Home, monkeypatch: pytest.MonkeyPatch, persona: str, model: str, provider: str, before: list[Sent]
) -> None:
    strict = PROVIDERS[provider]
    with serving(StrictServer(provider, strict.protocol, sent=[*before])) as server:
        for variable, value in strict.environment(server.address).items():
            monkeypatch.setenv(variable, value)
        server.will(Reply("It goes on."), Reply("Still."))
        for question, answer in (("/context 36500d", ""), ("And now?", "It goes on."), ("And then?", "Still.")):
            asked = home.run("ask", "--persona", persona, "--model", model, question)
            assert (asked.code, answer in asked.output) == (0, True), asked.errors
        assert server.refused == []
        assert ["word0" in str(body) for body in server.bodies] == [True, True]
