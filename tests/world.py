"""A whole Chorus but for the outside world: real files and a real database, a scripted model and a clock to set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from chorus_cli.attachments.files.attachments import AttachmentFolder
from chorus_cli.command_composition import UserTools, compose
from chorus_cli.composition import Opened, Providers, compose_turns, server_tools
from chorus_cli.context.rules.view import View
from chorus_cli.context.service.context import Context
from chorus_cli.context.service.current import Current
from chorus_cli.context.service.journal import Journal
from chorus_cli.context.service.report import ContextWindow
from chorus_cli.core.errors import ChorusError
from chorus_cli.framework.command_line import resolve
from chorus_cli.framework.replies import Question, Reply, Report, Text, plain
from chorus_cli.log.rows import message_rows, thread_rows
from chorus_cli.log.rules.messages import Message, Status
from chorus_cli.machine.notifier import Notifier
from chorus_cli.machine.paths import Paths
from chorus_cli.machine.ports import TokenCounter
from chorus_cli.mcp.connections import Connections
from chorus_cli.models.rules.budget import Limit
from chorus_cli.models.rules.choice import Naming
from chorus_cli.models.rules.events import Notice, TextDelta, TurnDone, TurnEvent
from chorus_cli.personas.rules.persona import Target
from chorus_cli.personas.service.models import KnownModels, Models
from chorus_cli.personas.service.persona_admin import PersonaAdmin
from chorus_cli.personas.service.personas import Personas
from chorus_cli.recall.service import Search
from chorus_cli.run_storage import RunStorage, on_disk
from chorus_cli.services import Services
from chorus_cli.sessions.service.sessions import Sessions
from chorus_cli.storage.port import Engine
from chorus_cli.storage.store import Store, opened_store
from chorus_cli.threads.service.threads import Threads
from chorus_cli.tools.service import BuiltIn
from chorus_cli.turns.service.conversation import Conversation
from tests.attached_files import png
from tests.fakes import FakeClock, ScriptedEditor, ScriptedModel, ScriptedShell, WordCounter
from tests.mcp.scripted_servers import ScriptedServers

MODEL = "openai/test"
KNOWN_MODELS = KnownModels(
    lambda: frozenset({"gpt-5.4-mini", "openai/gpt-5.4-mini", "anthropic/claude-sonnet-5"}),
    lambda: frozenset({"openai", "anthropic", "ollama_chat"}),
    lambda: ("ollama_chat/llama3.2:latest",),
    lambda: frozenset({"openai/gpt-5.4-mini", "anthropic/claude-sonnet-5"}),
)


@dataclass
class World:
    """The services, and short ways to use them. ``kept`` holds what the machine was given."""

    folder: Path
    store: Store
    clock: FakeClock
    model: ScriptedModel
    editor: ScriptedEditor
    services: Services
    kept: Kept
    shell: ScriptedShell

    @property
    def rescued(self) -> list[Mapping[str, str]]:
        return self.kept.rescued

    @property
    def copied(self) -> list[str]:
        return self.kept.copied

    async def say(self, text: str) -> TurnDone:
        *_, done = [event async for event in self.conversation.answer(self.current.target(), text)]
        assert isinstance(done, TurnDone)
        return done

    async def notices(self, text: str) -> list[str]:
        """Send a message and return what was said beside the reply."""
        events = [event async for event in self.conversation.answer(self.current.target(), text)]
        told = [event.text for event in events if isinstance(event, Notice)]
        return [*told, *(event.remembered for event in events if isinstance(event, TurnDone) and event.remembered)]

    async def seen(self) -> list[str]:
        return [message.content for message in (await self.view()).messages]

    async def view(self) -> View:
        return (await self.context.snapshot(self.current.target(), self.clock.now())).view

    async def log(self) -> list[Message]:
        return await self.store.read(message_rows.history, self.current.target().persona.slug, None, None, 0)

    async def log_row_with_status(self, position: int, status: Status, *, has_words: bool = False) -> Message:
        """Wait until the log has a row at ``position`` with that status, and with words if a checkpoint is to come."""
        for _ in range(5000):
            rows = await self.log()
            if len(rows) > position and rows[position].status is status and (rows[position].content or not has_words):
                return rows[position]
            await asyncio.sleep(0.001)
        raise AssertionError("no such row came")

    def asked(self, number: int = -1) -> list[tuple[str, str]]:
        """Return the messages of a request but for the system message."""
        return [(message.role, message.content) for message in self.model.requests[number].messages[1:]]

    @property
    def current(self) -> Current:
        return self.services.current

    @property
    def threads(self) -> Threads:
        return self.services.threads

    @property
    def personas(self) -> Personas:
        return self.services.personas

    @property
    def persona_admin(self) -> PersonaAdmin:
        return self.services.persona_admin

    @property
    def context(self) -> Context:
        return self.services.context

    @property
    def window(self) -> ContextWindow:
        return self.services.window

    @property
    def journal(self) -> Journal:
        return self.services.journal

    @property
    def search(self) -> Search:
        return self.services.search

    @property
    def conversation(self) -> Conversation:
        return self.services.conversation

    @property
    def sessions(self) -> Sessions:
        return self.services.sessions

    async def carry_out(self, line: str) -> Reply:
        """Carry out a command as it is typed, and return what it answers."""
        answer = await resolve(self.services.registry, line, self.clock.now()).run(self.services)
        assert isinstance(answer, Reply)
        return answer

    async def asked_back(self, line: str) -> Question:
        answer = await self.carry_out(line)
        assert isinstance(answer, Question)
        return answer

    async def told(self, line: str) -> str:
        """Carry out a command as it is typed, and return what the user reads: its answer or its refusal."""
        try:
            return plain(await self.carry_out(line))
        except ChorusError as error:
            return str(error)

    async def steps(self) -> list[str]:
        """Return what ``/undo list`` has, oldest first."""
        listed = await self.carry_out("/undo list")
        assert isinstance(listed, Report | Text)
        assert listed.data is not None
        rows = cast("list[dict[str, object]]", await listed.data())
        return [f"{row['what']}{', undone' if row['undone'] else ''}" for row in reversed(rows)]

    def configure(self, text: str, slug: str = "chorus") -> None:
        self.personas.settings_path(slug).write_text(text, encoding="utf-8")

    def settings_text(self, slug: str = "chorus") -> str:
        return self.personas.settings_path(slug).read_text(encoding="utf-8")


def unexpected(bug: Exception) -> str:
    raise AssertionError from bug


async def another_thread(world: World, title: str = "") -> Target:
    """Open another thread and return it as a target; the focus stays."""
    target = world.current.target()
    # Another persona's thread comes first, so that ids and numbers differ.
    await world.store.write(thread_rows.new, "frodo", "", world.clock.now())
    opened = await world.store.write(thread_rows.new, target.persona.slug, title, world.clock.now())
    return target._replace(thread_id=opened.id, thread_number=opened.number)


def of_run(conversation: Conversation, run: str) -> Conversation:
    """Return the conversation as another process has it."""
    return replace(conversation, opener=replace(conversation.opener, run=run))


async def words_come(events: AsyncIterator[TurnEvent]) -> None:
    while not isinstance(await anext(events), TextDelta):
        pass


@dataclass(frozen=True)
class Tools:
    """The tools that are offered, the servers of others, the bugs that they had, and the counter of all tokens."""

    offered: Sequence[BuiltIn] = ()
    servers: Connections = field(default_factory=lambda: ScriptedServers({}))
    bugs: list[Exception] = field(default_factory=list)
    counter: TokenCounter = field(default_factory=WordCounter)

    def report_bug(self, bug: Exception) -> str:
        """Keep a bug of a tool; anywhere else there must be none."""
        if not self.offered:
            return unexpected(bug)
        self.bugs.append(bug)
        return ""


@dataclass
class Kept:
    """Records and texts that the machine was given; it takes no records while ``is_full``."""

    folder: Path
    rescued: list[Mapping[str, str]] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    browsed: list[str] = field(default_factory=list)
    is_full: bool = False
    pictures: list[bytes] = field(default_factory=lambda: [png()])

    def rescue(self, record: Mapping[str, str]) -> Path | None:
        if self.is_full:
            return None
        self.rescued.append(record)
        return self.folder / "rescue.jsonl"

    def picture(self) -> bytes:
        return self.pictures[-1]

    def copy(self, text: str) -> str:
        self.copied.append(text)
        return "by a test"


async def built(
    folder: Path,
    store: Store | RunStorage,
    clock: FakeClock,
    model: ScriptedModel,
    limit_tokens: int,
    tools: Tools | None = None,
) -> World:
    """Build a world in ``folder``, with the one persona ``chorus`` if there is none."""
    tools = tools or Tools()
    # Its every model is the scripted one.
    providers = Providers(
        model,
        tools.counter,
        lambda _model: Limit(limit_tokens, "a test", is_assumed=model.has_assumed_limit, relative=model.relative),
        lambda _model: 0.001,
        Models(KNOWN_MODELS, {"OPENAI_API_KEY": "sk-invented"}),
        lambda _model: bool(tools.offered),
        tools.offered,
        lambda _model: model.accepted,
        lambda _model: model.echo,
    )
    return replace(await built_on(folder, store, clock, providers, tools), model=model)


@asynccontextmanager
async def world_on(log: Engine, folder: Path, clock: FakeClock) -> AsyncIterator[World]:
    """Build a world on a log, and close the log in the end."""
    async with opened_store(log) as store:
        yield await built(folder, store, clock, ScriptedModel(), 128_000)


def _is_alive(run: str) -> bool:
    return run != "dead"


async def built_on(
    folder: Path,
    store: Store | RunStorage,
    clock: FakeClock,
    providers: Providers,
    tools: Tools,
    model: str | None = MODEL,
) -> World:
    """Build a world that asks any providers: for ``model``, or for that of the settings."""
    paths = Paths(folder, folder, folder)
    (paths.personas / "chorus").mkdir(parents=True, exist_ok=True)
    paths.run.mkdir(parents=True, exist_ok=True)
    if isinstance(store, Store):
        store = on_disk(paths, "this-run")._replace(store=store, is_alive=_is_alive, is_alive_here=_is_alive)
    storage, store = store, store.store
    current = Current(storage.personas, store, clock, Naming(model, {}, lambda: None), storage.open_threads)
    kept, editor, shell = Kept(folder), ScriptedEditor(clock), ScriptedShell()
    attachments, notifier = AttachmentFolder(paths.attachments), Notifier()
    turns = compose_turns(
        Opened(
            *(paths, storage, current, notifier, clock, kept.rescue, tools.report_bug, shell),
            attachments,
            server_tools(storage, clock, {}, lambda: tools.servers, attachments, tell=notifier.progress),
        ),
        providers,
        folds_in_background=False,
    )
    services = compose(turns, UserTools(editor, kept.copy, kept.picture, kept.browsed.append))
    if type(clock) is FakeClock:
        # Its sleepers wake at once, so that half an hour of silence could end between two lines of a test.
        await services.idle_timer.close()
    await current.choose(None)
    await current.arrive()
    return World(folder, store, clock, ScriptedModel(), editor, services, kept, shell)
