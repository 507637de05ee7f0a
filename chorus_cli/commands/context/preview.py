"""``/context 24h?``: the preview of a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.commands.framework.replies import Report, Table, Text
from chorus_cli.commands.wording import local, reach, speaker
from chorus_cli.core.context.budget import tokens_of
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.services.context.window import window_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chorus_cli.commands.framework.command_context import CommandContext
    from chorus_cli.core.log.messages import Message as LogMessage
    from chorus_cli.core.time.timespan import WindowChoice
    from chorus_cli.services.context.window import Preview


async def previewed(context: CommandContext, choice: WindowChoice, rounded: str = "") -> Report:
    """Report the messages and tokens that a window would bring in or drop."""
    preview = await context.window.preview(choice)
    hours_now = preview.present.target.persona.settings.context_hours
    name = context.focus.target().persona.name
    lines = [
        choice.warning,
        rounded,
        f"With a context window of {choice.hours}h instead of {hours_now}h:",
    ]
    begin = Text("\n".join(line for line in lines if line))
    moving = [_moved(preview.entering, "come in", name), _moved(preview.leaving, "fall out", name)]
    shown = [table for table in moving if table is not None]
    same = [] if shown else [Text("The model would see the same messages.")]
    end = Text(f"{reach(window_state(preview.then))}\n{_weight(preview)}\nNothing was changed.")
    return Report((begin, *shown, *same, end))


def _moved(rows: Sequence[LogMessage], verb: str, name: str) -> Table | None:
    """Return the number of messages that would come in or fall out, with the first and the last of them."""
    if not rows:
        return None
    edges = rows if len(rows) == 1 else (rows[0], rows[-1])
    cells = [(local(row.timestamp), speaker(row.role, name), shortened(row.content)) for row in edges]
    tokens = sum(map(tokens_of, rows))
    title = f"{counted(len(rows), 'message')}, ~{tokens:,} tokens, would {verb}; first and last:"
    return Table(title, ("", "", ""), tuple(cells))


def _weight(preview: Preview) -> str:
    change = preview.tokens_then - preview.tokens_now
    instead = f" instead of {preview.tokens_now:,}" if change else ", as now"
    weight = (
        f"The messages would have ~{preview.tokens_then:,} tokens{instead}; "
        f"the limit for a whole request is {preview.then.budget.tokens:,}."
    )
    if preview.dollars_per_token is None or not change:
        return weight
    cost = abs(change) * preview.dollars_per_token
    return f"{weight} Each request would cost about ${cost:.4f} {'more' if change > 0 else 'less'}."
