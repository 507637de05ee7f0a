"""A talk whose model takes little, so that it is folded again and again, and a model that remembers facts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from chorus_cli.core.errors import ModelError
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.acts import Fold
from chorus_cli.log.rules.operations import Operation
from chorus_cli.models.rules.events import ModelEvent, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest
from chorus_cli.storage.store import Store
from chorus_cli.turns.service.folding import Folding
from tests.fakes import FakeClock, ScriptedModel
from tests.remembering import summary_of, wants_summary
from tests.world import World, built

LIMIT = 1_000
"""In words, which are what these tests count: a request may have 800, and a fold aims at 500."""


@dataclass
class RememberingModel(ScriptedModel):
    """Replies to the talk as scripted, and writes summaries that keep every word with an exclamation mark.

    ``failure`` is raised instead of a summary, ``gate`` waited for before one; ``asked`` is set at the request.
    """

    failure: ModelError | None = None
    gate: asyncio.Event | None = None
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if not wants_summary(request.messages[0].content):
            async for event in super().stream(request):
                yield event
            return
        self.requests.append(request)
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        yield TextDelta(summary_of(request.messages[1].content))
        yield ReplyEnd("stop")


@dataclass
class Talk:
    """A world whose persona has a small limit, and what was asked of its model."""

    world: World
    model: RememberingModel

    async def say(self, *facts: str, words: int = 100) -> list[str]:
        """Say a fact for each turn, in about so many words with the reply; return what was said beside."""
        notices: list[str] = []
        for fact in facts:
            self.model.say(" ".join(["so", *["w"] * (words // 2)]))
            notices += await self.world.notices(" ".join([fact, *["w"] * (words // 2)]))
        return notices

    def continue_in_another_process(self, tell: Callable[[str], None] | None = None) -> Folding:
        """Fold from now on as a process does that has just begun: with ``tell`` as a chat, also in the background."""
        services = self.world.services
        folds = Folding(services.context, services.folding.summarizer, tell)
        self.world.services = replace(services, conversation=replace(services.conversation, folds=folds))
        return folds

    def summaries(self) -> list[str]:
        """Return what the summariser was given, request by request."""
        return [
            request.messages[1].content for request in self.model.requests if wants_summary(request.messages[0].content)
        ]

    def last_request(self) -> str:
        """Return everything that the model was sent last, for the talk."""
        request = next(each for each in reversed(self.model.requests) if not wants_summary(each.messages[0].content))
        return "\n".join(message.content for message in request.messages)

    async def folds(self) -> list[Operation]:
        operations = await self.world.store.read(operation_rows.all_of, "chorus", 1)
        return [operation for operation in operations if isinstance(operation.act, Fold)]

    async def summary(self) -> str:
        """Return the summary that would be sent now, empty if there is none."""
        view = await self.world.view()
        return view.summary.content if view.summary else ""


async def long_talk(folder: Path, store: Store, clock: FakeClock) -> Talk:
    """Build one in which nothing was said yet."""
    model = RememberingModel()
    world = await built(folder, store, clock, model, limit_tokens=LIMIT)
    world.configure('{"system_prompt": "Short."}')
    return Talk(world, model)


def facts(number: int, start: int = 0) -> list[str]:
    return [f"f{each}!" for each in range(start, start + number)]
