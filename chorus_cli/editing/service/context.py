"""Editing a context as a text: writes the text, reads the edited text, and applies it by one operation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from chorus_cli.context.rows.thread_views import EditableRows, editable_rows, introduce_unless_overtaken, newest_change
from chorus_cli.context.rules.view import ContextSnapshot, RequestSettings
from chorus_cli.context.service.context import Context
from chorus_cli.core.errors import JournalError
from chorus_cli.editing.rules.format import CONTEXT_LINE, parse
from chorus_cli.editing.rules.matching import EditCounts, EditScope, Sheet, edit_scope, laid_out, matched, with_hidden
from chorus_cli.log.rows import interrupted_replies
from chorus_cli.log.rules.acts import Edit
from chorus_cli.log.rules.messages import Status
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.machine.ports import Clock
from chorus_cli.personas.rules.persona import Target
from chorus_cli.storage.store import Connection


class OpenContext(NamedTuple):
    """A context in the editor: its text, the number of the line at which it starts, its rows, and its newest change."""

    target: Target
    sheet: Sheet
    line: int
    scope: EditScope
    newest_change: int


@dataclass(frozen=True, slots=True)
class ContextEditing:
    """Writes contexts out as text and applies the edited text; ``run`` names this process."""

    context: Context
    clock: Clock
    is_alive: Callable[[str], bool]
    run: str

    async def open(self, target: Target, shown_since: datetime | None = None) -> OpenContext:
        """Write the text of a thread's history and context; with ``shown_since``, only of messages after this time."""
        now = self.clock.now()
        await self.context.store.write(interrupted_replies.mark_interrupted, self.is_alive, now)
        request_settings = await self.context.request_settings(target)
        snapshot, rows = await self.context.store.read(self._read, request_settings, now, shown_since)
        view = snapshot.view
        writers = [row.run for row in view.messages if row.status is Status.STREAMING and row.introduced_by is not None]
        if self.run in writers:
            number = target.thread_number
            raise JournalError(
                f"The last message of thread #{number} is being answered again here; /thread {number} shows the reply. "
                "Edit the context when the reply is done."
            )
        if writers:
            raise JournalError("Another Chorus is writing a reply. Edit the context when the reply is done.")
        scope = edit_scope(view.messages, rows.history, rows.operations, rows.newest_id, shown_since)
        sheet = await asyncio.to_thread(laid_out, target.persona.name, scope.before, scope.context)
        # The first line like the mark is the mark, because such a line in a message is escaped.
        line = sheet.text.count("\n", 0, sheet.text.index(f"\n{CONTEXT_LINE}\n")) + 2
        return OpenContext(target, sheet, line, scope, newest_change(rows.operations))

    def _read(
        self, connection: Connection, request_settings: RequestSettings, now: datetime, shown_since: datetime | None
    ) -> tuple[ContextSnapshot, EditableRows]:
        target = request_settings.target
        rows = editable_rows(connection, target.persona.slug, target.thread_id, shown_since)
        return self.context.read(connection, request_settings, now), rows

    async def save(self, opened: OpenContext, text: str) -> EditCounts | None:
        """Make the edited text the context, and return the number of changes; ``None`` if there are none.

        Messages in context that were not shown stay. A text without messages changes nothing and returns zeros.

        Raises:
            EditFormatError: the text cannot be read; the error names the line.
            OvertakenError: another operation has changed the context meanwhile, so the text is out of date.
        """
        sheet = opened.sheet
        edit = await asyncio.to_thread(lambda: matched(parse(text, sheet.name), sheet, opened.target.thread_id))
        if not edit.is_changed:
            return None
        new = NewOperation(
            opened.target.persona.slug,
            Edit(),
            self.clock.now(),
            thread_id=opened.target.thread_id,
            after_message_id=opened.scope.after_message_id,
            members=tuple(with_hidden(edit.members, opened.scope)),
        )
        if not new.members:
            return EditCounts()
        stored = await self.context.store.write(introduce_unless_overtaken, new, opened.newest_change)
        if stored is None:
            raise OvertakenError
        return edit.counts._replace(all=len(new.members))


class OvertakenError(Exception):
    """Another operation has changed a context while it was being edited."""
