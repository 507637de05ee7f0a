"""The rows of a thread that are shown when its context is edited, and their side of the context line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.editing.rules.matching import Added, Kept
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.messages import Role, Status, is_filled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from chorus_cli.editing.rules.matching import Member
    from chorus_cli.log.rules.messages import Message
    from chorus_cli.log.rules.operations import Operation


@dataclass(frozen=True, slots=True)
class EditScope:
    """Rows above the line, rows below it, and all settled rows in context, also those not shown, which stay.

    ``after_message_id`` is the newest message that an edit covers: the last one before a turn in progress, which is not
    settled yet.
    """

    before: tuple[Message, ...]
    context: tuple[Message, ...]
    settled: tuple[Message, ...]
    after_message_id: int


def with_hidden(members: Sequence[Member], scope: EditScope) -> list[Member]:
    """Insert the rows that were not shown into the members, each after the row it used to follow."""
    shown = {row.id: row for row in scope.context}
    followers: dict[int, list[Member]] = {}
    before = 0
    for row in scope.settled:
        if row.id in shown:
            before = row.id
        else:
            followers.setdefault(before, []).append(Kept(row.id))
    kept = {member.message_id for member in members if not isinstance(member, Added)}
    # Rows that followed a deleted row follow the one before it.
    ordered, last = dict(followers), 0
    for row in scope.settled:
        if row.id in kept:
            last = row.id
        elif row.id in shown and row.id in ordered:
            ordered.setdefault(last, []).extend(ordered.pop(row.id))
    mixed = list(ordered.get(0, []))
    for member in members:
        mixed.append(member)
        if not isinstance(member, Added):
            mixed += ordered.get(member.message_id, [])
    return mixed


def edit_scope(
    seen: Sequence[Message],
    history: Iterable[Message],
    operations: Sequence[Operation],
    newest_id: int,
    shown_since: datetime | None,
) -> EditScope:
    """Choose the rows: ``seen`` is the view, ``history`` the thread's rows in the order of the log.

    Left out are replies in progress, rows without text, wordings that were replaced, replies that a retry replaced,
    imported messages of other branches, and rows of operations that were undone.
    """
    running = min((row.turn_id for row in seen if row.status is Status.STREAMING), default=newest_id + 1)
    settled = [row for row in seen if row.turn_id < running and _is_shown(row)]
    too_old = {row.id for row in settled if shown_since is not None and row.timestamp <= shown_since}
    counting = {operation.id for operation in journal.effective(operations)}
    known = [row for row in history if row.introduced_by is None or row.introduced_by in counting]
    moved_off = journal.moved_off(operations)
    elsewhere = (
        {row.id for row in seen}
        | {row.revises for row in [*known, *seen]}
        | journal.replaced(journal.effective(operations))
        | {row.id for row in known if moved_off.get(row.id, row.superseded)}
    )
    return EditScope(
        before=tuple(row for row in known if row.id not in elsewhere and row.turn_id < running and _is_shown(row)),
        context=tuple(row for row in settled if row.id not in too_old),
        settled=tuple(settled),
        after_message_id=running - 1,
    )


def _is_shown(row: Message) -> bool:
    spoken = row.role in {Role.USER, Role.ASSISTANT}
    return row.status is not Status.STREAMING and (not spoken or is_filled(row))
