"""``/undo``, ``/redo`` and ``/retry``: the latest action, be it a message or an operation on the context."""

from __future__ import annotations

from typing import Annotated

from chorus_cli.context.service.journal import Newest
from chorus_cli.core.errors import JournalError
from chorus_cli.core.text.command_signs import typed_line
from chorus_cli.core.text.phrases import shortened
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Question, Refill, Reply, Text
from chorus_cli.jobs.rules import going_again_line, kept_back_line
from chorus_cli.log.rules.acts import Window
from chorus_cli.log.rules.messages import Message as Spoken
from chorus_cli.log.rules.operations import Operation
from chorus_cli.models.rules.choice import ModelChoice
from chorus_cli.personas.commands.settings import MODEL
from chorus_cli.personas.rules.persona import Target
from chorus_cli.personas.service.persona_admin import Change
from chorus_cli.services import Services
from chorus_cli.settings.rules import table as setting_values
from chorus_cli.threads.service.running_turn import RunningTurn
from chorus_cli.turns.commands import follow_fork, named, reversal_line
from chorus_cli.turns.service.conversation import is_answering, made_elsewhere

GROUP: CommandGroup[Services] = CommandGroup("")

_LONGEST_VALUE = 60


@GROUP.command("undo")
async def undo(services: Services) -> Reply:
    """Undo your latest action: a message with its reply, or an operation.

    Repeat the command to go further back. A message leaves the context, not the log, and returns to the input line; a
    slash typed there replaces the message. A message that waits for the end of a reply is not sent. Chorus asks first
    if you have changed a setting since or if another Chorus sent the message. Right after a job has ended, /undo keeps
    the job's output back from your next message instead.

    Examples:
        /undo
    """
    target = services.current.target()
    if unsent := await services.replies.take_back(target.thread_id):
        services.attachments.give_back(unsent.attachments)
        words = unsent.text if unsent.text or unsent.attachments else "/retry"
        return Refill(f"Not sent: {shortened(words)}", typed_line(unsent.text))
    try:
        newest = await services.journal.newest(target)
    except JournalError as error:
        return _nothing_else(services, target, error)
    if kept_back := services.jobs.news.keep_back(target.thread_id, newest.at):
        return Text(kept_back_line(kept_back))
    return await _undo_unless_doubtful(services, target, newest)


def _nothing_else(services: Services, target: Target, error: JournalError) -> Text:
    """Keep the output of jobs back if there is nothing else to undo; if there is no output, raise the error again."""
    if kept_back := services.jobs.news.keep_back(target.thread_id, None):
        return Text(kept_back_line(kept_back))
    passed_over = services.persona_admin.unrecorded.newest(target.persona.slug, None)
    raise JournalError(f"{error} {_said_of(passed_over)}" if passed_over else str(error)) from None


async def _undo_unless_doubtful(services: Services, target: Target, newest: Newest) -> Reply:
    """Undo an action; ask first if the user may mean another action."""
    slug, unrecorded = target.persona.slug, services.persona_admin.unrecorded

    async def taken_back() -> Reply:
        await services.journal.take_back(target, newest)
        if isinstance(newest.done, Spoken) and await is_answering(services.conversation, newest.done):
            await services.replies.break_off(target.thread_id)
        elif isinstance(newest.done, Spoken):
            services.replies.forget_unseen(target.thread_id)
        unrecorded.forget(slug, newest.at)
        told = await reversal_line(services, newest.done, is_undone=True)
        return _undone(newest.done, told + await follow_fork(services, newest.done), services)

    passed_over = unrecorded.newest(slug, newest.at)
    doubts = [_said_of(passed_over)] if passed_over else []
    if isinstance(newest.done, Spoken) and (elsewhere := await made_elsewhere(services.conversation, newest.done)):
        doubts.append(elsewhere)
    if not doubts:
        return await taken_back()
    what = f"{'the action before it: ' if passed_over else ''}{await named(services, newest.done)}"
    if isinstance(newest.done, Operation) and isinstance(newest.done.act, Window):
        what += f", back to {newest.done.act.result(is_undone=True)}"
    return Question("\n".join([*doubts, f"Undo {what}?"]), taken_back, Text("Nothing was undone."))


def _undone(done: Operation | Spoken, told: str, services: Services) -> Reply:
    if isinstance(done, Operation):
        return Text(told)
    again = services.jobs.news.turn_undone(done.id)
    services.attachments.give_back(done.attachments)
    lines = [told, *([going_again_line(again)] if again else [])]
    return Refill("\n".join(lines), typed_line(done.content), gives_way=True)


def _said_of(change: Change) -> str:
    """Say which setting /undo does not revert, and the command that does."""
    if not change.changed:
        return "Your latest action left the context window as it was, so there is nothing to undo in it."
    key, before = change.setting.key, setting_values.as_typed(change.before)
    way_back = "/settings edit"
    if change.before is None:
        way_back = f"/settings unset {key}"
    elif before and len(before) <= _LONGEST_VALUE and before.isprintable():
        way_back = f"/settings set {key} {before}"
    return f"Your latest action changed {key}, which /undo does not revert; {way_back} does."


@GROUP.command("redo")
async def redo(services: Services) -> Text:
    """Redo the action undone last, if nothing happened since.

    Examples:
        /redo
    """
    redone = await services.journal.redo(services.current.target())
    if isinstance(redone, Spoken):
        services.jobs.news.turn_redone(redone.id)
    told = await reversal_line(services, redone, is_undone=False)
    return Text(told + await follow_fork(services, redone))


@GROUP.command("retry")
async def retry(services: Services, model: Annotated[str | None, MODEL] = None) -> RunningTurn:
    """Ask for another reply to the last message, from this model or another.

    The old reply leaves the context, not the log; /undo brings it back.

    Examples:
        /retry
        /retry chorus/eliza
    """
    target = services.current.target()
    if model is not None:
        if doubt := await services.models.doubt(model):
            services.notifier.aside(doubt)
        target = target._replace(choice=ModelChoice(model, "for one reply"))
    return services.replies.retry(target)
