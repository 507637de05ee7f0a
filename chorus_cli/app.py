"""Builds everything once and closes it again: the only place that knows both the real world and the services.

What the prompt needs is built at the start; what answers is built when it is first asked for, by the thread that warms
up once the prompt is drawn or by whoever is faster.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import asynccontextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.adapters.machine.clock import SystemClock
from chorus_cli.adapters.machine.paths import Paths, paths, report_bug, shipped_personas
from chorus_cli.core.errors import ChorusError
from chorus_cli.core.models.choice import Naming
from chorus_cli.services.cancellation import run_to_completion
from chorus_cli.services.personas.focus import Focus
from chorus_cli.services.personas.personas import Personas
from chorus_cli.storage.files import file_lock, persona_files
from chorus_cli.storage.files.open_threads import OpenThreads
from chorus_cli.storage.sqlite.log import orphans
from chorus_cli.storage.sqlite.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from contextlib import AbstractContextManager

    from chorus_cli.adapters.models.model_map import ModelMap
    from chorus_cli.adapters.models.router import ModelRouter
    from chorus_cli.commands.framework.command_context import CommandContext
    from chorus_cli.services.context.context import Context
    from chorus_cli.services.folding.summarizer import Summarizer
    from chorus_cli.services.log.search import Search
    from chorus_cli.services.personas.models import KnownModels
    from chorus_cli.services.personas.roster import Roster
    from chorus_cli.services.sessions.sessions import Sessions
    from chorus_cli.services.turns.conversation import Conversation


_SETTLING_SECONDS = 2.0


class Options(NamedTuple):
    """What the outer command line chose: each stands over the environment and the files."""

    persona: str | None = None
    model: str | None = None
    home: str | None = None


class App:
    """A running Chorus.

    ``run`` names this process in the rows that it is writing. ``tell`` is set while the chat is open. ``alone`` is
    entered while an editor has the terminal.
    """

    def __init__(
        self,
        places: Paths,
        store: Store,
        environment: Mapping[str, str],
        options: Options,
        run: str,
        alone: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.paths = places
        self.store = store
        self.clock = SystemClock()
        self.personas = Personas(places.personas, places.config_file)
        naming = Naming(options.model, environment, self._ask_ollama)
        self.focus = Focus(self.personas, store, self.clock, naming, OpenThreads(places.run, run))
        self._environment = environment
        self.run = run
        self._alone = alone
        self._indexing: asyncio.Task[None] | None = None
        self.tell: Callable[[str], None] | None = None

    @cached_property
    def context(self) -> Context:
        """What is in context, counted by the real vocabulary."""
        from chorus_cli.adapters.models.limits import ModelLimits  # noqa: PLC0415
        from chorus_cli.adapters.models.token_counter import VocabularyCounter  # noqa: PLC0415
        from chorus_cli.services.context.context import Context  # noqa: PLC0415

        limits = ModelLimits(self._environment, self.model_map)
        return Context(self.store, VocabularyCounter(), limits.of_model, self.model_map.input_cost)

    @cached_property
    def model_map(self) -> ModelMap:
        """What litellm's files say of models."""
        from chorus_cli.adapters.models.model_map import ModelMap  # noqa: PLC0415

        return ModelMap()

    @cached_property
    def models(self) -> ModelRouter:
        """Whoever is asked, by the model's name."""
        from chorus_cli.adapters.models.litellm_client import LiteLLMClient  # noqa: PLC0415
        from chorus_cli.adapters.models.router import ElizaClient, ModelRouter  # noqa: PLC0415

        return ModelRouter(ElizaClient(self.clock), LiteLLMClient(self._environment, self.model_map))

    @cached_property
    def summarizer(self) -> Summarizer:
        """Whoever writes summaries."""
        from chorus_cli.services.folding.summarizer import Summarizer  # noqa: PLC0415

        return Summarizer(self.models, self.context)

    @cached_property
    def conversation(self) -> Conversation:
        """Whoever answers messages."""
        from chorus_cli.services.folding.folding import Folding  # noqa: PLC0415
        from chorus_cli.services.folding.making_room import MakingRoom  # noqa: PLC0415
        from chorus_cli.services.turns.conversation import Conversation  # noqa: PLC0415
        from chorus_cli.services.turns.reply import Answering, Outside  # noqa: PLC0415
        from chorus_cli.storage.files.durable_files import rescue  # noqa: PLC0415

        outside = Outside(
            self.models,
            self.clock,
            self.context.counter,
            rescue=lambda record: rescue(self.paths.rescue, self.clock.now(), record),
            is_alive=self.is_alive,
        )
        folding = Folding(self.context, self.summarizer, self.clock)
        return Conversation(
            self.context, Answering(self.store, outside), MakingRoom(folding, self.report_bug), self.run
        )

    @cached_property
    def commands(self) -> CommandContext:
        """The commands and the services behind them."""
        from chorus_cli.adapters.machine.clipboard import Clipboard  # noqa: PLC0415
        from chorus_cli.adapters.machine.editor import UserEditor  # noqa: PLC0415
        from chorus_cli.commands.catalogue import registry  # noqa: PLC0415
        from chorus_cli.commands.framework.command_context import CommandContext  # noqa: PLC0415
        from chorus_cli.services.context.window import ContextWindow  # noqa: PLC0415
        from chorus_cli.services.editing.context import ContextEditing  # noqa: PLC0415
        from chorus_cli.services.editing.drafts import Editing  # noqa: PLC0415
        from chorus_cli.services.log.export import Exporting  # noqa: PLC0415
        from chorus_cli.services.log.journal import Journal  # noqa: PLC0415
        from chorus_cli.services.personas.models import Models  # noqa: PLC0415
        from chorus_cli.services.personas.settings import PersonaSettings  # noqa: PLC0415

        settings = PersonaSettings(self.store, self.clock, self.personas)
        return CommandContext(
            registry=registry(),
            focus=self.focus,
            personas=self.personas,
            roster=self.roster,
            settings=settings,
            editing=Editing(UserEditor(self._environment, self._alone), self.paths.drafts, self.clock, self.run),
            context_editing=ContextEditing(self.context, self.clock, self.is_alive),
            models=Models(self._known_models(), self._environment),
            context=self.context,
            window=ContextWindow(settings, self.clock, self.focus, self.context),
            journal=Journal(self.context, self.clock, self.personas),
            conversation=self.conversation,
            folding=self.conversation.room.folding,
            sessions=self.sessions,
            search=self.search,
            exporting=Exporting(self.context, self.clock),
            copy=Clipboard(self._environment, sys.stdout).copy,
            tell=self._say,
            clock=self.clock,
        )

    @cached_property
    def sessions(self) -> Sessions:
        """What was saved of contexts, and what saves it."""
        from chorus_cli.services.sessions.saving import SessionSaving  # noqa: PLC0415
        from chorus_cli.services.sessions.sessions import Sessions  # noqa: PLC0415

        saving = SessionSaving(self.personas.folder, self.clock, self.context, self.summarizer)
        return Sessions(self.store, self.clock, self.personas, self.focus, saving)

    @cached_property
    def search(self) -> Search:
        """What looks for words in the log."""
        from chorus_cli.services.log.search import Search  # noqa: PLC0415

        return Search(self.store, self.clock)

    def _say(self, text: str) -> None:
        """Say something while a command is being carried out, if the chat is open: nobody else reads along."""
        if self.tell is not None:
            self.tell(text)

    @cached_property
    def roster(self) -> Roster:
        """Who there is to talk to."""
        from chorus_cli.services.personas.roster import Roster  # noqa: PLC0415

        return Roster(self.store, self.clock, self.personas, self.paths.backups / "deleted")

    def _known_models(self) -> KnownModels:
        from chorus_cli.adapters.models import ollama  # noqa: PLC0415
        from chorus_cli.services.personas.models import KnownModels  # noqa: PLC0415

        known = self.model_map
        return KnownModels(
            known.names, known.providers, lambda: ollama.models(self._environment), known.conversation_names
        )

    def _ask_ollama(self) -> str | None:
        # Only those need it who name no model anywhere.
        from chorus_cli.adapters.models.ollama import most_recent_model  # noqa: PLC0415

        return most_recent_model(self._environment)

    def is_alive(self, run: str) -> bool:
        """Whether the process that writes replies under the name ``run`` still lives."""
        return file_lock.is_locked(self.paths.run / run)

    def warm_up(self) -> None:
        """Load in the background what the first message will need, so that it does not wait."""
        threading.Thread(target=self._load, name="warm-up", daemon=True).start()
        self._indexing = asyncio.create_task(self._keep_index())

    async def close(self) -> None:
        """Stop what goes on in the background."""
        if "conversation" in vars(self):
            await self.conversation.room.close()
        if self._indexing is not None:
            self._indexing.cancel()
            # A second signal must not close the store under it.
            await run_to_completion(asyncio.wait({self._indexing}))

    def report_bug(self, error: Exception) -> str:
        """Keep a traceback, and return the sentence that says where."""
        return report_bug(self.paths.log_file, error, self._environment)

    async def _keep_index(self) -> None:
        try:
            # Whoever has just come wants to type; the index can wait.
            await asyncio.sleep(_SETTLING_SECONDS)
            await self.search.keep_up()
        except Exception as error:  # noqa: BLE001 - nobody waits for it, and every search brings the index up to date
            self.report_bug(error)

    def _load(self) -> None:
        from chorus_cli.preparation import prepare  # noqa: PLC0415

        try:
            prepare(self)
        except (ChorusError, OSError, ImportError):
            # Whatever is missing or broken is told to whoever comes to need it.
            return
        except Exception as error:  # noqa: BLE001 - nobody waits for this thread, and its traceback is no part of the talk
            self.report_bug(error)


@asynccontextmanager
async def opened(
    options: Options, environment: Mapping[str, str], alone: Callable[[], AbstractContextManager[None]] = nullcontext
) -> AsyncGenerator[App, None]:
    """Open the user's data and yield the app; close it again however the run ends.

    ``alone`` is entered while an editor has the terminal.

    Raises:
        HomeError: the folders cannot be made or written.
        StorageError: the database cannot be opened.
        UnknownPersonaError: nobody is called what was asked for.
    """
    places = paths(environment, options.home)
    places.make()
    persona_files.install(shipped_personas(), places.personas)
    run = f"{os.getpid()}-{os.urandom(4).hex()}"
    store = Store(places.database)
    with file_lock.hold(places.run / run):
        try:
            await store.open()
            app = App(places, store, environment, options, run, alone)
            await store.write(orphans.mend, app.is_alive, app.clock.now())
            await app.focus.open(options.persona)
            try:
                yield app
            finally:
                await app.close()
        finally:
            await store.close()
            (places.run / run).unlink(missing_ok=True)
