"""Editing a context as a text: writes the text, reads the edited text, and applies it by one operation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar

from chorus_cli.context.rows.thread_views import (
    NOT_IN_CONTEXT,
    EditableRows,
    editable_rows,
    introduce_unless_overtaken,
    newest_change,
    present_wording,
    replaced_before,
)
from chorus_cli.context.rules.view import View
from chorus_cli.context.service.context import Context
from chorus_cli.core.errors import JournalError
from chorus_cli.editing.rules.format import newest_line, parse
from chorus_cli.editing.rules.matching import (
    EditCounts,
    EditScope,
    Sheet,
    edit_counts,
    edit_scope,
    laid_out,
    matched,
    reworded,
    with_hidden,
)
from chorus_cli.log.rows import interrupted_replies, message_rows, operation_rows
from chorus_cli.log.rules.acts import Edit, Retry, Way
from chorus_cli.log.rules.messages import TOOL_ROLES, Message, Role, Status, is_filled, is_written
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.machine.ports import Clock
from chorus_cli.personas.rules.persona import Target
from chorus_cli.storage.port import Connection

_Read = TypeVar("_Read")


class OpenMessage(NamedTuple):
    """A message in the editor, the messages in context, and the newest change of the context.

    ``is_last`` says that the message ends its turn, was not summarised, and was put in by no operation but a pin. Then
    a retry replaces the message and those ``replaced``: its earlier wordings, and a reply that never came. Otherwise
    the whole context is edited.
    """

    target: Target
    row: Message
    scope: EditScope
    newest_change: int
    is_last: bool
    replaced: set[int]


class OpenContext(NamedTuple):
    """A context in the editor: its text, the line of its newest message, its rows, and its newest change."""

    target: Target
    sheet: Sheet
    line: int
    scope: EditScope
    newest_change: int


@dataclass(frozen=True, slots=True)
class ContextEditing:
    """Writes contexts out as text and applies the edited text."""

    context: Context
    clock: Clock
    is_alive: Callable[[str], bool]

    async def open(self, target: Target, shown_since: datetime | None = None) -> OpenContext:
        """Write the text of a thread's history and context; with ``shown_since``, only of messages after this time."""
        slug, thread_id = target.persona.slug, target.thread_id
        view, rows = await self._read(target, lambda log, _: editable_rows(log, slug, thread_id, shown_since))
        scope = edit_scope(view.messages, rows.history, rows.operations, rows.newest_id, shown_since)
        sheet = await asyncio.to_thread(laid_out, target.persona.name, scope.before, scope.context)
        return OpenContext(target, sheet, newest_line(sheet.text), scope, newest_change(rows.operations))

    async def open_message(self, target: Target, number: int | None = None) -> OpenMessage:
        """Find message ``number`` of the context, or the newest reply."""

        def read(log: Connection, view: View) -> tuple[Message, set[int], EditableRows]:
            operations = operation_rows.all_of(log, target.persona.slug, target.thread_id)
            rows = EditableRows([], operations, message_rows.newest_id(log))
            row = _to_reword(log, view.messages, number)
            return row, replaced_before(log, view, row, target.thread_id), rows

        view, (row, replaced, rows) = await self._read(target, read)
        scope = edit_scope(view.messages, (), rows.operations, rows.newest_id, None)
        if row not in scope.settled or row.role in TOOL_ROLES:
            raise JournalError(f"Message #{row.id} cannot be edited: it is empty, a tool's, or still in progress.")
        put_in = {*(view.kept - view.pinned), *(view.boundary.members if view.boundary else ())}
        is_last = row.id not in put_in and row not in view.folded and _ends_turn(row, view.messages)
        vain = {each.id for each in view.messages if each.turn_id == row.turn_id and not is_written(each)}
        return OpenMessage(target, row, scope, newest_change(rows.operations), is_last, replaced | vain)

    async def _read(self, target: Target, read: Callable[[Connection, View], _Read]) -> tuple[View, _Read]:
        """Return a thread's view and the result of ``read``; refuse while its last message is being answered again."""
        now = self.clock.now()
        await self.context.store.write(interrupted_replies.mark_interrupted, self.is_alive, now)
        request_settings = await self.context.request_settings(target)

        def together(connection: Connection) -> tuple[View, _Read]:
            view = self.context.read(connection, request_settings, now).view
            return view, read(connection, view)

        view, rows = await self.context.store.read(together)
        if any(row.status is Status.STREAMING and row.introduced_by is not None for row in view.messages):
            raise JournalError("The last message is being answered again. Edit the context when the reply is done.")
        return view, rows

    async def reword(self, opened: OpenMessage, words: str) -> None:
        """Put other words in the place of a message; raise an ``OvertakenError`` if the context has changed."""
        row, thread_id = opened.row, opened.target.thread_id
        wording = reworded(row, thread_id, words)
        act = Retry(frozenset({row.id, *opened.replaced}), Way.EDIT, message=row.id)
        new = NewOperation(opened.target.persona.slug, act, self.clock.now(), thread_id, members=(wording,))
        if not opened.is_last:
            members = tuple(wording if each.id == row.id else each.id for each in opened.scope.settled)
            edit, after = Edit(message=row.id), opened.scope.after_message_id
            new = new._replace(act=edit, after_message_id=after, members=members)
        if await self.context.store.write(introduce_unless_overtaken, new, opened.newest_change) is None:
            raise OvertakenError

    async def save(self, opened: OpenContext, text: str) -> EditCounts | None:
        """Make the edited text the context, and return the number of changes; ``None`` if there are none.

        Messages in context that were not shown stay. A text without messages changes nothing and returns zeros. An
        ``EditFormatError`` names the line that cannot be read. An ``OvertakenError`` says that the text is out of date.
        """
        sheet, persona = opened.sheet, opened.target.persona
        names = (persona.settings.nickname, *persona.settings.aliases)
        called = {persona.speakers.user: Role.USER} | dict.fromkeys(names, Role.ASSISTANT)
        thread_id = opened.target.thread_id
        members = await asyncio.to_thread(lambda: matched(parse(text, sheet.name, called), sheet, thread_id))
        if members == sheet.members:
            return None
        new = NewOperation(
            persona.slug,
            Edit(),
            self.clock.now(),
            thread_id,
            opened.scope.after_message_id,
            members=tuple(with_hidden(members, opened.scope)),
        )
        if not new.members:
            return EditCounts()
        if await self.context.store.write(introduce_unless_overtaken, new, opened.newest_change) is None:
            raise OvertakenError
        return edit_counts(members, sheet.members)._replace(all=len(new.members))


def _ends_turn(row: Message, seen: Sequence[Message]) -> bool:
    return next(each for each in reversed(seen) if each.turn_id == row.turn_id and is_written(each)) == row


def _to_reword(log: Connection, seen: Sequence[Message], number: int | None) -> Message:
    """Return message ``number`` in its present wording, or the newest reply; refuse a message outside the context."""
    if number is None:
        replies = (row for row in reversed(seen) if row.role is Role.ASSISTANT and is_filled(row))
        if reply := next((row for row in replies if row.status is not Status.STREAMING), None):
            return reply
        raise JournalError("There is no reply in context to edit. /edit 12 edits a message by its number.")
    id_ = present_wording(log, seen, number)
    if row := next((row for row in seen if row.id == id_), None):
        return row
    raise JournalError(NOT_IN_CONTEXT.format(number))


class OvertakenError(Exception):
    """Another operation has changed a context while it was being edited."""
