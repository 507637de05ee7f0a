"""``/undo``, ``/redo``, ``/retry``: second thoughts about what was said and done."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from chorus_cli.commands.framework.command_context import CommandContext
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Question, Refill, Reply, Text
from chorus_cli.commands.wording import turn
from chorus_cli.core.errors import JournalError
from chorus_cli.core.log.messages import Message as Spoken
from chorus_cli.core.log.operations import Operation
from chorus_cli.core.models.events import TurnEvent
from chorus_cli.core.settings import values as setting_values
from chorus_cli.services.personas.settings import Change

GROUP: CommandGroup[CommandContext] = CommandGroup("")

_LONGEST_VALUE = 60


@GROUP.command("undo")
async def undo(context: CommandContext) -> Reply:
    """Take back the newest thing you did: a message with its reply, or an operation on the context.

    Again goes further back. A message comes back to the input line, where a slash takes its place; it leaves the
    context, not the log. If a setting was changed since, you are asked first.

    Examples:
        /undo
    """
    target = context.focus.target()
    slug, unrecorded = target.persona.slug, context.settings.unrecorded
    try:
        newest = await context.journal.newest(target)
    except JournalError as error:
        passed_over = unrecorded.newest(slug, None)
        raise JournalError(f"{error} {_said_of(passed_over)}" if passed_over else str(error)) from None

    async def taken_back() -> Reply:
        await context.journal.take_back(target, newest)
        unrecorded.forget(slug, newest.at)
        return _undone(newest.done)

    passed_over = unrecorded.newest(slug, newest.at)
    if passed_over is None:
        return await taken_back()
    older = newest.done.describe() if isinstance(newest.done, Operation) else turn(newest.done)
    question = f"{_said_of(passed_over)}\nTake back what was done before that, {older}?"
    return Question(question, taken_back, Text("Nothing was taken back."))


def _undone(done: Operation | Spoken) -> Reply:
    if isinstance(done, Operation):
        return Text(f"Undone: {done.describe()}")
    return Refill(f"Undone: {turn(done)}", done.content, gives_way=True)


def _said_of(change: Change) -> str:
    """Say which change /undo passes over, and what puts the setting back."""
    key = change.setting.key
    if not change.changed:
        return f"The newest thing you did left {key} as it was, so there is nothing of it to take back."
    return f"The newest thing you did changed {key}, which /undo does not take back; {_way_back(change)} does."


def _way_back(change: Change) -> str:
    key, before = change.setting.key, setting_values.as_typed(change.before)
    if change.before is None:
        return f"/settings unset {key}"
    is_short = before and len(before) <= _LONGEST_VALUE and before.isprintable()
    return f"/settings set {key} {before}" if is_short else "/settings edit"


@GROUP.command("redo")
async def redo(context: CommandContext) -> Text:
    """Put back what the last undo took back, as long as nothing has followed it.

    Examples:
        /redo
    """
    redone = await context.journal.redo(context.focus.target())
    return Text(f"Redone: {redone.describe() if isinstance(redone, Operation) else turn(redone)}")


@GROUP.command("retry")
async def retry(context: CommandContext) -> AsyncGenerator[TurnEvent, None]:
    """Have the last message answered once more.

    The old reply leaves the context, not the log; /undo brings it back.

    Examples:
        /retry
    """
    return context.conversation.retry(context.focus.target())
