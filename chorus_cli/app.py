"""Builds everything once, in order, and closes it again: the only place that knows the real world and the services."""

from __future__ import annotations

import os
import threading
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.adapters.eliza_client import ElizaClient
from chorus_cli.adapters.litellm_client import LiteLLMClient
from chorus_cli.adapters.model_limits import ModelMap, context_limit
from chorus_cli.adapters.model_router import ModelRouter
from chorus_cli.adapters.paths import Paths, paths, shipped_personas
from chorus_cli.adapters.system_clock import SystemClock
from chorus_cli.adapters.token_counter import VocabularyCounter
from chorus_cli.commands.catalogue import registry
from chorus_cli.commands.command_context import CommandContext
from chorus_cli.core.model_choice import ELIZA
from chorus_cli.services.context import Context
from chorus_cli.services.context_window import ContextWindow
from chorus_cli.services.conversation import Conversation, Outside
from chorus_cli.services.focus import Focus
from chorus_cli.services.journal import Journal
from chorus_cli.services.personas import Personas
from chorus_cli.storage import atomic_file, file_lock, message_log, persona_files
from chorus_cli.storage.database import Store
from chorus_cli.storage.rescue import rescue

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from chorus_cli.ports import Clock


@dataclass(frozen=True, slots=True)
class Options:
    """What the outer command line chose: each stands over the environment and the files."""

    persona: str | None = None
    model: str | None = None
    home: str | None = None


@dataclass(frozen=True, slots=True)
class App:
    """A running Chorus."""

    paths: Paths
    clock: Clock
    store: Store
    focus: Focus
    context: Context
    conversation: Conversation
    commands: CommandContext

    def warm_up(self) -> None:
        """Load in the background what the first message will need, so that it does not wait."""
        threading.Thread(target=self._load, name="warm-up", daemon=True).start()

    def _load(self) -> None:
        self.context.counter.count("warm")
        place = self.focus.place()
        if place.choice.model != ELIZA:
            # Two seconds of import that only those wait for who talk to a provider.
            from chorus_cli.adapters.litellm_library import warm  # noqa: PLC0415

            warm()
        # What a crash may have left behind; nothing depends on it.
        file_lock.sweep(self.paths.run)
        atomic_file.sweep_stale(self.paths.personas / place.persona.slug)


@asynccontextmanager
async def opened(options: Options, environment: Mapping[str, str]) -> AsyncGenerator[App, None]:
    """Open the user's data and yield the app; close it again however the run ends.

    Raises:
        HomeError: the folders cannot be made or written.
        StorageError: the database cannot be opened.
        UnknownPersonaError: nobody is called what was asked for.
    """
    places = paths(environment, options.home)
    places.make()
    persona_files.install(shipped_personas(), places.personas)
    places.run.mkdir(mode=0o700, parents=True, exist_ok=True)
    run = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    store = Store(places.database)
    with file_lock.hold(places.run / run):
        try:
            await store.open()
            await store.write(message_log.interrupt_orphans, lambda other: file_lock.is_locked(places.run / other))
            app = _built(places, store, environment, options, run)
            await app.focus.open(options.persona)
            yield app
        finally:
            await store.close()
            (places.run / run).unlink(missing_ok=True)


def _built(places: Paths, store: Store, environment: Mapping[str, str], options: Options, run: str) -> App:
    clock = SystemClock()
    counter = VocabularyCounter()
    personas = Personas(places.personas, places.config_file)
    focus = Focus(personas, store, clock, environment, options.model)
    model_map = ModelMap()
    context = Context(store, counter, lambda model: context_limit(model, environment, model_map))
    window = ContextWindow(store, clock, personas, focus, context)
    models = ModelRouter(ElizaClient(clock), LiteLLMClient(environment))
    outside = Outside(models, clock, counter, lambda record: rescue(places.rescue, clock.now(), record))
    return App(
        paths=places,
        clock=clock,
        store=store,
        focus=focus,
        context=context,
        conversation=Conversation(store, context, outside, run),
        commands=CommandContext(registry(), focus, personas, context, window, Journal(store, clock, window), clock),
    )
