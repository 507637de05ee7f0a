"""The log: every message of every persona. Rows are added and never deleted; a purge leaves an empty row.

``open_turn`` stores a turn, and ``begin_call`` and ``end_call`` its tool calls. ``insert_members`` and
``open_retry`` store the messages of an operation. Of the stored rows, only those in progress change their words.
"""

from __future__ import annotations

import json
from datetime import timedelta
from functools import cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from chorus_cli.core.errors import MessageDamagedError
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows.thread_rows import OWN
from chorus_cli.log.rules import attachments
from chorus_cli.log.rules.messages import UNMEASURED, Message, MessageContent, Role, Status, Thought
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection, FinishedRows, Parameters, Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from chorus_cli.log.rules.messages import Thoughts
    from chorus_cli.log.rules.operations import NewOperation, Operation

COLUMNS = (
    "id, persona, thread_id, COALESCE(turn_id, id), role, content, timestamp, preamble, tool_calls, tool_call_id, "
    "status, run, model, token_count, introduced_by, revises, usage, attachments, superseded, reply_id, "
    "reasoning IS NOT NULL OR thought_tokens IS NOT NULL, thought_seconds, thought_tokens"
)

# A cache finds a member several times as fast as the enum does, and a long view has a thousand rows.
_role, _status = cache(Role), cache(Status)


def messages(cursor: Iterable[tuple[Any, ...]]) -> list[Message]:
    """Return the messages in rows of ``COLUMNS``; raise `MessageDamagedError` if one cannot be read."""
    found: list[Message] = []
    for row in list(cursor):
        # `Message` gets its fields by position: by name, a large request would take a third longer.
        id_, persona, thread_id, turn_id, role, content, timestamp, preamble, calls, call_id, status, *rest = row
        run, model, token_count, introduced_by, revises, usage, attached, superseded, reply_id, *thought = rest
        try:
            said = _role(role), content, timestamps.from_text(timestamp), preamble, calls, call_id, _status(status)
            counts = dict(json.loads(usage)) if usage else {}
            files = attachments.from_text(attached) if attached else ()
        except (ValueError, TypeError) as error:
            raise MessageDamagedError(f"Message {id_} of {persona} ({timestamp}) cannot be read: {error}.") from error
        place, state = (id_, persona, thread_id, turn_id), (run, model, token_count, introduced_by, revises)
        thought_of = Thought(*thought[1:]) if thought[0] else None
        found.append(Message._make((*place, *said, *state, counts, files, bool(superseded), reply_id, thought_of)))
    return found


def counted_moment(text: str | None) -> datetime | None:
    """Return a row's time; ``None`` if it cannot be read. Reading the whole message reports the error."""
    try:
        return timestamps.from_text(text) if text else None
    except ValueError:
        return None


PAGE_ROWS = 500
THERE = "purged_by IS NULL"  # SQL: a message was not purged
_OF_SMALL_THREAD = (
    "id IN (SELECT id FROM messages INDEXED BY messages_of_thread WHERE thread_id = :thread_id AND id > :after)"
)
_LATEST = "9999-12-31T23:59:59.999999Z"
_OF_PERSONA = (
    f"persona = :persona AND (:thread_id IS NULL OR thread_id = :thread_id) AND timestamp > :since AND {THERE}"
)


def open_turn(
    connection: Connection, persona: str, question: MessageContent, model: str, run: str, *, aside: bool = False
) -> tuple[Message, Message]:
    """Store a question and the empty reply that ``run`` will write; unless ``aside``, the next run opens the thread."""
    asked = inserted(connection, persona, question)
    connection.execute("UPDATE messages SET turn_id = id WHERE id = ?", (asked.id,))
    answered = inserted(
        connection, persona, empty_reply(question.thread_id, asked.id, question.timestamp, model), run=run
    )
    if not aside:
        meta_rows.store(connection, meta_rows.LAST_PERSONA, persona)
        meta_rows.store(connection, meta_rows.LAST_THREAD + persona, str(question.thread_id))
    return asked, answered


def reopen_thread(connection: Connection, thread_id: int) -> Rows:
    """Open a closed thread again; the ``rowcount`` is 0 if it was open already, or belongs to an earlier persona."""
    return connection.execute(
        f"UPDATE threads SET closed_at = NULL WHERE id = :id AND closed_at IS NOT NULL AND {OWN}", {"id": thread_id}
    )


def open_retry(
    connection: Connection,
    question: Message,
    retry: Operation,
    model: str,
    run: str,
    continued: Message | None = None,
) -> Message:
    """Store, in the turn of ``question``, the empty reply that process ``run`` is going to write for a retry.

    The returned reply begins with the words of ``continued``, if given; the row gets them with the first new words.
    """
    thread_id = question.thread_id if retry.thread_id is None else retry.thread_id
    reply = empty_reply(thread_id, question.turn_id, retry.created_at, model)
    if continued is not None:
        reply = reply._replace(turn_id=continued.turn_id, revises=continued.id)
    (row,) = rows(connection, [insert_row(connection, question.persona, reply, introduced_by=retry.id, run=run)])
    return row._replace(content=continued.content) if continued is not None else row


def insert_members(connection: Connection, operation_id: int, new: NewOperation) -> list[int]:
    """Store the new messages among an operation's members, and return the ids of all members in their order."""
    known = turns_of(connection, [member for member in new.members if isinstance(member, int)])
    turn_of_thread: dict[int, int] = {}
    ids: list[int] = []
    for member in new.members:
        if isinstance(member, int):
            # The database itself refuses an id that is not in the log.
            id_, (thread_id, turn_id) = member, known.get(member, (0, member))
        else:
            previous = None if member.role is Role.USER else turn_of_thread.get(member.thread_id)
            thread_id, chosen = member.thread_id, member.turn_id or previous
            id_ = insert_row(connection, new.persona, member._replace(turn_id=chosen), introduced_by=operation_id)
            turn_id = chosen or id_
        # A new message may answer a message of another thread, because a fork has such messages in its context.
        turn_of_thread[new.thread_id or thread_id] = turn_id
        ids.append(id_)
    return ids


def update_reply(connection: Connection, reply: Message, thoughts: Thoughts | None = None) -> None:
    """Write a reply as far as it has arrived; do nothing if its row is complete or belongs to another process."""
    timestamp = timestamps.to_text(reply.timestamp)
    connection.execute(
        "UPDATE messages SET content = ?, timestamp = ?, status = ?, token_count = ?, usage = ?, checksum = ?, "
        "reasoning = ?, thought_parts = ?, thought_seconds = ?, thought_tokens = ? "
        "WHERE id = ? AND run IS ? AND status <> 'complete'",
        (
            reply.content,
            timestamp,
            reply.status,
            reply.token_count,
            json.dumps(dict(reply.usage)) if reply.usage else None,
            checksum(reply.role, reply.thread_id, reply.persona, timestamp, reply.content),
            (thoughts and thoughts.text) or None,
            (thoughts and thoughts.parts) or None,
            *(reply.thought or UNMEASURED),
            reply.id,
            reply.run,
        ),
    )


def turns_of(connection: Connection, ids: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Return the thread and the turn of each message of these ids."""
    found = connection.execute(
        "SELECT id, thread_id, COALESCE(turn_id, id) FROM messages WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    ).fetchall()
    return {id_: (thread_id, turn_id) for id_, thread_id, turn_id in found}


def rows(connection: Connection, ids: Iterable[int]) -> list[Message]:
    """Return the messages of these ids, in the order of the log; unknown and purged ones are passed over."""
    among = f"WHERE id IN (SELECT value FROM json_each(?)) AND {THERE} ORDER BY id"
    return _selected(connection, among, (json.dumps(list(ids)),))


def _selected(connection: Connection, condition: str, parameters: Parameters) -> list[Message]:
    return messages(connection.execute(f"SELECT {COLUMNS} FROM messages {condition}", parameters))


def newer(connection: Connection, thread_id: int, after: int | None, ids: Iterable[int]) -> tuple[int, list[Message]]:
    """Return the newest id of all, and the messages said in a thread after ``after`` (``None``: none) or in ``ids``."""
    said = (
        "WHERE thread_id = ? AND (id > ? OR id IN (SELECT value FROM json_each(?))) "
        f"AND (introduced_by IS NULL OR run IS NOT NULL) AND {THERE} ORDER BY id"
    )
    return newest_id(connection), _selected(connection, said, (thread_id, after, json.dumps([*ids])))


def of_turn(connection: Connection, turn_id: int) -> list[Message]:
    """Return the messages of a turn, including purged ones, in the order of the log."""
    of_turn = "WHERE id >= :turn AND (id = :turn OR turn_id = :turn) ORDER BY id"
    return _selected(connection, of_turn, {"turn": turn_id})


def rows_since(
    connection: Connection, thread_id: int, after: int, since: datetime, until: datetime | None = None
) -> list[Message]:
    """Return the rows of a thread with larger ids than ``after`` and times after ``since`` and up to ``until``.

    Times are compared as text, so a row of the same second as a limit may be returned too; the caller must compare the
    exact times. The query names its index, because SQLite with statistics might read the whole log by id instead.
    """
    cursor = connection.execute(
        "SELECT id FROM messages INDEXED BY messages_of_thread "
        "WHERE thread_id = ? AND timestamp > ? AND timestamp <= ? AND id > ? ORDER BY id",
        (thread_id, timestamps.to_text(since), timestamps.to_text(until) if until else _LATEST, after),
    )
    finished: FinishedRows[Message] = getattr(connection, "finished_rows", None) or FinishedRows()
    return finished.read(connection, (id_ for (id_,) in cursor), partial(sized, connection))


def sized(connection: Connection, ids: Iterable[int]) -> Iterator[tuple[int, Message, int | None]]:
    """Yield each id, its message, and its number of characters (``None``: the message may still change)."""
    for message in rows(connection, ids):
        is_finished = message.status is Status.COMPLETE and message.token_count is not None
        characters = len(message.content) + len(message.preamble) + len(message.tool_calls or "")
        yield message.id, message, characters if is_finished else None


def replies(connection: Connection, question: Message) -> list[Message]:
    """Return the other rows of the turn that ``question`` opened."""
    before = question.timestamp - timedelta(seconds=1)
    return [
        row for row in rows_since(connection, question.thread_id, question.id, before) if row.turn_id == question.id
    ]


def history(
    connection: Connection, persona: str, thread_id: int | None, since: datetime | None, after: int
) -> list[Message]:
    """Return the next page of a persona's messages after an id, in the order of the log; empty at the end."""
    # If the thread is a small part of the log, as after an import, only its own rows are read.
    is_small = thread_id is not None and _is_small(connection, thread_id)
    selection = {"persona": persona, "thread_id": thread_id, "since": timestamps.to_text(since) if since else ""}
    newer = _OF_SMALL_THREAD if is_small else "id > :after"
    page = f"NOT INDEXED WHERE {newer} AND {_OF_PERSONA} ORDER BY id LIMIT :rows"
    return _selected(connection, page, {**selection, "after": after, "rows": PAGE_ROWS})


def id_before_newest(
    connection: Connection, persona: str, thread_id: int | None, since: datetime | None, number: int
) -> int:
    """Return the id of the message before a persona's newest ``number`` messages; 0 if there is none."""
    selection = {"persona": persona, "thread_id": thread_id, "since": timestamps.to_text(since) if since else ""}
    row = connection.execute(
        f"SELECT id FROM messages NOT INDEXED WHERE {_OF_PERSONA} ORDER BY id DESC LIMIT 1 OFFSET :number",
        {**selection, "number": number},
    ).fetchone()
    return int(row[0]) if row else 0


def newest_id(connection: Connection) -> int:
    """Return the id of the newest message of all, 0 when there is none."""
    (newest,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()
    return int(newest)


def newest_turn_id(connection: Connection, thread_id: int) -> int:
    """Return the id of the newest turn of a thread, 0 when nothing was said in it."""
    if _is_small(connection, thread_id):
        query = "SELECT MAX(id) FROM messages WHERE thread_id = ? AND COALESCE(turn_id, id) = id"
    else:
        # The plus sign keeps SQLite from using the index by time: reading back from the newest id ends soon.
        query = "SELECT id FROM messages WHERE +thread_id = ? AND COALESCE(turn_id, id) = id ORDER BY id DESC LIMIT 1"
    row = connection.execute(query, (thread_id,)).fetchone()
    return int(row[0] or 0) if row else 0


def questions(connection: Connection, thread_id: int) -> list[Message]:
    """Return the first message of each turn of a thread, except turns that an operation put in."""
    first = "thread_id = ? AND introduced_by IS NULL AND COALESCE(turn_id, id) = id"
    return _selected(connection, f"INDEXED BY messages_of_thread WHERE {first}", (thread_id,))


def _is_small(connection: Connection, thread_id: int) -> bool:
    """Return whether a thread has less than a tenth of all messages."""
    of_thread = "SELECT COUNT(*) FROM messages INDEXED BY messages_of_thread WHERE thread_id = ?"
    (number,) = connection.execute(of_thread, (thread_id,)).fetchone()
    return bool(number * 10 < newest_id(connection))


def checksum(role: str, thread_id: int, persona: str, timestamp: str, content: str) -> str:
    """Return a fingerprint, by which a later change of the row is found: 8 bytes of BLAKE2b in hexadecimal digits."""
    text = f"{role}|{thread_id}|{persona}|{timestamp}|{content}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def empty_reply(thread_id: int, turn_id: int, timestamp: datetime, model: str) -> MessageContent:
    """Return the content of a reply that is going to be written."""
    return MessageContent(
        thread_id, Role.ASSISTANT, "", timestamp, turn_id, status=Status.STREAMING, model=model, token_count=0
    )


def insert_row(
    connection: Connection,
    persona: str,
    content: MessageContent,
    *,
    introduced_by: int | None = None,
    run: str | None = None,
) -> int:
    """Store a message, and return its id."""
    values = _values(persona, content, introduced_by, run)
    return int(connection.execute(f"{_insertion(values)} RETURNING id", tuple(values.values())).fetchone()[0])


class ImportedRow(NamedTuple):
    """An imported message with its id here; ``origin`` is the installation that made it, and its id there."""

    id: int
    content: MessageContent
    origin: tuple[str, int] | None


def insert_imported(connection: Connection, persona: str, imported: Sequence[ImportedRow], introduced_by: int) -> None:
    """Store messages under their ids."""
    rows = [{**_values(persona, each.content, introduced_by, origin=each.origin), "id": each.id} for each in imported]
    connection.executemany(_insertion(rows[0]), [tuple(row.values()) for row in rows])


def inserted(connection: Connection, persona: str, content: MessageContent, *, run: str | None = None) -> Message:
    """Store a message, and return it as it is stored."""
    values = _values(persona, content, run=run)
    (message,) = messages(connection.execute(f"{_insertion(values)} RETURNING {COLUMNS}", tuple(values.values())))
    return message


def _values(
    persona: str,
    content: MessageContent,
    introduced_by: int | None = None,
    run: str | None = None,
    origin: tuple[str, int] | None = None,
) -> dict[str, object]:
    timestamp = timestamps.to_text(content.timestamp)
    values: dict[str, object] = content._asdict()
    del values["thought"]
    values["thought_seconds"], values["thought_tokens"] = content.thought or UNMEASURED
    values["origin"], values["origin_seq"] = origin or (None, None)
    values |= {
        "persona": persona,
        "timestamp": timestamp,
        "checksum": checksum(content.role, content.thread_id, persona, timestamp, content.content),
        "attachments": attachments.to_text(content.attachments) if content.attachments else None,
        "introduced_by": introduced_by,
        "run": run,
        "superseded": int(content.superseded),
    }
    return values


def _insertion(values: Mapping[str, object]) -> str:
    return f"INSERT INTO messages({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"


def begin_call(connection: Connection, reply: Message, thoughts: Thoughts, call: MessageContent) -> list[Message]:
    """Store the end of a reply, and the first of its tool calls as a row in progress; return both rows."""
    update_reply(connection, reply, thoughts)
    return rows(connection, [reply.id, _follow(connection, reply, call)])


def end_call(connection: Connection, call: Message, following: Sequence[MessageContent]) -> list[Message]:
    """Mark a call as complete, and store the rows that follow it; return the call and these rows."""
    connection.execute(
        "UPDATE messages SET status = 'complete' WHERE id = ? AND run IS ? AND status = 'streaming'",
        (call.id, call.run),
    )
    stored = [_follow(connection, call, content) for content in following]
    return rows(connection, [call.id, *stored])


def _follow(connection: Connection, before: Message, content: MessageContent) -> int:
    return insert_row(connection, before.persona, content, introduced_by=before.introduced_by, run=before.run)
