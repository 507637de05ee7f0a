"""Composes the services that answer messages; `chorus ask` needs no others. The import is slow, so it comes late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.attachments.service.attachments import Attachments, SharedFiles
from chorus_cli.context.files.project import Project
from chorus_cli.context.service.context import Context
from chorus_cli.context.service.current import Current
from chorus_cli.jobs.service import Jobs
from chorus_cli.log.rules.attachments import ALL_SENT, Kind
from chorus_cli.machine.bug_report import note_line
from chorus_cli.machine.notifier import Notifier
from chorus_cli.machine.paths import Paths
from chorus_cli.machine.ports import AttachmentStore, Clock, TokenCounter
from chorus_cli.machine.shell import UserShell
from chorus_cli.mcp.rules import configuration
from chorus_cli.mcp.rules.permissions import lasting
from chorus_cli.mcp.service import Configured, Rights, ServerTexts, ServerTools
from chorus_cli.mcp.toolbox import Toolbox
from chorus_cli.meaning.embedding import Embedder
from chorus_cli.meaning.service import Meaning
from chorus_cli.memory.service.memory import Memory
from chorus_cli.models.litellm.client import LiteLLMClient
from chorus_cli.models.local.client import LocalClient, LocalFiles
from chorus_cli.models.providers import servers
from chorus_cli.models.providers.chat_messages import accepted_kinds, not_stored, takes_tools
from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.providers.servers import ModelLimits
from chorus_cli.models.providers.token_counter import VocabularyCounter
from chorus_cli.models.router import ElizaClient, ModelRouter
from chorus_cli.models.rules.budget import Limit
from chorus_cli.models.rules.costs import Prices
from chorus_cli.models.rules.events import ModelClient
from chorus_cli.models.rules.request import NO_ECHO, Echo
from chorus_cli.models.service.costs import Costs
from chorus_cli.models.wire.client import WireClient
from chorus_cli.personas.rows import change_entry
from chorus_cli.personas.service.models import KnownModels, Models
from chorus_cli.recall.service import Search
from chorus_cli.run_storage import RunStorage
from chorus_cli.settings.rules.table import ALLOWED
from chorus_cli.tools.service import BUILT_IN, BuiltIn, ToolServices
from chorus_cli.turns.service.conversation import Conversation
from chorus_cli.turns.service.folding import Folding, Summarizer
from chorus_cli.turns.service.opening import TurnOpener
from chorus_cli.turns.service.reply import ReplyRunner
from chorus_cli.turns.service.reply_rows import ReplyRows

if TYPE_CHECKING:
    from chorus_cli.mcp.connections import Connections
    from chorus_cli.mcp.rules.permissions import Grant
    from chorus_cli.models.providers.chat_messages import Load


@dataclass(frozen=True, slots=True)
class Opened:
    """The user's data as this process has opened it, and the parts of the machine that services need.

    ``rescue`` writes a record to a file if the database refused it. ``report_bug`` keeps a traceback,
    unless the run is private, and returns a sentence for the user.
    """

    paths: Paths
    storage: RunStorage
    current: Current
    notifier: Notifier
    clock: Clock
    rescue: Callable[[Mapping[str, str]], Path | None]
    report_bug: Callable[[Exception], str]
    shell: UserShell
    attachments: AttachmentStore
    servers: ServerTools
    project: Project = field(default_factory=Project)

    @property
    def shared(self) -> SharedFiles | None:
        """The attachments on the server of the log; ``None`` if the log is on this machine."""
        return SharedFiles(self.storage.store, self.paths.attachments) if self.storage.store.server else None


async def _nothing(_model: str = "") -> None:
    """By default, connect or close nothing."""


@dataclass(frozen=True, slots=True)
class Providers:
    """The models that can be asked, and the facts about them.

    ``input_cost`` returns the price of an input token in USD, ``None`` if it is unknown. ``accepted_by`` returns the
    kinds of attachments that a model takes. ``echo_of`` says which of a model's thoughts are sent back to it. ``warm``
    imports all that a request needs, which may take seconds. ``connect`` connects to the model's server in advance.
    """

    client: ModelClient
    counter: TokenCounter
    limit_of: Callable[[str], Limit]
    input_cost: Callable[[str], float | None]
    models: Models
    takes_tools: Callable[[str], bool] = lambda _model: False
    tools: Sequence[BuiltIn] = BUILT_IN
    accepted_by: Callable[[str], frozenset[Kind]] = lambda _model: ALL_SENT
    echo_of: Callable[[str], Echo] = lambda _model: NO_ECHO
    warm: Callable[[str], None] = lambda _model: None
    connect: Callable[[str], Coroutine[None, None, None]] = _nothing
    aclose: Callable[[], Awaitable[None]] = _nothing
    prices: Callable[[str], Prices | None] = lambda _model: None
    embedder: Embedder | None = None


def all_providers(environment: Mapping[str, str], clock: Clock, load: Load = not_stored) -> Providers:
    """Return ELIZA, models in local files, and models asked directly or through litellm; ``load`` reads attachments."""
    known, files = ModelMap(), LocalFiles()
    router = ModelRouter(
        ElizaClient(clock),
        LocalClient(environment, known, files, load),
        WireClient(environment, known, load=load),
        LiteLLMClient(environment, known, load=load),
    )
    names = KnownModels(
        known.names,
        known.providers,
        lambda: (*servers.models(environment), *files.installed()),
        known.conversation_names,
        files.doubt,
        router.doubt,
    )
    return Providers(
        router,
        VocabularyCounter(),
        ModelLimits(environment, known, of_file=files.limit).of_model,
        known.input_cost,
        Models(names, environment),
        partial(takes_tools, model_map=known, of_file=files.takes_tools),
        accepted_by=partial(accepted_kinds, model_map=known),
        echo_of=router.echo,
        warm=router.warm,
        connect=router.preconnect,
        aclose=router.aclose,
        prices=partial(servers.prices, model_map=known),
        embedder=Embedder(environment),
    )


def server_connections(storage: RunStorage, environment: Mapping[str, str]) -> Connections:
    """Import the code of connections to tool servers, and return them; a private chat logs no words of a server."""
    from chorus_cli.mcp import connections
    from chorus_cli.mcp.files import Tokens

    note = partial(note_line, storage.bugs, environment=environment)
    return connections.Connections(environment, note, tokens=Tokens(storage.tokens))


def server_tools(
    storage: RunStorage,
    clock: Clock,
    environment: Mapping[str, str],
    connect: Callable[[], Connections],
    attachments: AttachmentStore,
    *,
    tell: Callable[[str], None] | None,
) -> ServerTools:
    """Return the tools of the servers that the settings name; ``tell`` shows the user a sentence.

    Without ``tell``, nobody can be asked whether a tool may run. Files in the tools' results are stored among the
    ``attachments``, and on the server of the log.
    """

    def configured(slug: str) -> Configured:
        chosen = storage.personas.load(slug).settings
        return Configured(configuration.servers(chosen._asdict(), environment), chosen.mcp_wait)

    async def allow(slug: str, grant: Grant) -> None:
        keys, path = (ALLOWED, f"{grant.server}.{grant.tool}"), storage.personas.changeable_settings_path(slug)
        await storage.store.write_in_steps(change_entry, path, keys, grant.digest, slug, clock.now())
        if tell is not None:
            tell(lasting(grant, is_private=storage.is_private))

    async def keep(data: bytes) -> None:
        digest = await asyncio.to_thread(attachments.store, data)
        if storage.store.server and storage.attachments:
            await SharedFiles(storage.store, storage.attachments).offer([digest])

    return ServerTools(configured, connect, Rights(tell is not None, allow), clock, keep)


@dataclass(frozen=True, slots=True)
class Turns:
    """The services that answer messages, and the parts that they were built from."""

    opened: Opened
    providers: Providers
    context: Context
    memory: Memory
    jobs: Jobs
    search: Search
    costs: Costs
    folding: Folding
    conversation: Conversation
    attachments: Attachments
    texts: ServerTexts


def compose_turns(opened: Opened, providers: Providers, *, folds_in_background: bool) -> Turns:
    """Build the services that answer messages; ``folds_in_background`` lets them fold before a request is too large."""
    store, clock, current, notifier = opened.storage.store, opened.clock, opened.current, opened.notifier
    # The vectors of a private chat would be gone before they are of use.
    search = Search(store, clock, Meaning(store, clock, None if opened.storage.is_private else providers.embedder))
    memory = Memory(store, clock, providers.counter, notifier.aside)
    in_focus, load = lambda: (current.slug, current.thread_id), opened.storage.personas.load
    jobs = Jobs(opened.shell, clock, memory, load, in_focus, notifier.done, opened.report_bug)
    tool_services = ToolServices(store, clock, search, memory, jobs)
    takes_tools, tools = providers.takes_tools, providers.tools
    toolbox = Toolbox(tool_services, providers.counter, takes_tools, opened.report_bug, opened.servers, tools)
    context = Context(
        store,
        providers.counter,
        providers.limit_of,
        providers.input_cost,
        toolbox.of_target,
        providers.accepted_by,
        providers.echo_of,
        opened.project,
    )
    summarizer, tell = Summarizer(providers.client, context, clock), notifier.aside if folds_in_background else None
    folding = Folding(context, summarizer, tell, lambda: current.thread_id)
    rows = ReplyRows(store, providers.counter, clock)
    runner = ReplyRunner(rows, providers.client, opened.rescue, opened.storage.is_alive, toolbox)
    texts = ServerTexts(opened.servers, lambda: current.slug)
    accepted_by, shared = providers.accepted_by, opened.shared
    attachments = Attachments(opened.attachments, providers.counter, accepted_by, notifier.progress, texts, shared)
    opener = TurnOpener(context, runner, memory, jobs, opened.storage.run)
    conversation = Conversation(context, runner, folding, toolbox, memory, attachments.missing, opener, clock.now())
    costs = Costs(store, clock, providers.prices)
    return Turns(opened, providers, context, memory, jobs, search, costs, folding, conversation, attachments, texts)
