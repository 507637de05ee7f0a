"""What the journal says of an earlier moment: which operations counted, and how far the window reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.log.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from chorus_cli.core.log.operations import Operation
    from chorus_cli.core.settings.jsonc import JsonValue


def operations_at(operations: Sequence[Operation], moment: datetime) -> list[Operation]:
    """Return the operations that had been made by then, undos and redos among them."""
    return [operation for operation in operations if operation.created_at <= moment]


def window_at(operations: Sequence[Operation], moment: datetime, now: JsonValue) -> JsonValue:
    """Return what the persona's file said of the window then: what the first change since then found.

    ``now`` is what it says at present, ``None`` where it says nothing. A change made by hand in the file is no
    operation and counts from the next one on.
    """
    by_id = {operation.id: operation for operation in operations}
    for operation in sorted(operations, key=lambda each: each.id):
        found = _found(operation, by_id)
        if operation.created_at > moment and found is not None:
            return found[0]
    return now


def _found(operation: Operation, by_id: dict[int, Operation]) -> tuple[JsonValue] | None:
    """Return what a change of the window found, in a tuple of one; ``None`` for what changes no window."""
    if operation.window is not None:
        return (operation.window.before,)
    subject = by_id.get(operation.subject.operation_id or 0) if operation.subject else None
    if subject is None or subject.window is None:
        return None
    return (subject.window.after if operation.kind is Kind.UNDO else subject.window.before,)
