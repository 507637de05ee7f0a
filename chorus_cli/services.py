"""The services: every handler of a command gets them as its first argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from chorus_cli.attachments.service.attachments import Attachments
    from chorus_cli.cards.service.cards import Cards
    from chorus_cli.context.service.context import Context
    from chorus_cli.context.service.current import Current
    from chorus_cli.context.service.journal import Journal
    from chorus_cli.context.service.report import ContextWindow
    from chorus_cli.editing.service.context import ContextEditing
    from chorus_cli.framework.command_line import OwnCommands
    from chorus_cli.framework.drafts import Editing
    from chorus_cli.framework.registry import CommandRegistry
    from chorus_cli.imports.service import Imports
    from chorus_cli.jobs.service import Jobs
    from chorus_cli.machine.notifier import Notifier
    from chorus_cli.machine.ports import Clock
    from chorus_cli.mcp.service import ServerTexts, ServerTools
    from chorus_cli.memory.service.memory import Memory
    from chorus_cli.models.service.costs import Costs
    from chorus_cli.personas.service.models import Models
    from chorus_cli.personas.service.persona_admin import PersonaAdmin
    from chorus_cli.personas.service.personas import Personas
    from chorus_cli.recall.service import Search
    from chorus_cli.sessions.service.idle import IdleTimer
    from chorus_cli.sessions.service.sessions import Sessions
    from chorus_cli.stores.service.backups import Backups
    from chorus_cli.stores.service.purging import Purging
    from chorus_cli.stores.service.rescued import RescuedTexts
    from chorus_cli.threads.service.replies import Replies
    from chorus_cli.threads.service.threads import Threads
    from chorus_cli.turns.service.conversation import Conversation
    from chorus_cli.turns.service.distilling import Distilling
    from chorus_cli.turns.service.folding import Folding


@dataclass(frozen=True, slots=True)
class Services:
    """All services and the commands; ``is_chat`` is false if a shell asks for a single command.

    ``copy`` copies a text to the clipboard and returns in what way, such as ``by wl-copy``. ``picture`` returns the
    clipboard's picture in PNG. ``warm`` imports everything that a request to a model needs. These three block.
    ``browse`` opens a page in the user's browser. ``show_pages`` opens the pager for a text longer than the screen.
    """

    own_commands: OwnCommands[Services]
    clock: Clock
    notifier: Notifier
    current: Current
    conversation: Conversation
    replies: Replies
    threads: Threads
    context: Context
    window: ContextWindow
    folding: Folding
    journal: Journal
    search: Search
    costs: Costs
    personas: Personas
    persona_admin: PersonaAdmin
    models: Models
    cards: Cards
    sessions: Sessions
    idle_timer: IdleTimer
    memory: Memory
    distilling: Distilling
    jobs: Jobs
    imports: Imports
    drafts: Editing
    context_editing: ContextEditing
    backups: Backups
    rescued: RescuedTexts
    purging: Purging
    attachments: Attachments
    copy: Callable[[str], str]
    picture: Callable[[], bytes]
    browse: Callable[[str], None]
    download: Callable[[str], Awaitable[tuple[str, bytes]]]
    servers: ServerTools
    texts: ServerTexts
    warm: Callable[[str], None]
    show_pages: Callable[[str], Awaitable[bool]]
    is_chat: bool = True

    async def only_of(self, persona: str) -> str | None:
        """Return the slug of a named persona, which may be deleted; ``None`` for an empty name, which means all."""
        if not persona:
            return None
        return await self.persona_admin.logged(persona, self.current.slug)

    def done_beside(self, told: str) -> None:
        """Remember for the persona in focus an action that ``/undo`` cannot revert; ``/undo`` then answers ``told``."""
        self.persona_admin.unrecorded.add(self.current.slug, told, self.clock.now())

    @property
    def registry(self) -> CommandRegistry[Services]:
        """The commands of a chat with the persona in focus."""
        return self.own_commands.registry(self.current.slug)
