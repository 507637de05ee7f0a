"""The ways to ask a model, over the wire and by litellm, and the marks of tests that ask by litellm."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.machine.clock import SystemClock
from chorus_cli.models.litellm.client import LiteLLMClient
from chorus_cli.models.local.client import LocalClient, LocalFiles
from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.router import ElizaClient, ModelRouter
from chorus_cli.models.rules.events import ModelClient, ModelEvent, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import USUAL_TIMEOUTS, ModelRequest, PromptMessage, Timeouts
from chorus_cli.models.wire.client import WireClient
from tests.attached_files import loaded
from tests.models.providers.fault_server import DONE, chunk

MODEL_MAP = ModelMap()
HELLO = (PromptMessage("user", "hello"),)
STOP = chunk(finish_reason="stop") + DONE
PATIENCE_SECONDS = 0.4
# Longer than a busy machine needs for any answer.
_LONG_SECONDS = 30.0
BROKE_OFF = "The reply of openai/m broke off"
KEPT = "What has arrived is kept."

BY_LITELLM = [
    pytest.mark.usefixtures("_litellm_is_loaded", "_no_connection_outlives_the_event_loop_of_its_test"),
    # litellm ignores these too, once, when it is imported; pytest forgets that at the next test.
    pytest.mark.filterwarnings("ignore:Accessing the .* attribute on the instance is deprecated"),
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier"),
]


def by_litellm(environment: Mapping[str, str], timeouts: Timeouts) -> LiteLLMClient:
    return LiteLLMClient(environment, MODEL_MAP, timeouts=timeouts, load=loaded)


def over_wire(environment: Mapping[str, str], timeouts: Timeouts = USUAL_TIMEOUTS) -> ModelRouter:
    """Return all clients as in a run: models that the wire does not reach go to litellm."""
    wire = WireClient(environment, MODEL_MAP, timeouts=timeouts, load=loaded)
    local = LocalClient(environment, MODEL_MAP, LocalFiles())
    return ModelRouter(ElizaClient(SystemClock()), local, wire, by_litellm(environment, timeouts))


WAYS: Mapping[str, Callable[[Mapping[str, str], Timeouts], ModelClient]] = {
    "wire": over_wire,
    "litellm": by_litellm,
}


@dataclass(frozen=True, slots=True)
class MakeClient:
    """Builds clients that ask by one of the ways, and has all of them closed in the end."""

    way: str
    built: AsyncExitStack

    def __call__(self, environment: Mapping[str, str], timeouts: Timeouts = USUAL_TIMEOUTS) -> ModelClient:
        client = WAYS[self.way](environment, timeouts)
        if isinstance(client, ModelRouter):
            self.built.push_async_callback(client.wire.aclose)
        return client


async def events_of(
    make_client: MakeClient, address: str, key: str, *, model: str = "openai/m", patience_seconds: float = _LONG_SECONDS
) -> list[ModelEvent]:
    """Return all events; the environment names ``address`` for the providers that these tests use."""
    bare = address.removesuffix("/v1")
    environment = {**os.environ, "OPENAI_BASE_URL": address, "OPENAI_API_KEY": key, "OLLAMA_API_BASE": bare}
    client = make_client(environment, Timeouts(patience_seconds, patience_seconds))
    return [meaning(event) async for event in client.stream(ModelRequest(model, HELLO))]


def meaning(event: ModelEvent) -> ModelEvent:
    """Return an event without the provider's own parts of the thoughts."""
    return replace(event, thought_parts="") if isinstance(event, ReplyEnd) else event


async def error_of(
    make_client: MakeClient, address: str, key: str, *, model: str = "openai/m", patience_seconds: float = _LONG_SECONDS
) -> ModelError:
    """Return the error, having checked what every error keeps to."""
    with pytest.raises(ModelError) as caught:
        await events_of(make_client, address, key, model=model, patience_seconds=patience_seconds)
    sentence = str(caught.value)
    assert key not in "".join(traceback.format_exception(caught.value))
    assert len(sentence) <= 300
    assert "\n" not in sentence
    assert "litellm." not in sentence
    return caught.value


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))
