"""``/context at``: the context at an earlier time."""

from __future__ import annotations

from typing import Annotated

from chorus_cli.commands.framework.arguments import TIME
from chorus_cli.commands.framework.command_context import CommandContext
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Report, Table, Text
from chorus_cli.commands.wording import local, speaker
from chorus_cli.core.context.budget import tokens_of
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.core.time.timespan import Span

_LONGEST_SUMMARY = 1000

GROUP: CommandGroup[CommandContext] = CommandGroup("context")


@GROUP.command("at")
async def at(context: CommandContext, time: Annotated[Span, TIME]) -> Report:
    """Show the context as it was at an earlier time.

    It is computed from the log and the operations in effect then; the system prompt and the documents are today's.

    Examples:
        /context at 2h
        /context at yesterday
        /context at monday 9am
    """
    target = context.focus.target()
    moment = time.before(context.clock.now())
    past = await context.context.past(target, moment)
    view = past.view
    amount = f"{counted(len(view.messages), 'message')}, ~{sum(map(tokens_of, view.messages)):,} tokens"
    hours = past.frame.target.persona.settings.context_hours
    lines = [
        f"The context at {local(moment)}, with a window of {hours}h: {amount}.",
        "Earlier system prompts and documents are not kept; a request would have today's.",
    ]
    if view.summary is not None:
        folded = counted(view.folded_number, "message")
        lines.append(f"The first {folded} were summarised as: {shortened(view.summary.content, _LONGEST_SUMMARY)}")
    name = target.persona.name
    rows = [(local(row.timestamp), speaker(row.role, name), shortened(row.content)) for row in view.messages]
    table = [Table("", ("Time", "From", "Message"), tuple(rows))] if rows else []
    return Report((Text("\n".join(lines)), *table))
