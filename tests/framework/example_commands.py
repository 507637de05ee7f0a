"""Commands of every shape that can be declared; each answers with its arguments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated

from chorus_cli.core.time.timespan import Span, format_span
from chorus_cli.framework.arguments import COMMAND, NUMBER, TEXT, TIME, Candidate
from chorus_cli.framework.registry import CommandGroup, CommandRegistry
from chorus_cli.framework.replies import Exit, Reply, Text

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)


@dataclass
class Desk:
    """The context of the handlers below."""

    personas: list[str] = field(default_factory=lambda: ["frodo", "chorus"])


def _personas(desk: Desk, _text: str) -> list[Candidate]:
    return [Candidate(name, "somebody") for name in desk.personas]


PERSONA = replace(TEXT, name="persona", complete=_personas)
DESCRIPTION = replace(TEXT, name="description", help="what the session was about")

window: CommandGroup[Desk] = CommandGroup("context", "The part of the conversation the model sees.", aliases=("ctx",))
saving: CommandGroup[Desk] = CommandGroup("context")
memory: CommandGroup[Desk] = CommandGroup("memory", "What is kept apart from messages.", aliases=("mem",))
everywhere: CommandGroup[Desk] = CommandGroup("", "Everywhere.")


@window.command("")
async def show(desk: Desk) -> Text:
    """Show the window.

    Examples:
        /context
    """
    return Text(f"window of {len(desk.personas)}")


@window.command("set", default=True)
async def set_window(_desk: Desk, time: Annotated[Span, TIME]) -> Reply:
    """Reach back a given length of time.

    A boundary that is nearer
    still binds.

    A second paragraph.

    Examples:
        /context set 24h
        /context 2 days

    Raises:
        ChorusError: never.
    """
    return Text(f"set to {format_span(time.seconds)}")


@window.command("reset", "default")
async def reset(_desk: Desk) -> Text:
    """Take the default again.

    Examples:
        /context reset
    """
    return Text("reset")


@window.command("clear", aliases=("new", "clear"))
async def clear(_desk: Desk) -> Text:
    """Begin a new conversation.

    Examples:
        /new
    """
    return Text("cleared")


@window.command("undo")
async def undo(_desk: Desk, number: Annotated[int | None, NUMBER] = None) -> Text:
    """Take an operation back.

    Examples:
        /context undo
        /context undo #3
    """
    return Text(f"undone {number}")


@saving.command("save")
async def save(_desk: Desk, description: Annotated[str, DESCRIPTION] = "") -> Text:
    """Save the view.

    Examples:
        /context save don't lose this
    """
    return Text(f"saved {description!r}")


@saving.command("history", guesses=("sessions",))
async def history(_desk: Desk, persona: Annotated[str, PERSONA] = "") -> Text:
    """List saved sessions.

    Examples:
        /context history
    """
    return Text(f"history of {persona!r}")


@memory.command("add")
async def add(_desk: Desk, kind: Annotated[str, PERSONA], text: Annotated[str, TEXT]) -> Text:
    """Keep a text.

    Examples:
        /memory add task buy bread
    """
    return Text(f"{kind}: {text}")


@memory.command("pin")
async def pin(_desk: Desk, number: Annotated[int, NUMBER]) -> Text:
    """Keep an item hot.

    Examples:
        /memory pin 3
    """
    return Text(f"pinned {number}")


@everywhere.command("help", "?")
async def help_command(_desk: Desk, command: Annotated[str, COMMAND] = "") -> Text:
    """Say what there is.

    Examples:
        /help context set
    """
    return Text(command)


@everywhere.command("quit", "exit", "q")
async def leave(_desk: Desk) -> Exit:
    """Leave.

    Examples:
        /quit
    """
    return Exit()


REGISTRY = CommandRegistry([window, memory, saving, everywhere])
COMMANDS = list(REGISTRY)
