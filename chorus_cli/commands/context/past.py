"""``/context at``: the context at an earlier time."""

from __future__ import annotations

from typing import Annotated

from chorus_cli.commands.framework.arguments import TIME
from chorus_cli.commands.framework.command_context import CommandContext
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Report, Table, Text
from chorus_cli.commands.wording import counted, local, shortened, speaker
from chorus_cli.core.context.tokens import tokens_of
from chorus_cli.core.time.timespan import Span
from chorus_cli.services.context.past import context_at

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
    past = await context_at(context.context, target, moment)
    amount = f"{counted(len(past.messages), 'message')}, ~{sum(map(tokens_of, past.messages)):,} tokens"
    lines = [
        f"The context at {local(past.moment)}, with a window of {past.hours}h: {amount}.",
        "Earlier system prompts and documents are not kept; a request would have today's.",
    ]
    if past.summary is not None:
        folded = counted(past.folded_number, "message")
        lines.append(f"The first {folded} were summarised as: {shortened(past.summary.content, _LONGEST_SUMMARY)}")
    name = target.persona.name
    rows = [(local(row.timestamp), speaker(row.role, name), shortened(row.content)) for row in past.messages]
    table = [Table("", ("Time", "From", "Message"), tuple(rows))] if rows else []
    return Report((Text("\n".join(lines)), *table))
