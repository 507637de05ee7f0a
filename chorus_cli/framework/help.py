"""The help, computed from the declarations: an everyday screen, and pages for topics, groups and all commands."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from chorus_cli.framework.command_line import look_up
from chorus_cli.framework.registry import C, Command, CommandRegistry

ALL = "all"
_SIGNS = (
    ("@file", "Attach a file to your message; Tab completes it."),
    ("!cmd", "Run a shell command; the model sees its output."),
)
KEYS = "Ctrl-C stop, Ctrl-B background, Alt-Enter new line, Ctrl-R history, Ctrl-D quit"
_WIDTH = 79
_COLUMN = 31


def everyday(registry: CommandRegistry[C]) -> list[tuple[str, str]]:
    """Return the everyday commands and the signs ``@`` and ``!``, each with its explanation."""
    return [*((each.brief, each.summary) for each in registry.everyday), *_SIGNS]


def screen(registry: CommandRegistry[C]) -> str:
    """Return the help that fits on one screen."""
    rows = everyday(registry)
    width = max(len(typed) for typed, _ in rows)
    lines = [f"{typed:<{width}}  {told}" for typed, told in rows]
    return "\n".join([*lines, KEYS, f"Topics: {', '.join(registry.topics)}, {ALL}"])


def page(registry: CommandRegistry[C], words: str) -> str:
    """Explain a topic, a group, a command or all commands; raise a ``CommandError`` for an unknown name."""
    if words == ALL:
        return "\n\n".join(_topic(registry, topic) for topic in registry.topics)
    if words in registry.topics:
        return _topic(registry, words)
    entry = look_up(registry, words)
    if isinstance(entry, Command):
        return entry.help_text
    return _list(entry.summary, [each for each in entry.commands if each.listed != "nowhere"])


def _topic(registry: CommandRegistry[C], topic: str) -> str:
    return _list(registry.summaries[topic], registry.topics[topic])


def _list(summary: str, commands: Sequence[Command[C]]) -> str:
    lines = [summary]
    for command in commands:
        usage = f"  {command.usage}"
        if len(usage) > _COLUMN - 2:
            lines.append(usage)
            usage = ""
        lines += textwrap.wrap(
            command.summary, _WIDTH, initial_indent=f"{usage:<{_COLUMN}}", subsequent_indent=_COLUMN * " "
        )
    return "\n".join(lines)
