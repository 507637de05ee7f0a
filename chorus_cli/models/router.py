"""The router, which passes each request to the client for its model, and ELIZA's client."""

from __future__ import annotations

import re
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ModelError
from chorus_cli.core.text.phrases import open_fence
from chorus_cli.models.providers import model_files
from chorus_cli.models.providers.servers import is_ollama
from chorus_cli.models.rules.choice import ELIZA, EMBEDDED, LOCAL
from chorus_cli.models.rules.events import ModelClient, ModelEvent, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import NO_ECHO, Echo, ModelRequest, asked_to_go_on

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from chorus_cli.machine.ports import Clock
    from chorus_cli.models.litellm.client import LiteLLMClient
    from chorus_cli.models.local.client import LocalClient
    from chorus_cli.models.wire.client import WireClient

_WORD = re.compile(r"\S+\s*")
# Both patterns match a reply's last character and its continuation's first. No blank precedes a closing mark.
_CLOSING = re.compile(r"\w[*_\"'\u2019\u201d`]")
# The last two ranges are East Asian characters but Hangul: Chinese and Japanese put no blanks between words.
_NEEDS_BLANK = re.compile(r"[^\s(\[{/\-\u2e80-\uabff\ud7b0-\uffef][^\s.,;:!?\u2026)\]}/\-\u2e80-\uabff\ud7b0-\uffef]")


@dataclass(frozen=True, slots=True)
class ModelRouter:
    """Passes each request to the client for its model; ``litellm`` serves the models that no other client serves.

    If litellm is installed, it also serves Ollama, because only litellm can set the size of Ollama's context.
    """

    eliza: ModelClient
    local: LocalClient
    wire: WireClient
    litellm: LiteLLMClient
    has_litellm: Callable[[], bool] = model_files.has_litellm

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Return the reply of the model's client; raise a ``ModelError`` if no client can serve the model."""
        if request.model == ELIZA:
            return self.eliza.stream(request)
        if request.model.startswith(EMBEDDED):
            raise ModelError(f"There is no embedded model {request.model!r}; the only one is {ELIZA}.")
        if doubt := self.doubt(request.model):
            raise ModelError(doubt)
        client = self._client(request.model)
        if not request.goes_on or (client is self.wire and self.wire.prefills(request)):
            return client.stream(request)
        return _joined(client.stream(asked_to_go_on(request)), request.messages[-1].content)

    def warm(self, model: str) -> None:
        """Import the modules for the first request to ``model``. This may take seconds; any thread may call it."""
        if not model.startswith(EMBEDDED) and not self.doubt(model):
            self._client(model).warm(model)

    def doubt(self, model: str) -> str:
        """Return a sentence if ``model`` needs litellm and litellm is not installed, else an empty text."""
        is_lacking = not model.startswith(EMBEDDED) and self._client(model) is self.litellm and not self.has_litellm()
        return self.litellm.missing(model) if is_lacking else ""

    async def preconnect(self, model: str) -> None:
        """Connect to the server of ``model`` before the next request, if the wire client serves the model."""
        if not model.startswith(EMBEDDED) and self._client(model) is self.wire:
            await self.wire.preconnect(model)

    def echo(self, model: str) -> Echo:
        """Return which thoughts of ``model`` later requests send back to it."""
        return NO_ECHO if model.startswith(EMBEDDED) else self._client(model).echo(model)

    async def aclose(self) -> None:
        """Close all connections, and end the servers of local models."""
        await self.local.aclose()
        await self.wire.aclose()

    def _client(self, model: str) -> LocalClient | WireClient | LiteLLMClient:
        if model.startswith(LOCAL):
            return self.local
        is_by_wire = self.wire.reaches(model) and not (is_ollama(model) and self.has_litellm())
        return self.wire if is_by_wire else self.litellm


async def _joined(events: AsyncGenerator[ModelEvent, None], before: str) -> AsyncGenerator[ModelEvent, None]:
    """Put a blank between a reply and its continuation if needed, because models begin messages without a blank."""
    is_begun = False
    async with aclosing(events):
        async for event in events:
            if isinstance(event, TextDelta) and event.text and not is_begun:
                is_begun = True
                joint = before[-1:] + event.text[0]
                if _NEEDS_BLANK.match(joint) and not _CLOSING.match(joint) and not open_fence(before):
                    yield TextDelta(" ")
            yield event


class ElizaClient:
    """A ``ModelClient`` for ELIZA, with a pause between words."""

    def __init__(self, clock: Clock, seconds_per_word: float = 0.02) -> None:
        self._clock = clock
        self._seconds_per_word = seconds_per_word

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the answer word by word, then a ``ReplyEnd`` without usage, because ELIZA has no tokens."""
        from chorus_cli.models.eliza.responder import reply  # no other model needs the script

        asked = [message for message in request.messages if message.role == "user"]
        noted = [each.content.removeprefix(each.note).removesuffix(each.note).strip() for each in asked]
        said = [text.removeprefix(each.preamble).strip() for text, each in zip(noted, asked, strict=True)]
        for position, word in enumerate(_WORD.findall(reply(said))):
            if position:
                await self._clock.sleep(self._seconds_per_word)
            yield TextDelta(word)
        yield ReplyEnd("stop")
