"""``/context compact`` and ``/context summary``: the text that stands for the older part of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from chorus_cli.commands.editing import Refused, answered
from chorus_cli.commands.framework.arguments import Candidate, Parameter
from chorus_cli.commands.framework.command_context import CommandContext
from chorus_cli.commands.framework.parameters import TEXT
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Reply, Text
from chorus_cli.commands.wording import local
from chorus_cli.core.context.plan import usable
from chorus_cli.core.context.snapshot import ContextSnapshot
from chorus_cli.core.context.view import Summary, View
from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.cutting import quoted
from chorus_cli.core.text.phrases import counted
from chorus_cli.core.text.safe_text import cleaned_input

GROUP: CommandGroup[CommandContext] = CommandGroup("context")

_EDIT = "edit"
_NO_SUMMARY = "There is no summary: everything in context is sent word for word."
_NOT_ENOUGH = "Not enough messages to compact: the last two turns always stay word for word."
_NO_MODEL = "ELIZA does not summarise. Choose a model that does with /model, or with /settings set summary_model NAME."
_MOST_RUNS = 6


def _edit_word(text: str, _now: datetime) -> str:
    if text.casefold() != _EDIT:
        raise CommandError(f"{quoted(text)} cannot be done with a summary; /context summary edit opens it.")
    return _EDIT


def _offer_edit(_context: object, _text: str) -> Sequence[Candidate]:
    return (Candidate(_EDIT, "open it in your editor"),)


FOCUS = replace(TEXT, name="focus", help="what the summary must keep above all")
EDIT_WORD = Parameter(_EDIT, _edit_word, "open it in your editor", _offer_edit)


@GROUP.command("compact", aliases=("compact",), stoppable=True)
async def compact(context: CommandContext, focus: Annotated[str, FOCUS] = "") -> Text:
    """Have the older part of the conversation summarised now; only the last two turns stay word for word.

    Nothing is deleted, and /undo brings the words back. It happens by itself when a conversation outgrows its model.

    Examples:
        /context compact
        /compact what we decided about the bridge
    """
    target = context.focus.target()
    if not context.folding.is_possible(target):
        raise CommandError(_NO_MODEL)
    compacted = await context.folding.fold_all(target, " ".join(focus.split()))
    summary = compacted.summary
    if summary is None and compacted.messages:
        raise CommandError("The context was changed meanwhile; nothing was summarised. Try again.")
    if summary is None:
        raise CommandError(_NOT_ENOUGH)
    tokens = f"~{summary.token_count or 0:,} tokens"
    what = f"added to the summary, which has {tokens}" if compacted.extends else f"summarised in {tokens}"
    return Text(f"{counted(compacted.messages, 'message')} {what}. /undo takes that back.\n\n{summary.content}")


@GROUP.command("summary")
async def show_summary(context: CommandContext, edit: Annotated[str, EDIT_WORD] = "") -> Reply:
    """Show the summary that stands for the older part of the conversation, or open it in your editor.

    What you save there is what the model is told from then on; /undo takes it back.

    Examples:
        /context summary
        /context summary edit
    """
    snapshot = await context.context.snapshot(context.focus.target(), context.clock.now())
    view = snapshot.view
    if view.summary is None:
        return Text(_NO_SUMMARY)
    if edit:
        return await _edited(context, snapshot, view.summary)
    return Text(f"{_described(view, view.summary)}\n\n{view.summary.content}")


async def _edited(context: CommandContext, snapshot: ContextSnapshot, summary: Summary) -> Reply:

    async def store(text: str) -> Reply | Refused:
        content = cleaned_input(text)[0].strip()
        if await context.folding.reword(snapshot, content) is None:
            return Refused("The context was changed meanwhile, and the summary stays as it was.")
        return Text("The summary is yours from now on. /undo brings the one before back.")

    edited = await context.editing.edit("summary.md", f"{summary.content}\n")
    return await answered(context.editing, edited, store, "The summary")


def _described(view: View, summary: Summary) -> str:
    """Say what a summary stands for, who wrote it, and when."""
    number = counted(len(usable(view.folded)), "message")
    runs = [f"#{first}" if first == last else f"#{first} to #{last}" for first, last in summary.stands_for]
    ids = ", ".join([*runs[:_MOST_RUNS], *(["…"] if len(runs) > _MOST_RUNS else [])])
    author = summary.model or "you"
    return (
        f"Summary of {number} ({ids}), by {author}, {local(summary.created_at)}, ~{summary.token_count or 0:,} tokens. "
        f"/context undo {summary.operation_id} takes it back."
    )
