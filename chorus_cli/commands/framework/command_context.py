"""The context of a handler: the services, with the persona and thread in focus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from chorus_cli.commands.framework.registry import CommandRegistry
    from chorus_cli.ports import Clock
    from chorus_cli.services.context.context import Context
    from chorus_cli.services.context.window import ContextWindow
    from chorus_cli.services.editing.context import ContextEditing
    from chorus_cli.services.editing.drafts import Editing
    from chorus_cli.services.folding.folding import Folding
    from chorus_cli.services.log.export import Exporting
    from chorus_cli.services.log.journal import Journal
    from chorus_cli.services.log.search import Search
    from chorus_cli.services.personas.focus import Focus
    from chorus_cli.services.personas.models import Models
    from chorus_cli.services.personas.personas import Personas
    from chorus_cli.services.personas.roster import Roster
    from chorus_cli.services.personas.settings import PersonaSettings
    from chorus_cli.services.sessions.sessions import Sessions
    from chorus_cli.services.turns.conversation import Conversation


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The services behind the commands, and the registry for ``/help``.

    ``copy`` puts a text into the clipboard and names the ways used; it blocks and raises an ``OutputError``. ``tell``
    shows a sentence at once, while a command is running.
    """

    registry: CommandRegistry[CommandContext]
    focus: Focus
    personas: Personas
    roster: Roster
    settings: PersonaSettings
    editing: Editing
    context_editing: ContextEditing
    models: Models
    context: Context
    window: ContextWindow
    journal: Journal
    conversation: Conversation
    folding: Folding
    sessions: Sessions
    search: Search
    exporting: Exporting
    copy: Callable[[str], str]
    tell: Callable[[str], None]
    clock: Clock
