"""``/undo``, ``/redo``, ``/retry``, ``/continue``: the latest action, a message or an operation on the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Annotated, TypeAlias

from chorus_cli.context.service.journal import Step
from chorus_cli.core.errors import JournalError
from chorus_cli.core.text.command_signs import typed_line
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.framework.arguments import NUMBER, Candidate
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Question, Refill, Reply, Report, Table, Text
from chorus_cli.jobs.rules import EndedJob, going_again_line, kept_back_line
from chorus_cli.jobs.service import KeptBack
from chorus_cli.log.rules.acts import Way, Window
from chorus_cli.log.rules.journal import NOTHING_TO_UNDO
from chorus_cli.log.rules.messages import Message as Spoken
from chorus_cli.log.rules.operations import Operation
from chorus_cli.models.rules.choice import ModelChoice
from chorus_cli.personas.commands.settings import MODEL
from chorus_cli.personas.rules.persona import Target
from chorus_cli.services import Services
from chorus_cli.threads.service.running_turn import RunningTurn
from chorus_cli.turns.commands import follow_fork, named, redone_lines, reversal_line
from chorus_cli.turns.service.conversation import is_answering, made_elsewhere

GROUP: CommandGroup[Services] = CommandGroup("", "Your messages and the replies.", topic="chat")

_MOST_LISTED = 15
_LIST, _LIST_ALL = 0, -1
_Step: TypeAlias = Step[Operation | Spoken | EndedJob]
"""A step of the journal, or a job whose output the user can keep back from the next message."""


def _number_or_list(text: str, now: datetime) -> int:
    lists = {"list": _LIST, "list all": _LIST_ALL}
    words = " ".join(text.casefold().split())
    return lists[words] if words in lists else NUMBER.parse(text, now)


STEP = replace(NUMBER, help="a number that /undo list shows, such as 12")
STEP_OR_LIST = replace(
    STEP,
    name="number or list",
    parse=_number_or_list,
    help=f'{STEP.help}, "list" for your newest actions, "list all" for all',
    complete=lambda _services, _text: [Candidate("list", "your actions, newest first"), Candidate("list all", "all")],
)


@GROUP.command("undo", listed="everyday")
async def undo(services: Services, which: Annotated[int | None, STEP_OR_LIST] = None) -> Reply:
    """Undo the newest thing you did; /redo redoes it.

    That is a message with its reply, or an operation; repeat the command to go further back. /undo 12 undoes only
    number 12 of /undo list, whatever followed. A message leaves the context, not the log, and returns to the input
    line; type / there to enter a command instead. A message that waits for a reply to end is not sent at all. Chorus
    asks first if another Chorus did the newest thing, or if you have since done something else, such as changing
    a title. Right after a job has ended, /undo leaves the job's output out of your next message instead.

    Examples:
        /undo
        /undo list
        /undo list all
        /undo 12
    """
    target, unrecorded = services.current.target(), services.persona_admin.unrecorded
    if which is None and (unsent := await services.replies.take_back(target.thread_id)):
        services.attachments.give_back(unsent.attachments)
        words = unsent.text if unsent.text or unsent.attachments else unsent.again
        return Refill(f"Not sent: {shortened(words)}", typed_line(unsent.text))
    if which in {_LIST, _LIST_ALL}:
        steps = await _steps(services, target)
        return await _listed(services, steps, _MOST_LISTED if which == _LIST else len(steps))
    if which is not None:
        step = await _numbered(services, target, which)
        if step.is_undone:
            raise JournalError(f"Number {which} is undone already. /redo {which} redoes it.")
        return await _undo_unless_doubtful(services, target, step)
    newest = next((each for each in reversed(await _steps(services, target)) if each.is_open), None)
    passed_over = unrecorded.newest(target.persona.slug, newest.redone_at if newest else None)
    if newest is None:
        raise JournalError(f"{NOTHING_TO_UNDO} {passed_over}".strip())
    return await _undo_unless_doubtful(services, target, newest, passed_over, is_newest=True)


async def _undo_unless_doubtful(
    services: Services, target: Target, step: _Step, passed_over: str = "", *, is_newest: bool = False
) -> Reply:
    """Undo a step; ask first if the user may mean another step."""
    done = step.done

    async def taken_back() -> Reply:
        if passed_over:
            services.persona_admin.unrecorded.forget(target.persona.slug)
        if isinstance(done, EndedJob):
            services.jobs.news.keep_back(target.thread_id, KeptBack(done, await services.journal.newest_id()))
            return Text(kept_back_line(done))
        await services.journal.take_back(target, done)
        if isinstance(done, Spoken) and await is_answering(services.conversation, done):
            await services.replies.break_off(target.thread_id)
        elif isinstance(done, Spoken) and is_newest:
            services.replies.forget_unseen(target.thread_id)
        told = await reversal_line(services, done, is_undone=True)
        return _undone(done, told + await follow_fork(services, done), services)

    elsewhere = ""
    if is_newest and not isinstance(done, EndedJob):
        elsewhere = await made_elsewhere(services.conversation, done)
    doubts = [*filter(None, (passed_over, elsewhere))]
    if not doubts:
        return await taken_back()
    what = f"{'the action before it: ' if passed_over else ''}{await _name(services, step)}"
    if isinstance(done, Operation) and isinstance(done.act, Window):
        what += f", back to {done.act.result(is_undone=True)}"
    return Question("\n".join([*doubts, f"Undo {what}?"]), taken_back, Text("Nothing was undone."))


async def _steps(services: Services, target: Target) -> list[_Step]:
    """Return the user's steps, oldest first, with jobs whose output waits for the next message or is kept back."""
    found: list[_Step] = [*await services.journal.steps(target)]
    news, thread_id = services.jobs.news, target.thread_id
    kept_back = [each.ended for each in news.kept_back(thread_id)]
    for job in sorted([*news.waiting(thread_id), *kept_back], key=lambda each: (each.at, each.number)):
        before = (place for place in range(len(found), 0, -1) if found[place - 1].at <= job.at)
        found.insert(next(before, 0), Step(job, job.at, job.at, job in kept_back, job not in kept_back))
    return found


async def _numbered(services: Services, target: Target, number: int) -> Step[Operation | Spoken]:
    """Return a step by its number; steps are numbered from the oldest, so that later steps change no number."""
    steps = await services.journal.steps(target)
    if number > len(steps):
        raise JournalError(f"There is no number {number} here. /undo list shows the numbers.")
    return steps[number - 1]


async def _name(services: Services, step: _Step) -> str:
    return step.done.named if isinstance(step.done, EndedJob) else await named(services, step.done)


async def _listed(services: Services, steps: Sequence[_Step], most: int) -> Reply:
    """List the newest steps, newest first; a job's output has no number, because it leaves with the next message."""
    numbers = count(1)
    numbered = [(None if isinstance(step.done, EndedJob) else next(numbers), step) for step in steps][::-1]

    async def data() -> object:
        return [
            {"number": number, "time": step.at, "what": await _name(services, step), "undone": step.is_undone}
            for number, step in numbered
        ]

    if not numbered:
        return Text(NOTHING_TO_UNDO, data)
    rows = [await _row(services, number, step) for number, step in numbered[:most]]
    table = Table("", ("No.", "When", "What", ""), tuple(rows), cut=frozenset({"What"}))
    newest, older = next((number for number, _ in numbered if number), 0), len(numbered) - most
    hints = [f"{older} older; /undo list all shows all."] if older > 0 else []
    hints += [f"/undo {newest} undoes only number {newest}; /redo {newest} redoes it."] if newest else []
    return Report((table, *([Text("\n".join(hints))] if hints else [])), data)


async def _row(services: Services, number: int | None, step: _Step) -> tuple[str, ...]:
    """Return the row of a step, kept short for 40 columns: without today's date and without ``your message``."""
    at, today = timestamps.local(step.at), timestamps.local(services.clock.now())
    when = f"{at:%H:%M}" if at.date() == today.date() else f"{at:%m-%d %H:%M}" if at.year == today.year else f"{at:%F}"
    what = (await _name(services, step)).removeprefix("your message ")
    return str(number or ""), when, what, "undone" if step.is_undone else ""


def _undone(done: Operation | Spoken, told: str, services: Services) -> Reply:
    if isinstance(done, Operation):
        return Text(told)
    # A purge of the message has emptied the preamble, and the news may have the purged words.
    again = services.jobs.news.turn_undone(done.id) if done.preamble else ()
    services.attachments.give_back(done.attachments)
    lines = [told, *([going_again_line(again)] if again else [])]
    return Refill("\n".join(lines), typed_line(done.content), gives_way=True)


@GROUP.command("redo")
async def redo(services: Services, number: Annotated[int | None, STEP] = None) -> Text:
    """Redo the action undone last, if nothing happened since, or one by its number.

    Examples:
        /redo
        /redo 12
    """
    target, news = services.current.target(), services.jobs.news
    if number is not None:
        step = await _numbered(services, target, number)
        if not step.is_undone:
            raise JournalError(f"Number {number} is not undone, so there is nothing to redo.")
        await services.journal.put_back(target, step.done)
        return await _redone(services, step.done)
    undone = await services.journal.redoable(target)
    kept_back = news.kept_back(target.thread_id)
    if kept_back and kept_back[-1].after >= (undone.id if undone else 0):
        ended = kept_back[-1].ended
        news.add(target.thread_id, ended)
        return Text(f"Redone: your next message will have {ended.named}.")
    return await _redone(services, await services.journal.redo(target))


async def _redone(services: Services, redone: Operation | Spoken) -> Text:
    if isinstance(redone, Spoken):
        services.jobs.news.turn_redone(redone.id)
        if redone.attachments:
            services.attachments.give_back(())
    return Text(await redone_lines(services, redone))


@GROUP.command("retry", listed="everyday")
async def retry(services: Services, model: Annotated[str | None, MODEL] = None) -> RunningTurn:
    """Get another reply, from this model or another.

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


@GROUP.command("continue", listed="everyday")
async def go_on(services: Services) -> RunningTurn:
    """Continue the last reply where it was cut or ended.

    The longer reply takes the place of the old one, which stays in the log; /undo brings it back.

    Examples:
        /continue
    """
    return services.replies.retry(services.current.target(), Way.CONTINUE)
