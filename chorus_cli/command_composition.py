"""The composition of all services: those that commands need are added to those that answer messages.

Tests build their world by `compose` too, with an outside world of their own.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.attachments.files.downloads import download
from chorus_cli.cards.service.cards import Cards
from chorus_cli.catalogue import groups
from chorus_cli.context.service.journal import Journal
from chorus_cli.context.service.transcript import Exporting
from chorus_cli.context.service.window import ContextWindow
from chorus_cli.editing.service.context import ContextEditing
from chorus_cli.framework.command_line import OwnCommands
from chorus_cli.framework.drafts import Editing
from chorus_cli.imports.service.imports import Imports
from chorus_cli.machine.clipboard import Clipboard
from chorus_cli.machine.editor import UserEditor
from chorus_cli.machine.paths import shipped_personas
from chorus_cli.personas import files as persona_files
from chorus_cli.personas.files import COMMANDS_FOLDER
from chorus_cli.personas.service.roster import Roster
from chorus_cli.personas.service.settings import PersonaSettings
from chorus_cli.private import private_groups
from chorus_cli.services import (
    ContextServices,
    EditingServices,
    LogServices,
    MachineServices,
    PersonaServices,
    Services,
    UpkeepServices,
)
from chorus_cli.sessions.commands import saved_line
from chorus_cli.sessions.rows import leave_behind
from chorus_cli.sessions.service.idle import IdleServices, IdleTimer, NoIdleTimer
from chorus_cli.sessions.service.saving import SessionSaving
from chorus_cli.sessions.service.sessions import Sessions
from chorus_cli.stores.purge.files import Home
from chorus_cli.stores.service.backups import Backups
from chorus_cli.stores.service.purging import Purging
from chorus_cli.stores.service.rescued import RescuedTexts
from chorus_cli.threads.commands.composing import command_of
from chorus_cli.threads.service.replies import Outbox, Replies, Surroundings
from chorus_cli.threads.service.threads import ThreadActivity, Threads
from chorus_cli.turns.folding.summarizer import Summarizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from chorus_cli.composition import Turns
    from chorus_cli.machine.ports import Editor


@dataclass(frozen=True, slots=True)
class Desk:
    """The user's own tools.

    ``copy`` puts a text into the clipboard and returns by which ways; it blocks and raises an ``OutputError``.
    ``picture`` returns the picture in the clipboard; it blocks and raises an ``AttachmentError``.
    """

    editor: Editor
    copy: Callable[[str], str]
    picture: Callable[[], bytes]


def this_desk(
    environment: Mapping[str, str], alone: Callable[[], AbstractContextManager[None]], *, is_private: bool
) -> Desk:
    """Return the user's own tools; ``alone`` is entered while an editor has the terminal."""
    clipboard = Clipboard(environment, sys.stdout)
    return Desk(UserEditor(environment, alone, is_private), clipboard.copy, clipboard.picture)


def compose(turns: Turns, desk: Desk) -> Services:
    """Build all services around those that answer messages."""
    opened, clock, context = turns.opened, turns.machine.clock, turns.context
    store, personas, focus = opened.keeping.store, opened.keeping.personas, opened.focus
    settings = PersonaSettings(store, clock, personas)
    journal = Journal(context, clock, personas, turns.memory)
    # A private chat may read the shipped personas, beside which nothing is saved.
    install = partial(_install, opened.paths.personas)
    summarizer = Summarizer(turns.providers.client, context, clock)
    saving = SessionSaving(opened.paths.personas, clock, context, summarizer, install)
    timer = _idle_timer(turns, saving, journal)
    replies = _replies(turns, timer)
    activity = ThreadActivity(opened.keeping.is_alive, replies.waiting_in, replies.stop)
    return Services(
        own_commands=_own_commands(turns),
        focus=focus,
        conversation=turns.conversation,
        replies=replies,
        threads=Threads(context, focus, activity, clock.now),
        context=ContextServices(context, ContextWindow(settings, clock, focus, context), turns.folding),
        personas=PersonaServices(personas, _roster(turns), settings, turns.providers.models),
        cards=Cards(turns.memory.access, personas),
        sessions=Sessions(store, clock, personas, focus, saving),
        idle_timer=timer,
        memory=turns.memory,
        jobs=turns.jobs,
        log=LogServices(journal, turns.search, Exporting(context, clock), turns.costs),
        imports=Imports(store, clock, _roster(turns), opened.paths.attachments),
        editing=_editing(turns, desk),
        upkeep=_upkeep(turns),
        machine=MachineServices(clock, desk.copy, opened.notifier, turns.providers.warm, desk.picture, download),
        attachments=turns.attachments,
    )


def _own_commands(turns: Turns) -> OwnCommands[Services]:
    keeping, shared = turns.opened.keeping, turns.opened.paths.commands
    personas, built_in = keeping.personas, private_groups(groups()) if keeping.is_private else groups()
    return OwnCommands(built_in, lambda slug: (personas.folder / slug / COMMANDS_FOLDER, shared), command_of)


def _replies(turns: Turns, timer: IdleTimer) -> Replies:
    opened, machine = turns.opened, turns.machine
    keeping = opened.keeping
    outbox = Outbox(keeping.store, keeping.run, machine.clock, is_in_memory=keeping.is_private)
    focus, told = opened.focus, opened.notifier.done
    return Replies(turns.conversation, outbox, Surroundings(timer.busy, lambda: focus.slug, told, machine.report_bug))


def _idle_timer(turns: Turns, saving: SessionSaving, journal: Journal) -> IdleTimer:
    opened, machine = turns.opened, turns.machine
    focus = opened.focus
    actions = IdleServices(opened.keeping.store, focus, saving, journal, saved_line).actions()
    timer = NoIdleTimer if opened.keeping.is_private else IdleTimer
    return timer(machine.clock, actions, lambda: focus.slug, opened.notifier.aside, machine.report_bug)


def _install(personas: Path) -> None:
    # A private chat makes no home before it is asked for a file; without the folder, the copying says why.
    with suppress(OSError):
        personas.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    persona_files.install(shipped_personas(), personas)


def _roster(turns: Turns) -> Roster:
    opened = turns.opened
    return Roster(
        opened.keeping.store, turns.machine.clock, opened.keeping.personas, opened.paths.deleted_personas, leave_behind
    )


def _upkeep(turns: Turns) -> UpkeepServices:
    keeping, clock, paths = turns.opened.keeping, turns.machine.clock, turns.opened.paths
    purging = Purging(keeping.store, clock, turns.search, _roster(turns), Home(paths, keeping.is_alive))
    rescued = RescuedTexts(keeping.store, paths, clock, keeping.is_alive)
    return UpkeepServices(Backups(paths, clock), rescued, purging)


def _editing(turns: Turns, desk: Desk) -> EditingServices:
    keeping, clock = turns.opened.keeping, turns.machine.clock
    drafts = Editing(desk.editor, keeping.edited, clock, keeping.run)
    return EditingServices(drafts, ContextEditing(turns.context, clock, keeping.is_alive, keeping.run))
