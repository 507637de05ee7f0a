"""Opens the user's data and closes it again, however the run ends.

The parts that the prompt needs are built at the start. The services are built when they are first asked for: by the
first command, or by a thread that begins once the prompt is drawn. A message of `chorus ask` needs only `App.turns`.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.context.service.current import Current
from chorus_cli.core.errors import ChorusError, DatabaseDamagedError, DatabaseFullError, PersonaError
from chorus_cli.core.time.timeline import MAXIMUM_CONTEXT_HOURS
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rows import thread_rows
from chorus_cli.machine.bug_report import report_bug
from chorus_cli.machine.clock import SystemClock
from chorus_cli.machine.notifier import Notifier, run_to_completion
from chorus_cli.machine.paths import Paths, made_private, paths
from chorus_cli.models.rules.choice import ELIZA, Naming
from chorus_cli.run_storage import RunStorage, chosen_log, forgotten, is_restoring, kept
from chorus_cli.storage import meta_rows
from chorus_cli.storage.files import UNSENT_DRAFTS
from chorus_cli.terminal.screen.output import standard_error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
    from types import ModuleType

    from chorus_cli.composition import Providers, Turns
    from chorus_cli.context.files.project import Project
    from chorus_cli.log.rows.interrupted_replies import BrokenOff
    from chorus_cli.log.rules.threads import Exchange
    from chorus_cli.services import Services

_SETTLING_SECONDS = 2.0


class Options(NamedTuple):
    """Options of the command line, which override the environment and the files. If ``is_private``, nothing is kept."""

    persona: str | None = None
    model: str | None = None
    home: str | None = None
    is_private: bool = False
    log: str | None = None


class Frontend(NamedTuple):
    """``alone`` is entered while an editor has the terminal; ``is_chat`` is true at a prompt, false for one command."""

    alone: Callable[[], AbstractContextManager[None]] = nullcontext
    is_chat: bool = False


_ONE_SHOT = Frontend()


class App:
    """A running Chorus, which stores things where its ``storage`` says."""

    def __init__(
        self, paths: Paths, storage: RunStorage, environment: Mapping[str, str], model: str | None, frontend: Frontend
    ) -> None:
        self.paths = paths
        self.storage = storage
        self.store = storage.store
        self.clock = SystemClock()
        self.notifier = Notifier()
        self.personas = storage.personas
        naming = Naming(model, environment, self._ask_ollama)
        self.current = Current(self.personas, self.store, self.clock, naming, storage.open_threads)
        # Libraries set more variables later, which the user's commands and editor must not get.
        self._environment = dict(environment)
        self._frontend = frontend
        self._composing = threading.RLock()
        self._turns: Turns | None = None
        self._services: Services | None = None
        self._settling: asyncio.Task[None] | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._backing_up: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self.is_typing: Callable[[], bool] = lambda: False

    def services(self) -> Services:
        """Return the services; the first call, in any thread, composes them."""
        with self._composing:
            if self._services is None:
                from chorus_cli.command_composition import compose, tools_of_machine

                is_private, is_chat = self.storage.is_private, self._frontend.is_chat
                user_tools = tools_of_machine(self._environment, self._frontend.alone, is_private=is_private)
                self._services = compose(self.turns(), user_tools, is_chat=is_chat)
            return self._services

    def turns(self) -> Turns:
        """Return the services that answer messages; the first call, in any thread, composes them."""
        with self._composing:
            if self._turns is None:
                self._turns = self._compose_turns()
            return self._turns

    @property
    def arrives_late(self) -> bool:
        """Whether the prompt is drawn before the last used thread is entered, so that no server delays the prompt."""
        return self._frontend.is_chat and bool(self.store.server)

    async def arrive(self) -> None:
        """Mark the replies that broke off, and enter the last used thread."""
        # A full disk can still be read, and the next turn marks the interrupted replies.
        with suppress(DatabaseFullError):
            if await self.store.read(thread_rows.writers):
                from chorus_cli.log.rows import interrupted_replies

                await self.store.write(interrupted_replies.mark_interrupted, self.storage.is_alive, self.clock.now())
        await self.current.arrive()

    async def arrive_late(self) -> tuple[BrokenOff, ...]:
        """Arrive, and return the replies that broke off."""
        await self.arrive()
        return await self.take_broken_off()

    async def take_broken_off(self) -> tuple[BrokenOff, ...]:
        """Return replies that broke off because their process ended; each is returned only once, to one process."""
        # The greeting reports a damaged database, the first message a full disk.
        with suppress(DatabaseDamagedError, DatabaseFullError):
            if await self.store.read(meta_rows.value, meta_rows.BROKEN_OFF_THREADS) is not None:
                from chorus_cli.log.rows import interrupted_replies

                since = cutoff(self.clock.now(), MAXIMUM_CONTEXT_HOURS)
                return await self.store.write(interrupted_replies.take_broken_off, since)
        return ()

    def elsewhere(self) -> AsyncGenerator[Exchange | str, None] | None:
        """Return what other processes say and do in the thread in focus; ``None`` if the log is on this machine."""
        if self.storage.notifications is None:
            return None
        from chorus_cli.threads.service.elsewhere import Elsewhere

        return Elsewhere(self.store, self.current, self.storage.run, self.storage.notifications).heard()

    def warm_client(self, model: str) -> None:
        """Import in the background all that a request to ``model`` needs."""
        threading.Thread(target=self._warm, args=(model,), name="warm-client", daemon=True).start()

    def warm_up(self) -> None:
        """Load in the background everything that the first message needs, and later the parts that can wait."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._load, args=(loop,), name="warm-up", daemon=True).start()
        self._settling = asyncio.create_task(self._settle())

    def connect(self) -> None:
        """Connect to the model's and the tools' servers in the background, so that the next message need not wait."""
        if self._turns is None:
            return
        self.connect_tools()
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.create_task(self._connect(self._turns.providers))

    def connect_tools(self) -> None:
        """Begin to connect to the tool servers of the persona in focus, unless its model takes no tools."""
        # A persona that cannot be read is reported with the first message.
        with suppress(PersonaError):
            target, servers = self.current.target(), self.turns().opened.servers
            if target.persona.settings.tools and target.choice.model != ELIZA:
                servers.connecting(target.persona.slug)

    async def break_off(self) -> list[str]:
        """Stop the running replies and jobs, and return a line about each; a second call finds none."""
        if self._services is None:
            return []
        told, is_hurried = await run_to_completion(self._services.replies.close())
        lines, is_stopped = await run_to_completion(self._services.jobs.close())
        if is_hurried or is_stopped:
            raise asyncio.CancelledError
        # Lines about replies say how much is kept, and a private chat keeps nothing.
        return lines if self.storage.is_private else [*told, *lines]

    async def close(self) -> None:
        """Stop the work in the background."""
        try:
            await self.break_off()
        finally:
            # A second signal must not close the store while these tasks still use it.
            await run_to_completion(self._end_tasks())

    async def _end_tasks(self) -> None:
        if self._services is not None:
            await self._services.idle_timer.close()
        for task in filter(None, (self._settling, self._connecting, self._backing_up, self._reading)):
            task.cancel()
            await asyncio.wait({task})
        if self._turns is not None:
            await self._turns.opened.servers.close()
            await self._turns.conversation.folds.close()
            await self._turns.providers.aclose()

    def rescue(self, record: Mapping[str, str]) -> Path | None:
        """Write a record to a file if the database refused it; return the file, or ``None`` if that failed too."""
        return self.storage.rescue(self.clock.now(), record)

    def report_bug(self, error: Exception) -> str:
        """Keep a traceback, unless the run is private, and return a sentence for the user."""
        return report_bug(self.storage.bugs, error, self._environment)

    def _compose_turns(self) -> Turns:
        from chorus_cli.attachments.files.attachments import AttachmentFolder, AttachmentMemory
        from chorus_cli.composition import Opened, all_providers, compose_turns, server_connections, server_tools
        from chorus_cli.machine.shell import UserShell

        attachments = AttachmentFolder(self.storage.attachments) if self.storage.attachments else AttachmentMemory()
        connect = partial(server_connections, self.storage, self._environment)
        tell = self.notifier.progress if self._frontend.is_chat else None
        opened = Opened(
            self.paths,
            self.storage,
            self.current,
            self.notifier,
            self.clock,
            self.rescue,
            self.report_bug,
            UserShell(self._environment),
            attachments,
            server_tools(self.storage, self.clock, self._environment, connect, attachments, tell=tell),
            self._project(),
        )
        providers = all_providers(self._environment, self.clock, attachments.read)
        return compose_turns(opened, providers, folds_in_background=self._frontend.is_chat)

    def _project(self) -> Project:
        """Return the current folder's ``AGENTS.md``, but only in a chat, which can ask the user whether to send it."""
        from chorus_cli.context.files.project import Project

        with suppress(OSError):
            if self._frontend.is_chat:
                return Project(Path.cwd(), None if self.storage.is_private else self.paths.projects)
        return Project()

    def _ask_ollama(self) -> str | None:
        from chorus_cli.models.providers import servers

        return servers.most_recent_model(self._environment)

    async def _settle(self) -> None:
        with self._unawaited():
            # This work must not delay the first keys or the first message.
            await asyncio.sleep(_SETTLING_SECONDS)
            services = await asyncio.to_thread(self.services)
            # The command that needs the vocabulary or the names reports the failure.
            with suppress(ChorusError):
                await asyncio.to_thread(lambda: _startup().load_the_rest(services))
            if self.storage.obstacle:
                await services.idle_timer.close()
            elif not self.storage.is_private:
                self._backing_up = asyncio.create_task(self._back_up(services))
                self._reading = asyncio.create_task(self._read_for_meaning(services))
            await services.search.keep_up()

    async def _read_for_meaning(self, services: Services) -> None:
        with self._unawaited():
            await services.search.meaning.keep_up(lambda: not (services.replies.running or self.is_typing()))

    async def _back_up(self, services: Services) -> None:
        from chorus_cli.stores.service.log_copies import complete_sessions

        with self._unawaited():
            with suppress(ChorusError):
                await complete_sessions(self.store, self.paths.personas)
            for sentence in (*await services.rescued.notices(), await services.backups.make_daily()):
                if sentence:
                    self.notifier.aside(sentence)

    @contextmanager
    def _unawaited(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - nothing awaits this work, and a traceback must not disturb the chat
            self.report_bug(error)

    def _warm(self, model: str) -> None:
        # The request reports the same failure.
        with suppress(Exception):
            self.turns().providers.warm(model)

    async def _connect(self, providers: Providers) -> None:
        # The request reports the same failure.
        with self._unawaited(), suppress(ChorusError):
            await providers.connect(self.current.target().choice.model)

    def _load(self, loop: asyncio.AbstractEventLoop) -> None:
        # The command or message that needs the failed part reports the failure.
        with self._unawaited(), suppress(ChorusError, OSError, ImportError):
            startup = _startup()
            startup.prepare(services := self.services())
            if not self.storage.is_private:
                startup.clear_up(self.paths, services, self.storage.is_alive_here)
            # The loop may be closed by now.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self.connect)


def _read_only_notice(app: App) -> str:
    """Return a sentence about a home that can only be read; empty if Chorus can write there."""
    told = (
        f"{app.storage.obstacle}: Chorus can read your data but store nothing, so it refuses messages. "
        "chorus doctor says what to do; then start Chorus again."
    )
    return told if app.storage.obstacle else ""


def _startup() -> ModuleType:
    """Import and return `startup`, which most runs need only after the prompt is drawn, or never."""
    from chorus_cli import startup

    return startup


def _kept(places: Paths, url: str) -> AbstractContextManager[RunStorage]:
    if not places.obstacle:
        places.make()
        if is_restoring(places):
            _startup().finish_restore(places)
    return kept(places, url)


@asynccontextmanager
async def opened(
    options: Options, environment: Mapping[str, str], frontend: Frontend = _ONE_SHOT
) -> AsyncGenerator[App, None]:
    """Open the user's data and yield the app; close it again however the run ends."""
    places = paths(environment, options.home)
    url = "" if options.is_private else chosen_log(places, environment, options.log)
    with forgotten(places, environment) if options.is_private else _kept(places, url) as storage:
        app = App(places, storage, environment, options.model, frontend)
        try:
            await app.store.open()
            # The opened database proves that the folder belongs to Chorus.
            if not storage.is_private and (told := _read_only_notice(app) or made_private(places)):
                standard_error().notice(told)
            # A folder that cannot be read must not prevent the chat.
            with suppress(DatabaseFullError, OSError):
                if not (storage.is_private or storage.obstacle) and any(places.drafts.glob(UNSENT_DRAFTS)):
                    await _startup().take_over_drafts(app.store, places, storage.is_alive_here)
            if await app.store.read(meta_rows.value, meta_rows.PURGE) is not None:
                for sentence in await _startup().finish_purge(app.services()):
                    standard_error().notice(sentence)
            await app.current.choose(options.persona)
            if not app.arrives_late:
                await app.arrive()
            if app.store.is_read_only:
                await app.store.seal()
            try:
                yield app
            finally:
                await app.close()
        finally:
            await app.store.close()
