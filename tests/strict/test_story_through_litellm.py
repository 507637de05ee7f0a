"""The story through litellm. What that cannot do, its servers here do without; docs/providers.md names it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.loopback_server import Asked
from tests.models.providers.asked_models import BY_LITELLM
from tests.strict.by_services import Stage
from tests.strict.chat import HIDDEN, MISTRAL, StrictChat
from tests.strict.gemini import StrictGemini
from tests.strict.providers import PROVIDERS
from tests.strict.responses import StrictResponses
from tests.strict.server import NO_ECHO, Body, Reply, Sent, Streamed, StrictProtocol, Thinking
from tests.strict.story import Story

pytestmark = [*BY_LITELLM, pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")]

_SPELT = {"system_instruction": "systemInstruction", "function_call": "functionCall"} | {
    "function_response": "functionResponse"
}
# Google's own word for calls of other models, in Base64.
_DUMMY = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="


@dataclass(frozen=True, slots=True)
class Spelt(StrictProtocol):
    """Google's protocol in litellm's spelling, which Google takes too."""

    inner: StrictProtocol

    def check(self, asked: Asked, sent: Sequence[Sent]) -> None:
        self.inner.check(asked._replace(body=_respelt(asked.body)), sent)

    def streamed(self, reply: Reply, thinking: Thinking | None) -> Streamed:
        return self.inner.streamed(reply, thinking)

    def prompt(self, body: Body, *, with_thoughts: bool) -> tuple[object, list[Any]]:
        return self.inner.prompt(_respelt(body), with_thoughts=with_thoughts)

    def earlier(self, body: Body) -> Sequence[Body]:
        return self.inner.earlier(_respelt(body))

    def lenient(self) -> StrictProtocol:
        return Spelt(self.inner.lenient())


def _respelt(body: Body) -> Body:
    written = json.dumps(body)
    written = written.replace(f', "thoughtSignature": "{_DUMMY}"', "")
    for theirs, ours in _SPELT.items():
        written = written.replace(f'"{theirs}":', f'"{ours}":')
    respelt: Body = json.loads(written)
    return respelt


def as_text(name: str, field: str) -> StrictProtocol:
    """Return a provider of chat completions that takes its thoughts back as text."""
    strict = PROVIDERS[name].protocol
    assert isinstance(strict, StrictChat)
    form = strict.form._replace(own=lambda thinking, _reply: {field: thinking.words})
    return replace(strict, form=form, fields=frozenset({field}))


def with_effort(name: str) -> StrictProtocol:
    """Return a provider of chat completions that takes an effort."""
    strict = PROVIDERS[name].protocol
    assert isinstance(strict, StrictChat)
    return replace(strict, parameters=frozenset({"reasoning_effort"}))


LESS_STRICT: Mapping[str, StrictProtocol] = {
    "groq": with_effort("groq"),
    "minimax": as_text("minimax", "reasoning"),
    "openrouter": StrictChat(HIDDEN, NO_ECHO, parameters=frozenset({"usage"})),
    "mistral": StrictChat(MISTRAL._replace(own=lambda _thinking, _reply: None), NO_ECHO),
    "vllm": as_text("vllm", "reasoning_content"),
    "responses": StrictResponses(echo=NO_ECHO),
    "gemini-3": Spelt(StrictGemini(signs_words=False)),
}
OFTEN = ("deepseek", "claude", "gemini-3")
# At Google's endpoint for OpenAI's clients litellm loses signatures, and of equal calls it sends Gemini 2.5 but one.
NAMES = [name for name in PROVIDERS if name not in {*OFTEN, "google-openai", "gemini-2.5"}]


@pytest.mark.parametrize("name", [*OFTEN, *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES)])
async def test_a_talk_of_many_turns(name: str, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    other = "deepseek" if name == "groq" else "groq"
    async with replace(stage, environment={"CHORUS_WIRE": "off"}).players(name, other) as (player, actors):
        for variable, value in player.environment.items():
            monkeypatch.setenv(variable, value)
        # Of Gemini's ids litellm takes the signatures off, and they are those of the other then.
        actors[1].ids = 100
        for actor in actors:
            shows = actor.strict.shows and actor.server.name != "openrouter"
            actor.strict = actor.strict._replace(repeats_ids=False, shows=shows, misfit=lambda _body: "")
            actor.server.protocol = LESS_STRICT.get(actor.server.name, actor.server.protocol)
        await Story(player, *actors).play()
