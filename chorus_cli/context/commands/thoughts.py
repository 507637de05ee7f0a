"""``/thoughts``: what the model thought before its newest reply."""

from __future__ import annotations

from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Aside, Text
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("")


@GROUP.command("thoughts", guesses=("thinking", "reasoning"))
async def thoughts(services: Services) -> Aside | Text:
    """Print what the model thought before its newest reply, in each round if it used tools.

    A provider may keep thoughts to itself, or show a summary of them. Ctrl-T on an empty line prints them too.

    Examples:
        /thoughts
    """
    found = await services.focus.newest_thoughts()
    if not found:
        return Text("No reply in this thread has thoughts.")
    if not any(text.strip() for _, text in found):
        return Text("The provider does not show the thoughts before the newest reply.")
    return Aside("\n\n".join(f"{thought.words}\n{text.strip()}".rstrip() for thought, text in found))
