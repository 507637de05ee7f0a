"""The ways to ask a model: over the wire, and by litellm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from chorus_cli.context.rules.preamble import spoken
from chorus_cli.machine.clock import SystemClock
from chorus_cli.models.litellm.client import LiteLLMClient
from chorus_cli.models.local.client import LocalClient, LocalFiles
from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.router import ElizaClient, ModelRouter
from chorus_cli.models.rules.events import ModelClient
from chorus_cli.models.wire.client import WireClient
from tests.attached_files import loaded

MODEL_MAP = ModelMap()


def by_litellm(environment: Mapping[str, str], first: float, gap: float) -> LiteLLMClient:
    return LiteLLMClient(environment, MODEL_MAP, first_token_seconds=first, gap_seconds=gap, load=loaded)


def over_wire(environment: Mapping[str, str], first: float, gap: float) -> ModelRouter:
    """Return all clients as in a run: models that the wire does not reach go to litellm."""
    wire = WireClient(environment, MODEL_MAP, first_token_seconds=first, gap_seconds=gap, load=loaded)
    local = LocalClient(environment, MODEL_MAP, LocalFiles())
    return ModelRouter(ElizaClient(SystemClock(), spoken), local, wire, by_litellm(environment, first, gap))


WAYS: Mapping[str, Callable[[Mapping[str, str], float, float], ModelClient]] = {
    "wire": over_wire,
    "litellm": by_litellm,
}


@dataclass(frozen=True, slots=True)
class MakeClient:
    """Builds clients that ask by one of the ways, and has all of them closed in the end."""

    way: str
    built: AsyncExitStack

    def __call__(
        self, environment: Mapping[str, str], *, first_token_seconds: float = 300, gap_seconds: float = 60
    ) -> ModelClient:
        client = WAYS[self.way](environment, first_token_seconds, gap_seconds)
        if isinstance(client, ModelRouter):
            self.built.push_async_callback(client.wire.aclose)
        return client
