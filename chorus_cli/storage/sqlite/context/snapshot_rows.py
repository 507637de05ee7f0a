"""Reading a context snapshot: everything it holds, in one transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chorus_cli.core.context import calibration
from chorus_cli.core.context.calibration import Calibration
from chorus_cli.core.context.snapshot import ContextSnapshot, Frame
from chorus_cli.core.context.view import cutoff, view
from chorus_cli.core.log import journal
from chorus_cli.core.log.acts import Fold
from chorus_cli.storage.sqlite import meta_rows
from chorus_cli.storage.sqlite.context import summary_rows
from chorus_cli.storage.sqlite.log import message_rows, operation_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from chorus_cli.core.context.view import View
    from chorus_cli.core.log.operations import Operation


def read_snapshot(
    connection: sqlite3.Connection, frame: Frame, window_start: Callable[[int], datetime]
) -> ContextSnapshot:
    """Read the snapshot of the thread that ``frame`` names; its messages may still have to be counted.

    ``window_start`` returns the start of the window after the newest operation on the thread. The cost follows the
    window and the operations since the boundary, never the log.
    """
    slug, thread_id = frame.target.persona.slug, frame.target.thread_id
    newest = operation_rows.newest_id(connection, slug, thread_id)
    since = window_start(newest)
    operations = operation_rows.since_boundary(connection, slug, thread_id)
    learned = meta_rows.value(connection, meta_rows.calibration_key(frame.target.choice.model))
    return ContextSnapshot(
        frame=frame,
        view=_view(connection, thread_id, operations, since),
        operations=tuple(operations),
        budget=frame.budget(operations, calibration.read(learned) if learned else Calibration()),
        newest_operation_id=newest,
        last_spoken=message_rows.last_spoken_at(connection, thread_id),
    )


def read_past_snapshot(connection: sqlite3.Connection, frame: Frame, moment: datetime) -> ContextSnapshot:
    """Read the snapshot as it was at an earlier moment, by the journal, with the system prompt and model of today.

    A reply that was still being written then is whole.
    """
    target = frame.target
    slug, thread_id, persona = target.persona.slug, target.thread_id, target.persona
    every = journal.own(operation_rows.all_of(connection, slug, thread_id))
    found = journal.window_at(every, moment, persona.settings.context_hours)
    hours = found if isinstance(found, int) else persona.defaults.context_hours
    since = cutoff(moment, hours)
    operations = journal.operations_at(every, moment)
    learned = meta_rows.value(connection, meta_rows.calibration_key(target.choice.model))
    past = replace(persona, settings=replace(persona.settings, context_hours=hours))
    frame = replace(frame, target=replace(target, persona=past))
    seen = _view(connection, thread_id, operations, since, moment)
    budget = frame.budget(operations, calibration.read(learned))
    return ContextSnapshot(frame, seen, tuple(operations), budget, operations[-1].id if operations else 0)


def _view(
    connection: sqlite3.Connection,
    thread_id: int,
    operations: Sequence[Operation],
    since: datetime,
    until: datetime | None = None,
) -> View:
    boundary = journal.boundary(operations)
    after = boundary.after_message_id if boundary else 0
    messages = message_rows.rows_since(connection, thread_id, after, since, until)
    # The index compares text, which lets a row of the same second through.
    messages = [message for message in messages if until is None or message.timestamp <= until]
    if boundary is not None and boundary.members and boundary.created_at > since:
        messages += message_rows.rows(connection, set(boundary.members) - {message.id for message in messages})
    folds = {each.id: each.act for each in journal.effective(operations) if isinstance(each.act, Fold)}
    summaries = summary_rows.of_folds(connection, thread_id, folds, boundary) if folds else ()
    return view(thread_id, messages, operations, since, summaries)
