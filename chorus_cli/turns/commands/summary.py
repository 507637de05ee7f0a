"""``/context compact`` and ``/context summary``: the summary of the older part of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from chorus_cli.context.rules.plan import usable
from chorus_cli.context.rules.snapshot import ContextSnapshot
from chorus_cli.context.rules.summaries import Summary
from chorus_cli.context.rules.view import View
from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.cutting import quoted
from chorus_cli.core.text.phrases import counted
from chorus_cli.core.text.surrogates import cleaned_input
from chorus_cli.framework.arguments import TEXT, Candidate, Parameter
from chorus_cli.framework.editing import Refused, answered
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Reply, Text
from chorus_cli.log.rules.wording import local
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("context")

_EDIT = "edit"
_NO_SUMMARY = "There is no summary: all messages in context are sent word for word."
_NOT_ENOUGH = "Not enough messages to compact: the last two turns always stay word for word."
_NO_MODEL = "ELIZA cannot summarise. Choose another model with /model or /settings set summary_model NAME."
_MOST_RUNS = 6


def _edit_word(text: str, _now: datetime) -> str:
    if text.casefold() != _EDIT:
        raise CommandError(f"/context summary takes only the argument edit, not {quoted(text)}.")
    return _EDIT


def _offer_edit(_services: object, _text: str) -> Sequence[Candidate]:
    return (Candidate(_EDIT, "open it in your editor"),)


FOCUS = replace(TEXT, name="focus", help="what the summary should focus on")
EDIT_WORD = Parameter(_EDIT, _edit_word, "open it in your editor", _offer_edit)


@GROUP.command("compact", aliases=("compact",), stoppable=True)
async def compact(services: Services, focus: Annotated[str, FOCUS] = "") -> Text:
    """Summarise the older part of the conversation now; the last two turns stay word for word.

    Nothing is deleted; /undo brings the messages back. This happens automatically when a conversation nears the limit
    of its model.

    Examples:
        /context compact
        /compact what we decided about the bridge
    """
    target = services.focus.target()
    if not services.context.folding.is_possible(target):
        raise CommandError(_NO_MODEL)
    compacted = await services.context.folding.fold_all(target, " ".join(focus.split()))
    summary = compacted.summary
    if summary is None and compacted.messages:
        raise CommandError("Nothing was summarised: the context was changed in the meantime. Try again.")
    if summary is None:
        raise CommandError(_NOT_ENOUGH)
    tokens = f"~{summary.token_count or 0:,} tokens"
    what = f"added to the summary, now {tokens}" if compacted.extends else f"summarised in {tokens}"
    return Text(f"{counted(compacted.messages, 'message')} {what}. /undo reverts this.\n\n{summary.content}")


@GROUP.command("summary")
async def show_summary(services: Services, edit: Annotated[str, EDIT_WORD] = "") -> Reply:
    """Show the summary of the older part of the conversation, or edit it in your editor.

    The model is sent your version from then on; /undo restores the previous one.

    Examples:
        /context summary
        /context summary edit
    """
    snapshot = await services.context.planner.snapshot(services.focus.target(), services.machine.clock.now())
    view = snapshot.view
    if view.summary is None:
        return Text(_NO_SUMMARY)
    if edit:
        return await _edited(services, snapshot, view.summary)
    return Text(f"{_described(view, view.summary)}\n\n{view.summary.content}")


async def _edited(services: Services, snapshot: ContextSnapshot, summary: Summary) -> Reply:

    async def store(text: str) -> Reply | Refused:
        content = cleaned_input(text)[0].strip()
        if await services.context.folding.reword(snapshot, content) is None:
            return Refused("The context was changed in the meantime, so your edit was not applied.")
        return Text("Summary replaced. /undo restores the previous one.")

    edited = await services.editing.drafts.edit("summary.md", f"{summary.content}\n")
    return await answered(services.editing.drafts, edited, store, "The summary")


def _described(view: View, summary: Summary) -> str:
    """Describe a summary: its messages, author, time and size."""
    number = counted(len(usable(view.folded)), "message")
    runs = [f"#{first}" if first == last else f"#{first} to #{last}" for first, last in summary.stands_for]
    ids = ", ".join([*runs[:_MOST_RUNS], *(["…"] if len(runs) > _MOST_RUNS else [])])
    author = summary.model or "you"
    return (
        f"Summary of {number} ({ids}), by {author}, {local(summary.created_at)}, ~{summary.token_count or 0:,} tokens. "
        f"/context undo {summary.number} reverts it."
    )
