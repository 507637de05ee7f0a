"""Reading a context snapshot: everything it holds, in one transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chorus_cli.context.rows import summary_rows, thought_rows
from chorus_cli.context.rules.memory import MOST_HOT, chosen_hot, contents, ids_held, without_forgotten
from chorus_cli.context.rules.snapshot import ContextSnapshot, Frame, RequestStart
from chorus_cli.context.rules.view import put_in, view
from chorus_cli.core.time.timeline import cutoff
from chorus_cli.log.rows import message_rows, message_times, operation_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import Fold, Fork
from chorus_cli.log.rules.messages import Role
from chorus_cli.memory.rows import item_rows
from chorus_cli.memory.rules.prompt import sent_items
from chorus_cli.models.rules.budget import Calibration, budget, read_calibration
from chorus_cli.models.rules.request import Span
from chorus_cli.settings.rules.table import setting_of
from chorus_cli.storage import meta_rows

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime

    from chorus_cli.context.rules.rounds import Echoed
    from chorus_cli.context.rules.view import View
    from chorus_cli.log.rules.journal import ThreadJournal
    from chorus_cli.memory.rules.items import Item
    from chorus_cli.models.rules.budget import Budget

_WINDOW = setting_of("context_hours")


def thread_journal(connection: sqlite3.Connection, persona: str, thread_id: int) -> ThreadJournal:
    """Read the operations that concern a thread, from its boundary on, with their effect on its context."""
    operations = operation_rows.since_boundary(connection, persona, thread_id)
    # Operations on the memory are not among them, but a forgotten item must leave the prompt.
    return journal.thread_journal(thread_id, operations, item_rows.newest_forgetting(connection, persona))


def read_snapshot(
    connection: sqlite3.Connection,
    frame: Frame,
    known: ThreadJournal,
    start: RequestStart,
    until: datetime | None = None,
) -> ContextSnapshot:
    """Read the snapshot of the thread that ``frame`` names; its messages may still have to be counted.

    No message after ``until`` is read. The cost follows the window and the operations, never the log.
    """
    target = frame.target
    seen = _view(connection, known, start, until)
    # The memory items of the last request stay, unless a fold has changed its beginning.
    held = start.hot if start.summary_id == (seen.summary.operation_id if seen.summary else None) else None
    last_spoken = message_times.last_spoken_at(connection, target.thread_id)
    if last_spoken is None and seen.boundary is not None and isinstance(seen.boundary.act, Fork):
        # A fork has messages of its origin.
        last_spoken = max((row.timestamp for row in seen.messages), default=None)
    stored = meta_rows.value(connection, meta_rows.calibration_key(target.choice.model))
    learned = read_calibration(stored) if stored else Calibration()
    refused_since = meta_rows.value(connection, meta_rows.plain_history_key(target.thread_id, target.choice.model))
    is_plain = refused_since == str(seen.boundary_id or 0)
    chosen = target.persona.settings
    usage, most_output = chosen.context_usage_threshold, chosen.max_output_tokens
    allowed = budget(frame.limit, usage, most_output, learned, fold_is_undone=known.fold_is_undone)
    return ContextSnapshot(
        frame=frame,
        view=seen,
        budget=allowed,
        last_spoken=last_spoken,
        newest_operation_id=known.newest_id,
        fold_is_undone=known.fold_is_undone,
        first_message_id=start.first_message_id,
        hot=_chosen_hot(connection, frame, allowed, seen) if held is None else held,
        echoed={} if is_plain else _echoed(connection, frame, seen),
        is_plain=is_plain,
    )


def read_past_snapshot(connection: sqlite3.Connection, frame: Frame, moment: datetime) -> ContextSnapshot:
    """Read the snapshot as it was at an earlier moment, by the journal, with the system prompt and model of today.

    A reply that was still being written then is whole. Before it was opened, a fork has the context of its origin, of
    which the target of the snapshot has the thread.
    """
    target, persona = frame.target, frame.target.persona
    every = journal.own(operation_rows.all_of(connection, persona.slug, target.thread_id))
    later = [each.act for each in journal.effective(every) if isinstance(each.act, Fork) and each.created_at > moment]
    if later:
        origin = target._replace(thread_id=later[0].origin, thread_number=later[0].origin_number)
        return read_past_snapshot(connection, replace(frame, target=origin), moment)
    found = journal.window_at(every, moment, persona.settings.context_hours)
    hours = found if isinstance(found, int) and _WINDOW.accepts(found) else persona.defaults.context_hours
    past = persona._replace(settings=persona.settings._replace(context_hours=hours))
    frame = replace(frame, target=target._replace(persona=past))
    then = journal.thread_journal(target.thread_id, journal.operations_at(every, moment))
    return read_snapshot(connection, frame, then, RequestStart(cutoff(moment, hours)), moment)


def _view(connection: sqlite3.Connection, known: ThreadJournal, start: RequestStart, until: datetime | None) -> View:
    thread_id, boundary = known.thread_id, known.boundary
    counting = (*([boundary] if boundary else []), *known.later)
    folds = {each.id: each.act.folded for each in counting if isinstance(each.act, Fold | Fork)}
    after = boundary.after_message_id if boundary else 0
    messages = message_rows.rows_since(connection, thread_id, after, start.window, until)
    # The index compares text, which lets a row of the same second through.
    messages = [message for message in messages if until is None or message.timestamp <= until]
    if (boundary or known.kept) and (by_operations := put_in(known, start.window)):
        messages += message_rows.rows(connection, by_operations - {message.id for message in messages})
    summaries = summary_rows.of_folds(connection, thread_id, folds, boundary) if folds else ()
    holders = [message for message in messages if message.preamble or message.role is Role.TOOL_RESULT]
    held = ids_held(holders) if holders else set()
    forgotten = item_rows.forgotten_among(connection, held) if held else set()
    messages = without_forgotten(messages, forgotten) if forgotten else messages
    return view(messages, known, start.window, summaries)


def _echoed(connection: sqlite3.Connection, frame: Frame, seen: View) -> dict[int, Echoed]:
    """Read the thoughts of earlier turns that the model is sent again."""
    if frame.echo.span is not Span.EVER:
        return {}
    model, calls_only = frame.target.choice.model, frame.echo.calls_only
    return thought_rows.echoed(connection, seen.verbatim, model, calls_only=calls_only)


def _chosen_hot(connection: sqlite3.Connection, frame: Frame, allowed: Budget, seen: View) -> tuple[Item, ...]:
    """Choose the memory items of the system message anew."""
    items = item_rows.hot(connection, frame.target.persona.slug, MOST_HOT)
    if not items:
        return ()
    return chosen_hot(sent_items(frame.target.persona, items), allowed, contents(seen.verbatim))
