"""The composition: every service is built here, from the user's data and the outside world.

Its imports take a while, so that it is itself imported late: by the app, when a service is first asked for. Tests build
their world by `compose` too, with an outside world of their own.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.adapters.machine.clipboard import Clipboard
from chorus_cli.adapters.machine.editor import UserEditor
from chorus_cli.adapters.machine.shell import UserShell
from chorus_cli.adapters.models import ollama
from chorus_cli.adapters.models.limits import ModelLimits
from chorus_cli.adapters.models.litellm.client import LiteLLMClient
from chorus_cli.adapters.models.model_map import ModelMap
from chorus_cli.adapters.models.router import ElizaClient, ModelRouter
from chorus_cli.adapters.models.token_counter import VocabularyCounter
from chorus_cli.adapters.models.tool_calling import takes_tools
from chorus_cli.adapters.models.wire.client import WireClient
from chorus_cli.commands.catalogue import registry
from chorus_cli.commands.framework.services import (
    ContextServices,
    EditingServices,
    LogServices,
    MachineServices,
    PersonaServices,
    Services,
)
from chorus_cli.commands.sessions import saved_line
from chorus_cli.services.context.context import Context
from chorus_cli.services.context.window import ContextWindow
from chorus_cli.services.editing.context import ContextEditing
from chorus_cli.services.editing.drafts import Editing, UnsentDrafts
from chorus_cli.services.folding.folding import Folding
from chorus_cli.services.folding.schedule import FoldSchedule
from chorus_cli.services.folding.summarizer import Summarizer
from chorus_cli.services.jobs.jobs import Jobs
from chorus_cli.services.log.journal import Journal
from chorus_cli.services.log.search import Search
from chorus_cli.services.log.transcript import Exporting
from chorus_cli.services.memory.access import MemoryAccess
from chorus_cli.services.memory.flash import FlashSaves
from chorus_cli.services.memory.memory import Memory
from chorus_cli.services.personas.models import KnownModels, Models
from chorus_cli.services.personas.roster import Roster
from chorus_cli.services.personas.settings import PersonaSettings
from chorus_cli.services.sessions.idle import IdleServices, IdleTimer
from chorus_cli.services.sessions.saving import SessionSaving
from chorus_cli.services.sessions.sessions import Sessions
from chorus_cli.services.threads.outbox import Outbox
from chorus_cli.services.threads.replies import Replies, Surroundings
from chorus_cli.services.threads.threads import ThreadActivity, Threads
from chorus_cli.services.tools.built_in import BUILT_IN, BuiltIn, ToolServices
from chorus_cli.services.tools.toolbox import Toolbox, ToolOffers
from chorus_cli.services.turns.conversation import Conversation
from chorus_cli.services.turns.reply import Answering, Outside
from chorus_cli.services.turns.reply_rows import ReplyRows
from chorus_cli.services.turns.rounds import Rounds
from chorus_cli.storage.files.durable_files import rescue

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from chorus_cli.adapters.machine.paths import Paths
    from chorus_cli.core.context.budget import Limit
    from chorus_cli.ports import Clock, Editor, ModelClient, Shell, TokenCounter
    from chorus_cli.services.notifier import Notifier
    from chorus_cli.services.personas.focus import Focus
    from chorus_cli.services.personas.personas import Personas
    from chorus_cli.storage.sqlite.store import Store


@dataclass(frozen=True, slots=True)
class Opened:
    """The user's data, opened by this process.

    ``run`` names the process in the rows that it is writing; ``is_alive`` tells of such a name whether its process
    still runs.
    """

    paths: Paths
    store: Store
    personas: Personas
    focus: Focus
    notifier: Notifier
    run: str
    is_alive: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that Chorus runs on.

    ``copy`` puts a text into the clipboard and returns by which ways; it blocks and raises an ``OutputError``.
    ``rescue`` keeps a record that the database refused and returns its file, ``None`` if that failed too.
    ``report_bug`` keeps a traceback and returns the sentence that says where.
    """

    clock: Clock
    editor: Editor
    copy: Callable[[str], str]
    rescue: Callable[[Mapping[str, str]], Path | None]
    report_bug: Callable[[Exception], str]
    shell: Shell


async def _nothing(_model: str) -> None:
    """Connect to no server."""


@dataclass(frozen=True, slots=True)
class Providers:
    """The models that can be asked, and the facts about them.

    ``limit_of`` returns the most tokens that a model takes, ``input_cost`` the price of one in USD, if it is known.
    ``takes_tools`` returns whether tools may be offered to a model, and ``tools`` are those that there are. ``warm``
    imports all that asking a model needs, which may take seconds; ``connect`` connects to its server beforehand.
    """

    client: ModelClient
    counter: TokenCounter
    limit_of: Callable[[str], Limit]
    input_cost: Callable[[str], float | None]
    models: Models
    takes_tools: Callable[[str], bool] = lambda _model: False
    tools: Sequence[BuiltIn] = BUILT_IN
    warm: Callable[[str], None] = lambda _model: None
    connect: Callable[[str], Coroutine[None, None, None]] = _nothing


def this_machine(
    paths: Paths,
    environment: Mapping[str, str],
    clock: Clock,
    alone: Callable[[], AbstractContextManager[None]],
    report_bug: Callable[[Exception], str],
) -> Machine:
    """Return the machine of this process; ``alone`` is entered while an editor has the terminal."""
    return Machine(
        clock,
        UserEditor(environment, alone),
        Clipboard(environment, sys.stdout).copy,
        lambda record: rescue(paths.rescue, clock.now(), record),
        report_bug,
        UserShell(environment),
    )


def all_providers(environment: Mapping[str, str], clock: Clock) -> Providers:
    """Return ELIZA and every provider that the wire or litellm reaches."""
    known = ModelMap()
    in_ollama = partial(ollama.models, environment)
    names = KnownModels(known.names, known.providers, in_ollama, known.conversation_names)
    router = ModelRouter(ElizaClient(clock), WireClient(environment, known), LiteLLMClient(environment, known))
    return Providers(
        router,
        VocabularyCounter(),
        ModelLimits(environment, known).of_model,
        known.input_cost,
        Models(names, environment),
        partial(takes_tools, model_map=known),
        warm=router.warm,
        connect=router.preconnect,
    )


def compose(opened: Opened, machine: Machine, providers: Providers, *, folds_in_background: bool) -> Services:
    """Build the services; with ``folds_in_background`` conversations are folded before a request is too large."""
    store, personas, focus, clock = opened.store, opened.personas, opened.focus, machine.clock
    search = Search(store, clock)
    offers = ToolOffers(store, clock, providers.counter, providers.takes_tools, providers.tools)
    context = Context(store, providers.counter, providers.limit_of, providers.input_cost, offer=offers.of_target)
    settings = PersonaSettings(store, clock, personas)
    memory = _memory(opened, machine, providers)
    jobs = _jobs(opened, machine, memory)
    journal = Journal(context, clock, personas, memory)
    summarizer = Summarizer(providers.client, context)
    folding = Folding(context, summarizer, clock)
    folds = FoldSchedule(folding, machine.report_bug, opened.notifier.aside if folds_in_background else None)
    answering = _answering(opened, machine, providers, ToolServices(store, clock, search, memory, jobs))
    rounds = Rounds(context, answering, folds, offers, memory.flashes)
    saving = SessionSaving(personas.folder, clock, context, summarizer)
    timer = _idle_timer(opened, machine, saving, journal)
    conversation = Conversation(rounds, memory, opened.run, clock.now(), jobs.news, jobs.running)
    replies = _replies(opened, machine, conversation, timer)
    activity = ThreadActivity(opened.is_alive, replies.waiting_in, replies.stop)
    return Services(
        registry=registry(),
        focus=focus,
        conversation=conversation,
        replies=replies,
        threads=Threads(context, focus, activity, clock.now),
        context=ContextServices(context, ContextWindow(settings, clock, focus, context), folding),
        personas=PersonaServices(personas, _roster(opened, machine), settings, providers.models),
        sessions=Sessions(store, clock, personas, focus, saving),
        idle_timer=timer,
        memory=memory,
        jobs=jobs,
        log=LogServices(journal, search, Exporting(context, clock)),
        editing=_editing(opened, machine, context),
        machine=MachineServices(clock, machine.copy, opened.notifier, providers.warm, providers.connect),
    )


def _memory(opened: Opened, machine: Machine, providers: Providers) -> Memory:
    access = MemoryAccess(opened.store, machine.clock, providers.counter, opened.notifier.aside)
    return Memory(access, FlashSaves(access))


def _jobs(opened: Opened, machine: Machine, memory: Memory) -> Jobs:
    focus, told = opened.focus, opened.notifier.done
    return Jobs(machine.shell, machine.clock, memory, lambda: (focus.slug, focus.thread_id), told, machine.report_bug)


def _replies(opened: Opened, machine: Machine, conversation: Conversation, timer: IdleTimer) -> Replies:
    outbox = Outbox(UnsentDrafts(opened.paths.drafts, opened.run))
    focus, told = opened.focus, opened.notifier.done
    return Replies(conversation, outbox, Surroundings(timer.busy, lambda: focus.slug, told, machine.report_bug))


def _idle_timer(opened: Opened, machine: Machine, saving: SessionSaving, journal: Journal) -> IdleTimer:
    focus = opened.focus
    actions = IdleServices(opened.store, focus, saving, journal, saved_line).actions()
    return IdleTimer(machine.clock, actions, lambda: focus.slug, opened.notifier.aside, machine.report_bug)


def _roster(opened: Opened, machine: Machine) -> Roster:
    return Roster(opened.store, machine.clock, opened.personas, opened.paths.deleted_personas)


def _answering(opened: Opened, machine: Machine, providers: Providers, tools: ToolServices) -> Answering:
    outside = Outside(providers.client, machine.clock, providers.counter, machine.rescue, opened.is_alive)
    rows = ReplyRows(opened.store, providers.counter, machine.clock)
    return Answering(opened.store, rows, outside, Toolbox(tools, machine.report_bug, providers.tools))


def _editing(opened: Opened, machine: Machine, context: Context) -> EditingServices:
    drafts = Editing(machine.editor, opened.paths.drafts, machine.clock, opened.run)
    return EditingServices(drafts, ContextEditing(context, machine.clock, opened.is_alive, opened.run))
