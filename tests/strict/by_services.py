"""Plays a story through the services, over the real clients."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chorus_cli.composition import Providers
from chorus_cli.log.rules.messages import Status
from chorus_cli.models.rules.budget import Limit
from chorus_cli.models.rules.events import Notice, ReasoningDelta, TextDelta, ToolStarted, TurnDone, TurnEvent
from chorus_cli.personas.service.models import Models
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, WordCounter
from tests.models.providers.asked_models import over_wire
from tests.strict.providers import PROVIDERS, Strict
from tests.strict.server import Held, StrictServer, serving
from tests.strict.story import Actor
from tests.turns.service.tool_talk import TOOLS
from tests.world import KNOWN_MODELS, Tools, World, built_on

_LOOK_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a story is played: a folder, a log, a clock, what there is in the environment, and the models' limit."""

    folder: Path
    store: Store
    clock: FakeClock
    environment: Mapping[str, str] = field(default_factory=dict)
    limit_tokens: int = 100_000

    @asynccontextmanager
    async def players(self, *names: str) -> AsyncIterator[tuple[ByServices, list[Actor]]]:
        """Serve the strict providers of these names, and yield a player who talks to the first of them."""
        async with AsyncExitStack() as stack:
            servers = [stack.enter_context(serving(StrictServer(name, PROVIDERS[name].protocol))) for name in names]
            actors = [Actor(PROVIDERS[name], server) for name, server in zip(names, servers, strict=True)]
            for server in servers:
                server.others = [each for each in servers if each is not server]
            addresses = [each.strict.environment(each.server.address) for each in actors]
            environment = {name: value for each in (self.environment, *addresses) for name, value in each.items()}
            providers = self._providers(environment, frozenset(each.strict.model for each in actors))
            stack.push_async_callback(providers.aclose)
            yield ByServices(await self._world(providers, actors[0].strict), providers, environment), actors

    async def _world(self, providers: Providers, strict: Strict) -> World:
        settings = self.folder / "personas" / "chorus" / "system.jsonc"
        settings.parent.mkdir(parents=True)
        chosen = {"model": strict.model} | ({"effort": strict.effort} if strict.effort else {})
        settings.write_text(json.dumps(chosen))
        return await built_on(self.folder, self.store, self.clock, providers, Tools(), None)

    def _providers(self, environment: Mapping[str, str], models: frozenset[str]) -> Providers:
        """Return the real clients, for models that all take tools."""
        router = over_wire(environment)
        return Providers(
            router,
            WordCounter(),
            lambda _model: Limit(self.limit_tokens, "a test"),
            lambda _model: None,
            Models(KNOWN_MODELS._replace(names=lambda: models), environment),
            lambda _model: True,
            TOOLS,
            echo_of=router.echo,
            aclose=router.aclose,
        )


@dataclass(slots=True)
class ByServices:
    """The player; ``notices`` are all that was said beside the replies."""

    world: World
    providers: Providers
    environment: Mapping[str, str]
    notices: list[str] = field(default_factory=list)

    async def say(self, text: str, answer: str) -> None:
        await self._follow(self.world.conversation.answer(self.world.current.target(), text), answer)

    async def failure(self, text: str) -> str:
        """Send a message, and return why it was not answered."""
        done = await self.world.say(text)
        assert done.status is Status.FAILED
        return str(done.error)

    async def retry(self, answer: str, model: str | None = None) -> None:
        target = self.world.current.target()
        if model is not None:
            target = target._replace(choice=target.choice._replace(model=model))
        await self._follow(self.world.conversation.retry(target), answer)

    async def stop(self, text: str, actor: Actor, held: Held) -> None:
        asked, awaited = len(actor.server.asked), TextDelta if held is Held.SPEAKING else ReasoningDelta
        is_silent = held is Held.THINKING and not actor.strict.shows
        turn, seen = self._heard(text, lambda event: isinstance(event, awaited))
        while not (len(actor.server.asked) > asked if is_silent else seen.is_set()):
            assert not turn.done()
            await asyncio.sleep(_LOOK_SECONDS)
        await stopped(turn)
        assert (await self.world.log())[-1].status is Status.INTERRUPTED

    async def stop_at_work(self, text: str) -> None:
        turn, seen = self._heard(text, lambda each: isinstance(each, ToolStarted) and each.call.startswith("endless"))
        await seen.wait()
        await asyncio.sleep(_LOOK_SECONDS)
        await stopped(turn)

    def slow_call(self) -> tuple[str, dict[str, object]]:
        return "endless", {}

    async def command(self, line: str, told: str) -> str:
        answer = await self.world.told(line)
        assert told in answer
        return answer[answer.index(told) :]

    async def edit(self, script: str) -> None:
        def change(path: Path) -> None:
            subprocess.run(["sh", "-c", script], env={**os.environ, "file": str(path)}, check=True)

        self.world.editor.enqueue(change)
        await self.command("/context edit", "Context edited")

    async def restart(self) -> None:
        before = self.world
        self.world = await built_on(before.folder, before.store, before.clock, self.providers, Tools(), None)

    def _heard(self, text: str, is_awaited: Callable[[TurnEvent], bool]) -> tuple[asyncio.Task[None], asyncio.Event]:
        """Send a message; return the turn, and what its awaited event sets."""
        heard = asyncio.Event()

        async def listen() -> None:
            async with aclosing(self.world.conversation.answer(self.world.current.target(), text)) as events:
                async for event in events:
                    if is_awaited(event):
                        heard.set()

        return asyncio.create_task(listen()), heard

    async def _follow(self, events: AsyncGenerator[TurnEvent, None], answer: str) -> None:
        said: list[str] = []
        async with aclosing(events) as following:
            async for event in following:
                match event:
                    case TextDelta(text):
                        said.append(text)
                    case ToolStarted():
                        said.clear()
                    case Notice(text):
                        self.notices.append(text)
                    case TurnDone():
                        assert event.error is None, str(event.error)
                        assert event.status is Status.COMPLETE
        assert "".join(said) == answer


async def stopped(turn: asyncio.Task[None]) -> None:
    turn.cancel()
    await asyncio.wait({turn})
    assert turn.cancelled()
