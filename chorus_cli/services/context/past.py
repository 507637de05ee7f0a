"""The context as it was at an earlier moment, computed from the log and the journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.context import view as views
from chorus_cli.core.log import operations as journal
from chorus_cli.core.log import past
from chorus_cli.storage.sqlite.context import summary_rows
from chorus_cli.storage.sqlite.log import message_rows, operation_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from chorus_cli.core.context.snapshot import Target
    from chorus_cli.core.context.summary import Summary
    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.log.operations import Operation
    from chorus_cli.services.context.context import Context
    from chorus_cli.storage.sqlite.store import Connection


@dataclass(frozen=True, slots=True)
class PastContext:
    """What was in context at a moment, and how many hours the window had then.

    ``summary`` stood for the first ``folded_number`` messages.
    """

    moment: datetime
    hours: int
    messages: tuple[Message, ...]
    summary: Summary | None
    folded_number: int


async def context_at(context: Context, target: Target, moment: datetime) -> PastContext:
    """Return the view as it was, by the journal; replies that were still being written then are shown whole."""
    operations = journal.own(await context.store.read(operation_rows.all_of, target.persona.slug, target.thread_id))
    hours = _hours_at(target, operations, moment)
    since = views.cutoff(moment, hours)
    then = past.operations_at(operations, moment)
    base = journal.base(then)
    rows, summaries = await context.store.read(_rows, target, then, since, moment)
    members = set(base.members) if base else set()
    known = [row for row in rows if row.timestamp <= moment or row.id in members]
    seen = views.view(target.thread_id, known, then, since, summaries)
    return PastContext(moment, hours, await context.counted(seen.messages), seen.summary, seen.folded_number)


def _hours_at(target: Target, operations: list[Operation], moment: datetime) -> int:
    found = past.window_at(operations, moment, target.persona.settings.context_hours)
    return found if isinstance(found, int) else target.persona.defaults.context_hours


def _rows(
    connection: Connection, target: Target, operations: Sequence[Operation], since: datetime, until: datetime
) -> tuple[list[Message], list[Summary]]:
    base = journal.base(operations)
    after = base.after_message_id if base else 0
    rows = message_rows.rows_since(connection, target.thread_id, after, since, until)
    missing = set(base.members if base else ()) - {row.id for row in rows}
    found = rows + message_rows.rows(connection, missing)
    return found, summary_rows.of_effective_folds(connection, target.thread_id, operations)
