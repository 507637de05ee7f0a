"""Builds all other services on the services that answer messages; tests use this module too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from chorus_cli.attachments.files.document_files import download
from chorus_cli.cards.service.cards import Cards
from chorus_cli.catalogue import groups
from chorus_cli.composition import Turns
from chorus_cli.context.service.journal import Journal
from chorus_cli.context.service.report import ContextWindow
from chorus_cli.editing.service.context import ContextEditing
from chorus_cli.framework.command_line import OwnCommands
from chorus_cli.framework.drafts import Editing
from chorus_cli.imports.service import Imports
from chorus_cli.machine.browser import open_page
from chorus_cli.machine.clipboard import Clipboard
from chorus_cli.machine.editor import UserEditor
from chorus_cli.machine.paths import shipped_personas
from chorus_cli.personas import files as persona_files
from chorus_cli.personas.files import COMMANDS_FOLDER
from chorus_cli.personas.service.persona_admin import PersonaAdmin
from chorus_cli.private import private_groups
from chorus_cli.services import Services
from chorus_cli.sessions.rows import leave_behind
from chorus_cli.sessions.service.idle import IdleActions, IdleTimer
from chorus_cli.sessions.service.sessions import Sessions
from chorus_cli.stores.purge.files import Home
from chorus_cli.stores.service.backups import Backups
from chorus_cli.stores.service.purging import Purging
from chorus_cli.stores.service.rescued import RescuedTexts
from chorus_cli.threads.commands.composing import command_of
from chorus_cli.threads.service.replies import Outbox, Replies, ReplyHooks
from chorus_cli.threads.service.threads import Threads
from chorus_cli.turns.service.distilling import Distilling


@dataclass(frozen=True, slots=True)
class UserTools:
    """The user's editor, clipboard and browser; ``browse`` opens an address.

    ``copy`` copies a text to the clipboard and returns in what way, such as ``by wl-copy``.
    """

    editor: UserEditor
    copy: Callable[[str], str]
    picture: Callable[[], bytes]
    browse: Callable[[str], None]


def tools_of_machine(
    environment: Mapping[str, str], alone: Callable[[], AbstractContextManager[None]], *, is_private: bool
) -> UserTools:
    """Return the user's editor, clipboard and browser; ``alone`` is entered while an editor has the terminal."""
    editor, clipboard = UserEditor(environment, alone, is_private=is_private), Clipboard(environment, sys.stdout)
    return UserTools(editor, clipboard.copy, clipboard.picture, partial(open_page, environment))


def compose(turns: Turns, user_tools: UserTools, *, is_chat: bool = True) -> Services:
    """Build all other services on ``turns``, the services that answer messages."""
    opened, context, storage = turns.opened, turns.context, turns.opened.storage
    clock, paths, current, store = opened.clock, opened.paths, opened.current, storage.store
    persona_admin = PersonaAdmin(store, clock, storage.personas, paths.deleted_personas, leave_behind)
    journal = Journal(context, clock, storage.personas, turns.memory)
    sessions = _sessions(turns)
    timer = _idle_timer(turns, sessions, journal)
    replies = _replies(turns, timer)
    return Services(
        own_commands=_own_commands(turns),
        clock=clock,
        notifier=opened.notifier,
        current=current,
        conversation=turns.conversation,
        replies=replies,
        threads=Threads(context, current, replies, storage.is_alive, clock),
        context=context,
        window=ContextWindow(persona_admin, clock, current, context),
        folding=turns.folding,
        journal=journal,
        search=turns.search,
        costs=turns.costs,
        personas=storage.personas,
        persona_admin=persona_admin,
        models=turns.providers.models,
        cards=Cards(turns.memory, storage.personas, persona_admin),
        sessions=sessions,
        idle_timer=timer,
        memory=turns.memory,
        distilling=Distilling(turns.providers.client, context, turns.memory, turns.costs, clock),
        jobs=turns.jobs,
        imports=Imports(store, clock, persona_admin, paths.attachments, opened.shared),
        drafts=Editing(user_tools.editor, storage.edited, clock, storage.run),
        context_editing=ContextEditing(context, clock, storage.is_alive),
        backups=Backups(paths, clock, server=store.engine_apart() if store.server else None),
        rescued=RescuedTexts(store, paths, clock, storage.is_alive_here),
        purging=Purging(store, clock, persona_admin, Home(paths, storage.is_alive_here)),
        attachments=turns.attachments,
        copy=user_tools.copy,
        picture=user_tools.picture,
        browse=user_tools.browse,
        download=download,
        servers=opened.servers,
        texts=turns.texts,
        warm=turns.providers.warm,
        show_pages=user_tools.editor.page,
        is_chat=is_chat,
    )


def _own_commands(turns: Turns) -> OwnCommands[Services]:
    storage, shared = turns.opened.storage, turns.opened.paths.commands
    personas, built_in = storage.personas, private_groups(groups()) if storage.is_private else groups()
    return OwnCommands(built_in, lambda slug: (personas.folder / slug / COMMANDS_FOLDER, shared), command_of)


def _sessions(turns: Turns) -> Sessions:
    opened, folder = turns.opened, turns.opened.paths.personas
    summarizer, install = turns.folding.summarizer, partial(_install, folder)
    return Sessions(opened.clock, opened.storage.personas, opened.current, turns.context, summarizer, folder, install)


def _replies(turns: Turns, timer: IdleTimer) -> Replies:
    opened, storage, current = turns.opened, turns.opened.storage, turns.opened.current
    outbox = Outbox(storage.store, storage.run, opened.clock, is_in_memory=storage.is_private)
    hooks = ReplyHooks(timer.busy, lambda: current.slug, opened.notifier.done, opened.report_bug)
    return Replies(turns.conversation, outbox, hooks)


def _idle_timer(turns: Turns, sessions: Sessions, journal: Journal) -> IdleTimer:
    opened, current = turns.opened, turns.opened.current
    actions = IdleActions(opened.storage.store, current, sessions, journal)
    is_private = opened.storage.is_private
    return IdleTimer(opened.clock, actions, lambda: current.slug, opened.notifier.aside, is_private=is_private)


def _install(personas: Path) -> None:
    # A private chat without a home reads the shipped personas, and makes a home only to save a session there. If the
    # folder cannot be made, `install` says why.
    with suppress(OSError):
        personas.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    persona_files.install(shipped_personas(), personas)
