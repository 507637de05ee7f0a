"""Reading a context snapshot: everything it holds, in one transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chorus_cli.core.cards.macros import sent_items
from chorus_cli.core.context import calibration
from chorus_cli.core.context.calibration import Calibration
from chorus_cli.core.context.memory import MOST_HOT, chosen_hot, contents, ids_held, without_forgotten
from chorus_cli.core.context.snapshot import ContextSnapshot, Frame, RequestStart
from chorus_cli.core.context.view import put_in, view
from chorus_cli.core.log import journal
from chorus_cli.core.log.acts import Fold, Fork
from chorus_cli.core.log.messages import Role
from chorus_cli.core.settings.table import setting_of
from chorus_cli.core.time.window import cutoff
from chorus_cli.storage.sqlite import meta_rows
from chorus_cli.storage.sqlite.context import summary_rows
from chorus_cli.storage.sqlite.log import message_rows, operation_rows, spoken
from chorus_cli.storage.sqlite.memory import item_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import datetime

    from chorus_cli.core.context.budget import Budget
    from chorus_cli.core.context.view import View
    from chorus_cli.core.log.operations import Operation
    from chorus_cli.core.memory.items import Item

_WINDOW = setting_of("context_hours")


def read_snapshot(
    connection: sqlite3.Connection,
    frame: Frame,
    operations: Sequence[Operation],
    start: RequestStart,
    until: datetime | None = None,
) -> ContextSnapshot:
    """Read the snapshot of the thread that ``frame`` names; its messages may still have to be counted.

    ``operations`` are those since the boundary; no message after ``until`` is read. The cost follows the window and
    the operations, never the log.
    """
    seen = _view(connection, frame.target.thread_id, operations, start, until)
    # The memory items of the last request stay, unless a fold has changed its beginning.
    held = start.hot if start.summary_id == seen.summary_id else None
    last_spoken = spoken.last_spoken_at(connection, frame.target.thread_id) or _last_of_fork(seen)
    stored = meta_rows.value(connection, meta_rows.calibration_key(frame.target.choice.model))
    learned = calibration.read(stored) if stored else Calibration()
    allowed = frame.budget(learned, fold_is_undone=journal.fold_is_undone(operations))
    return ContextSnapshot(
        frame=frame,
        view=seen,
        operations=tuple(operations),
        budget=allowed,
        last_spoken=last_spoken,
        newest_operation_id=max(start.operation_id, journal.newest_id(operations)),
        first_message_id=start.first_message_id,
        hot=_chosen_hot(connection, frame, allowed, seen) if held is None else held,
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
        origin = replace(target, thread_id=later[0].origin, thread_number=later[0].origin_number)
        return read_past_snapshot(connection, replace(frame, target=origin), moment)
    found = journal.window_at(every, moment, persona.settings.context_hours)
    hours = found if isinstance(found, int) and _WINDOW.accepts(found) else persona.defaults.context_hours
    past = replace(persona, settings=replace(persona.settings, context_hours=hours))
    frame = replace(frame, target=replace(target, persona=past))
    start = RequestStart(cutoff(moment, hours))
    return read_snapshot(connection, frame, journal.operations_at(every, moment), start, moment)


def _view(
    connection: sqlite3.Connection,
    thread_id: int,
    operations: Sequence[Operation],
    start: RequestStart,
    until: datetime | None,
) -> View:
    boundary = journal.boundary(operations)
    folds = {each.id: each.act.folded for each in journal.effective(operations) if isinstance(each.act, Fold | Fork)}
    after = boundary.after_message_id if boundary else 0
    messages = message_rows.rows_since(connection, thread_id, after, start.window, until)
    # The index compares text, which lets a row of the same second through.
    messages = [message for message in messages if until is None or message.timestamp <= until]
    if by_operations := put_in(thread_id, operations, start.window):
        messages += message_rows.rows(connection, by_operations - {message.id for message in messages})
    summaries = summary_rows.of_folds(connection, thread_id, folds, boundary) if folds else ()
    holders = [message for message in messages if message.preamble or message.role is Role.TOOL_RESULT]
    held = ids_held(holders) if holders else set()
    forgotten = item_rows.forgotten_among(connection, held) if held else set()
    messages = without_forgotten(messages, forgotten) if forgotten else messages
    return view(thread_id, messages, operations, start.window, summaries)


def _last_of_fork(seen: View) -> datetime | None:
    """Return when something was last said that a fork has of its origin; ``None`` where no fork begins the view."""
    if seen.boundary is None or not isinstance(seen.boundary.act, Fork):
        return None
    return max((row.timestamp for row in seen.messages), default=None)


def _chosen_hot(connection: sqlite3.Connection, frame: Frame, allowed: Budget, seen: View) -> tuple[Item, ...]:
    """Choose the memory items of the system message anew."""
    items = item_rows.hot(connection, frame.target.persona.slug, MOST_HOT)
    if not items:
        return ()
    return chosen_hot(sent_items(frame.target.persona, items), allowed, contents(seen.verbatim))
