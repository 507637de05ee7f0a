"""Reads whole threads as conversations: from this log for an export, from another log for an import.

An imported message keeps the key from its source. The key of any other message names the installation that made the
message, and the position of the message in the log there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chorus_cli.core.json import values
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, ForeignMessage, thought_of
from chorus_cli.log.rows import message_rows, operation_rows, thread_lists, thread_rows
from chorus_cli.log.rows.message_rows import counted_moment
from chorus_cli.log.rules.acts import Retry
from chorus_cli.log.rules.journal import log_marks
from chorus_cli.log.rules.log_acts import Greeting, Import
from chorus_cli.log.rules.messages import UNMEASURED, Message, Role, Status
from chorus_cli.log.rules.operations import Operation
from chorus_cli.storage.port import Connection

OWN_SOURCE = "chorus"


class ThreadOfPersona(NamedTuple):
    """A thread, and its persona's slug."""

    persona: str
    thread_id: int


class _Facts(NamedTuple):
    key: str
    is_imported: bool
    imported_parent: str | None
    reasoning: str | None
    thought_parts: str | None


def threads(connection: Connection, persona: str | None = None) -> list[ThreadOfPersona]:
    """Return all threads with messages, or only those of ``persona``; leave out undone imports and deleted personas."""
    found = connection.execute(
        f"SELECT persona, id FROM threads WHERE (:persona IS NULL OR persona = :persona) AND {thread_rows.OWN} "
        "AND EXISTS (SELECT 1 FROM messages WHERE messages.thread_id = threads.id AND purged_by IS NULL) "
        "ORDER BY persona, id",
        {"persona": persona},
    ).fetchall()
    hidden = {slug: thread_lists.withdrawn_threads(connection, slug) for slug in {slug for slug, _ in found}}
    return [ThreadOfPersona(slug, id_) for slug, id_ in found if id_ not in hidden[slug]]


def conversation(connection: Connection, thread: ThreadOfPersona) -> ForeignConversation:
    """Return a thread with all its messages.

    A message is not on the live branch if it was undone or replaced, or if an edit or a restored session put it in.
    """
    found = connection.execute(
        f"SELECT id FROM messages WHERE thread_id = ? AND {message_rows.THERE}", (thread.thread_id,)
    ).fetchall()
    rows = sorted(message_rows.rows(connection, [id_ for (id_,) in found]), key=lambda row: (row.turn_id, row.id))
    facts = _facts(connection, thread.thread_id)
    operations = operation_rows.all_of(connection, thread.persona, thread.thread_id)
    rows, off = _off_branch(rows, operations, thread.thread_id)
    parents = _parents(rows, off)
    title, created_at = connection.execute(
        "SELECT title, created_at FROM threads WHERE id = ?", (thread.thread_id,)
    ).fetchone()
    known = connection.execute(
        "SELECT source, conversation FROM imported_conversations WHERE thread_id = ?", (thread.thread_id,)
    ).fetchone()
    source, key = known or (OWN_SOURCE, facts[min(facts)].key)
    return ForeignConversation(
        source=source,
        key=key,
        title=values.line(title),
        messages=tuple(_message(row, facts, parents[row.id]) for row in rows),
        live=tuple(facts[row.id].key for row in rows if row.id not in off),
        created_at=counted_moment(created_at),
        persona=thread.persona,
    )


def _off_branch(rows: list[Message], operations: Sequence[Operation], thread_id: int) -> tuple[list[Message], set[int]]:
    """Return the rows, and the ids of rows on other branches; leave out rows of undone imports if other rows remain."""
    imports = {each.id for each in operations if isinstance(each.act, Import)}
    said_by = {None, *imports, *(each.id for each in operations if isinstance(each.act, Retry | Greeting))}
    marks = log_marks(operations, thread_id)
    withdrawn = marks.undone_operations & imports
    kept = [row for row in rows if row.introduced_by not in withdrawn] or rows
    return kept, {row.id for row in kept if marks.is_out(row) or row.introduced_by not in said_by}


def _facts(connection: Connection, thread_id: int) -> dict[int, _Facts]:
    found = connection.execute(
        "SELECT messages.id, COALESCE(message, COALESCE(origin, (SELECT origin FROM installation)) || '-' || "
        "COALESCE(origin_seq, messages.id)), message IS NOT NULL, parent, reasoning, thought_parts FROM messages "
        "LEFT JOIN (SELECT message_id, message, parent FROM imported_messages WHERE conversation_id IN "
        "(SELECT id FROM imported_conversations WHERE thread_id = :thread)) AS known ON message_id = messages.id "
        "WHERE thread_id = :thread",
        {"thread": thread_id},
    )
    return {id_: _Facts(*facts) for id_, *facts in found}


def _parents(rows: Sequence[Message], off: set[int]) -> dict[int, int | None]:
    """Return each message's parent: for the first of a turn, the last live message; else the one before in its reply.

    The first message of a reply has its question as parent, in the newest wording so far, and none if that is purged.
    """
    parents: dict[int, int | None] = {}
    last_of: dict[tuple[int, int | None], int] = {}
    last_live: int | None = None
    questions: dict[int, int] = {}
    for row in rows:
        attempt = (row.turn_id, row.introduced_by)
        parents[row.id] = last_live if row.id == row.turn_id else last_of.get(attempt, questions.get(row.turn_id))
        last_of[attempt] = row.id
        questions |= {row.turn_id: row.id} if row.role is Role.USER else {}
        last_live = last_live if row.id in off else row.id
    return parents


def _message(row: Message, facts: dict[int, _Facts], parent: int | None) -> ForeignMessage:
    own = facts[row.id]
    above = own.imported_parent if own.is_imported else facts[parent].key if parent is not None else None
    return ForeignMessage(
        key=own.key,
        parent=above,
        role=row.role,
        content=row.content,
        timestamp=row.timestamp,
        model=row.model,
        status=Status.INTERRUPTED if row.status is Status.STREAMING else row.status,
        tool_calls=row.tool_calls,
        tool_call_id=row.tool_call_id,
        reasoning=own.reasoning,
        thought_parts=own.thought_parts,
        thought=thought_of(*(row.thought or UNMEASURED)),
        files=tuple(ForeignFile(each.name, each.media_type, each.sha256) for each in row.attachments),
    )
