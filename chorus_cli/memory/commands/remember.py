"""``/remember``: a text is remembered."""

from __future__ import annotations

from typing import Annotated

from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Text
from chorus_cli.memory.commands.arguments import NOTE, Note, cleaned
from chorus_cli.memory.commands.items import remembered
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("")


@GROUP.command("remember")
async def remember(services: Services, note: Annotated[Note, NOTE]) -> Text:
    """Remember a text as a task, or as another type that stands before it with a colon.

    Examples:
        /remember call the plumber on Monday
        /remember code: make test runs the tests
    """
    result = await services.memory.remember(services.focus.slug, note.item_type, cleaned(note.text))
    return remembered(result)
