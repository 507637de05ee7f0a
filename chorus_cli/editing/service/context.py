"""Editing a context as a text: written out, read back, and applied by one operation."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.context.rows.thread_views import editable_rows, introduce_unless_overtaken, newest_change
from chorus_cli.core.errors import JournalError
from chorus_cli.editing.rules import format as edit_format
from chorus_cli.editing.rules.counts import EditCounts, edit_counts
from chorus_cli.editing.rules.lines import CONTEXT_LINE
from chorus_cli.editing.rules.matching import Added, Kept, laid_out, matched
from chorus_cli.editing.rules.scope import edit_scope, with_hidden
from chorus_cli.log.rows import interrupted_replies
from chorus_cli.log.rules.acts import Edit
from chorus_cli.log.rules.messages import MessageContent, Status
from chorus_cli.log.rules.operations import NewOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from chorus_cli.context.rows.thread_views import EditableRows
    from chorus_cli.context.rules.view import ContextSnapshot, RequestSettings
    from chorus_cli.context.service.context import Context
    from chorus_cli.editing.rules.matching import Member, Sheet
    from chorus_cli.editing.rules.scope import EditScope
    from chorus_cli.log.rules.messages import Message
    from chorus_cli.machine.ports import Clock
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.storage.store import Connection


@dataclass(frozen=True, slots=True)
class OpenContext:
    """A context that is being edited: its text, its rows, and the newest operation on it when it was opened.

    ``line``, counted from 1, is the line of the text that marks the start of the context.
    """

    target: Target
    sheet: Sheet
    line: int
    scope: EditScope
    newest_change: int


@dataclass(frozen=True, slots=True)
class EditedContext:
    """Number of messages in the context after an edit, and how many the edit changed."""

    messages: int
    counts: EditCounts


@dataclass(frozen=True, slots=True)
class ContextEditing:
    """Writes contexts out as text and applies the edited text; ``run`` names this process."""

    context: Context
    clock: Clock
    is_alive: Callable[[str], bool]
    run: str

    async def open(self, target: Target, shown_since: datetime | None = None) -> OpenContext:
        """Write out the thread's history and its context, only messages after ``shown_since`` if that is given.

        Raises:
            JournalError: a retry is in progress, so it is open which reply will be in context.
        """
        now = self.clock.now()
        await self.context.store.write(interrupted_replies.mark_interrupted, self.is_alive, now)
        request_settings = await self.context.request_settings(target)
        snapshot, rows = await self.context.store.read(self._read, request_settings, now, shown_since)
        view = snapshot.view
        self._refuse_retry(view.messages, target.thread_number)
        scope = edit_scope(view.messages, rows.history, rows.operations, rows.newest_id, shown_since)
        sheet = await asyncio.to_thread(laid_out, target.persona.name, scope.before, scope.context)
        return OpenContext(target, sheet, _context_line(sheet.text), scope, newest_change(rows.operations))

    def _refuse_retry(self, messages: Iterable[Message], number: int) -> None:
        writers = [row.run for row in messages if row.status is Status.STREAMING and row.introduced_by is not None]
        if self.run in writers:
            raise JournalError(
                f"The last message of thread #{number} is being answered again here; /thread {number} shows the reply. "
                "Edit the context when it is done."
            )
        if writers:
            raise JournalError("A reply is being written by another Chorus. Edit the context when it is done.")

    def _read(
        self, connection: Connection, request_settings: RequestSettings, now: datetime, shown_since: datetime | None
    ) -> tuple[ContextSnapshot, EditableRows]:
        target = request_settings.target
        rows = editable_rows(connection, target.persona.slug, target.thread_id, shown_since)
        return self.context.read(connection, request_settings, now), rows

    async def save(self, opened: OpenContext, text: str, *, header_like_is_text: bool = False) -> EditedContext | None:
        """Make the edited text the context, and return the numbers of messages; ``None`` if it has no changes.

        Messages in context that were not shown stay, before the rest. A text without messages changes nothing. A line
        that only looks like a header is refused unless ``header_like_is_text``.

        Raises:
            HeaderLikeError: the text has such a line.
            EditFormatError: the text cannot be read; the error has the line.
            OvertakenError: another operation has changed the context meanwhile, so the text is out of date.
        """
        sheet = opened.sheet
        edit = await asyncio.to_thread(
            lambda: matched(edit_format.parse(text, sheet.name, header_like_is_text=header_like_is_text), sheet)
        )
        if not edit.changed:
            return None
        rows = {row.id: row for row in (*opened.scope.before, *opened.scope.settled)}
        members = with_hidden(edit.members, opened.scope)
        new = NewOperation(
            opened.target.persona.slug,
            Edit(),
            self.clock.now(),
            thread_id=opened.target.thread_id,
            after_message_id=opened.scope.after_message_id,
            members=tuple(_stored(member, rows, opened.target.thread_id) for member in members),
        )
        if not new.members:
            return EditedContext(0, EditCounts())
        stored = await self.context.store.write(introduce_unless_overtaken, new, opened.newest_change)
        if stored is None:
            raise OvertakenError
        return EditedContext(len(new.members), edit_counts(edit, [row.id for row in opened.scope.context]))


class OvertakenError(Exception):
    """Another operation has changed a context while it was being edited."""


def _context_line(text: str) -> int:
    """Return the line, counted from 1, that marks the start of the context in a text written by `open`.

    No line of a message can be taken for it, because such lines are escaped.
    """
    return text.count("\n", 0, text.index(f"\n{CONTEXT_LINE}\n")) + 2


def _stored(member: Member, rows: dict[int, Message], thread_id: int) -> int | MessageContent:
    if isinstance(member, Kept):
        return member.message_id
    if isinstance(member, Added):
        return MessageContent(thread_id, member.role, member.text, member.timestamp, attachments=member.attachments)
    row = rows[member.message_id]
    return MessageContent(
        thread_id,
        row.role,
        member.text,
        row.timestamp,
        row.turn_id,
        revises=row.id,
        preamble=row.preamble,
        model=row.model,
        attachments=member.attachments,
    )
