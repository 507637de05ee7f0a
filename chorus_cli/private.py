"""The command ``/private``, and the differences of other commands in a private chat, which keeps nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import wraps
from types import MappingProxyType
from typing import Annotated

from chorus_cli.core.errors import CommandError
from chorus_cli.framework.arguments import TEXT, Candidate
from chorus_cli.framework.registry import Command, CommandGroup
from chorus_cli.framework.replies import Answer, Exit, PrivateChat, Question, Text
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("", topic="log", only_in_chat=True)
_IN_PRIVATE: CommandGroup[Services] = CommandGroup("")
"""Commands of a private chat that replace the usual commands of the same name."""

_OFF = "off"
_BEGIN = "/private begins a private chat."
_PERSONAS = "A private chat cannot create or change a persona. Leave it first."

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "/import": "Conversations are imported into the log, and a private chat has no log. Leave it first.",
        "/rescue backup": "A private chat has no backup. Leave the chat first; chorus backup copies everything else.",
        "mcp": "A private chat changes no server. Leave it first.",
        "persona": _PERSONAS,
        "rescue": "Rescued texts belong to the log, and a private chat has no log. Leave it first.",
        "purge": "Nothing of a private chat is kept, so there is nothing to purge. Leave it first to purge the log.",
    }
)
"""Commands and groups that change log, personas, servers or backups, each with the sentence that refuses it."""

_ALLOWED = frozenset(
    {
        "/persona",
        "/persona switch",
        "/persona info",
        "/persona greeting",
        "/mcp",
        "/mcp prompt",
        "/mcp login",
        "/mcp logout",
    }
)
"""Commands of refused groups that are allowed, because they change no file."""

_FILE = "This writes a file, which is kept."
_UNTIL_THE_END = "This holds until the private chat ends."
ANNOUNCED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("/context save", "/export", "/persona export"), _FILE),
        **dict.fromkeys(("/settings set", "/settings unset", "/settings edit", "/persona edit"), _UNTIL_THE_END),
        **dict.fromkeys(("/tools off", "/tools on", "/tools ask", "/mcp login"), _UNTIL_THE_END),
        **dict.fromkeys(
            (
                *("/set", "/model", "/remember"),
                *("/memory add", "/memory replace", "/memory import", "/memory distil"),
            ),
            _UNTIL_THE_END,
        ),
    }
)
"""Commands that write a file, or whose effect ends with the private chat, each with a sentence that says so."""


def _switch(text: str, _now: datetime) -> str:
    if text.casefold() != _OFF:
        raise CommandError(f"/private takes no text: typed here, it would not be private. {_BEGIN}")
    return _OFF


SWITCH = replace(
    TEXT, name=_OFF, parse=_switch, help="end the private chat", complete=lambda *_: [Candidate(_OFF, "end it")]
)


@GROUP.command("private", guesses=("incognito", "temporary"))
async def begin(_services: Services, switch: Annotated[str, SWITCH] = "") -> PrivateChat | Text:
    """Begin or end a private chat, which keeps nothing.

    The persona is the same, but its log and memory are not sent. The messages, drafts and input history of a private
    chat are in memory only. Ctrl-D, /quit or /private off ends it.

    Examples:
        /private
        /private off
    """
    return Text(f"This chat is not private. {_BEGIN}") if switch else PrivateChat()


@_IN_PRIVATE.command("private")
async def end(_services: Services, switch: Annotated[str, SWITCH] = "") -> Exit | Text:
    """Show that this chat is private; "off" ends it.

    Examples:
        /private
        /private off
    """
    return Exit() if switch else Text("This chat is private: nothing of it is kept. Ctrl-D or /private off ends it.")


@_IN_PRIVATE.command("quit")
async def leave(_services: Services) -> Exit:
    """End the private chat; nothing of it is kept.

    Examples:
        /quit
    """
    return Exit()


def private_groups(groups: Iterable[CommandGroup[Services]]) -> tuple[CommandGroup[Services], ...]:
    """Return the groups of commands for a private chat."""
    own = {command.path: command for command in _IN_PRIVATE.commands}
    found: list[CommandGroup[Services]] = []
    for group in groups:
        found.append(CommandGroup(group.name, group.summary, aliases=group.aliases, topic=group.topic))
        for command in group.commands:
            other = own.get(command.path)
            here = replace(command, handler=other.handler, documentation=other.documentation) if other else None
            found[-1].add(here or _private(command))
    return tuple(found)


def _private(command: Command[Services]) -> Command[Services]:
    """Return a command as a private chat has it: refused, announced, or unchanged. No command makes a persona."""
    refusal, notice = REFUSED.get(command.path), ANNOUNCED.get(command.path)
    if command.path not in {*_ALLOWED, *ANNOUNCED}:
        refusal = refusal or REFUSED.get(command.group)

    # The options are found by the signature of the handler, which ``wraps`` keeps.
    @wraps(command.handler)
    async def carried_out(services: Services, *arguments: object, **options: object) -> Answer:
        if refusal:
            raise CommandError(refusal)
        if notice:
            services.notifier.progress(notice)
        answer = await command.handler(services, *arguments, **options)
        if command.path == "/persona switch" and isinstance(answer, Question):
            raise CommandError(f"There is no such persona. {_PERSONAS}")
        return answer

    documentation = command.documentation
    if refusal:
        documentation = replace(documentation, summary=f"Not in a private chat. {documentation.summary}")
    return replace(command, handler=carried_out, documentation=documentation)
