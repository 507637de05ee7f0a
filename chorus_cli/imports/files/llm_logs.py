"""Reads the log of the program llm, an SQLite file, without changing it.

Versions before 0.32 wrote prompts with replies; newer ones write trees of messages. A conversation may have both forms.
"""

from __future__ import annotations

import hashlib
import mimetypes
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from urllib.parse import quote

from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.files.source import Format, Opening, Source, or_skipped
from chorus_cli.imports.rules.assembly import Kind, Node, Said, assembled, nodes_of, path_to
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Reason, Skipped
from chorus_cli.log.rules.messages import Role
from chorus_cli.storage import foreign_code
from chorus_cli.storage.errors import GIVEN_UP
from chorus_cli.storage.files import read_within
from chorus_cli.storage.sqlite import SqliteConnection

SOURCE = "llm"

_KINDS = {"user": Kind.USER, "assistant": Kind.REPLY, "tool": Kind.RESULT}

_SIGNATURE = b"SQLite format 3\0"
_MOST_MESSAGES = 1_000_000

_FRAGMENTS = 'SELECT content FROM {table} JOIN fragments ON fragment_id = id WHERE response_id = ? ORDER BY "order"'
_ATTACHMENTS = """
    SELECT attachments.* FROM prompt_attachments JOIN attachments ON attachment_id = attachments.id
    WHERE response_id = ? ORDER BY "order"
"""
_PARTS = "SELECT * FROM parts WHERE message_hash = ? ORDER BY position"
# UNION, unlike UNION ALL, drops repeated rows, so the recursion ends even if the chain is a cycle.
_CHAINS = """
    WITH RECURSIVE chain(hash) AS (
        SELECT tip_message_hash FROM threads WHERE id = :thread
        UNION SELECT tip_message_hash FROM turns WHERE thread_id = :thread
        UNION SELECT messages.parent_hash FROM messages JOIN chain USING (hash) LIMIT :most
    )
    SELECT messages.* FROM messages JOIN chain USING (hash) ORDER BY messages.rowid
"""


class _LlmLog:
    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._path = path
        self._connection = connection
        self._tables = _tables(connection)

    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the conversations in the order of their ids, the order in which they began."""
        queries = {"threads": "SELECT id FROM threads", "responses": "SELECT conversation_id AS id FROM responses"}
        with _readable(self._path):
            rows = (row for table, query in queries.items() for row in self._rows(table, query))
            keys = sorted({values.text(row.get("id")) for row in rows})
        for key in keys:
            yield or_skipped(self._conversation, key) if key else Skipped("conversation without an id")

    def bytes_of(self, file: ForeignFile) -> bytes | None:
        """Return the bytes in the log, or those at the logged path if their hash has not changed, or ``None``."""
        with _readable(self._path):
            for row in self._rows("attachments", "SELECT content, path FROM attachments WHERE id = ?", file.entry):
                content = row.get("content")
                return content if isinstance(content, bytes) else _unchanged(row.get("path"), file.entry)
        return None

    def _conversation(self, key: str) -> ForeignConversation:
        with _readable(self._path):
            rows = self._rows("responses", "SELECT * FROM responses WHERE conversation_id = ? ORDER BY rowid", key)
            old = [piece for row in list(rows) for piece in self._response(row)]
            # A conversation that a newer llm continued has a name in both tables; the name in conversations is taken.
            thread = {**self._first("threads", key), **self._first("conversations", key)}
            new = list(self._messages(key))
        return _joined(ForeignConversation(SOURCE, key, values.line(thread.get("name"))), thread, old, new)

    def _first(self, table: str, key: object) -> values.Record:
        return next(self._rows(table, f"SELECT * FROM {table} WHERE id = ?", key), {})

    def _response(self, row: values.Record) -> Iterator[Said | Skipped]:
        """Yield the pieces of a row in this order: results of tools, prompt, reply, calls of tools."""
        id_, key = row.get("id"), values.identifier(row.get("id"))
        fragments, system = (
            [values.text(each.get("content")) for each in self._rows(table, _FRAGMENTS.format(table=table), id_)]
            for table in ("prompt_fragments", "system_fragments")
        )
        if system or values.text(row.get("system")):
            yield Skipped(Reason.SYSTEM_PROMPT)
        prompt = Said(f"{key}:prompt", Kind.USER, timestamp=values.moment(row.get("datetime_utc")), key=f"{key}:prompt")
        for result in self._rows("tool_results", "SELECT * FROM tool_results WHERE response_id = ? ORDER BY id", id_):
            call, tool = values.text(result.get("tool_call_id")), values.line(result.get("name"))
            text, result_key = values.text(result.get("output")), f"{key}:result/{values.identifier(result.get('id'))}"
            yield replace(prompt, kind=Kind.RESULT, text=text, key=result_key, call=call, tool=tool)
        text = "\n".join(filter(None, (*fragments, values.text(row.get("prompt")))))
        files = tuple(map(_file, self._rows("prompt_attachments", _ATTACHMENTS, id_)))
        yield replace(prompt, text=text, files=files)
        reply = Said(key, Kind.REPLY, "", prompt.timestamp, _model(row), key=key)
        yield replace(reply, text=values.text(row.get("response")), thoughts=values.text(row.get("reasoning")))
        calls = self._rows("tool_calls", "SELECT * FROM tool_calls WHERE response_id = ? ORDER BY id", id_)
        yield from (_call(reply, number, row.get("tool_call_id"), row) for number, row in enumerate(calls, 1))

    def _messages(self, thread: str) -> Iterator[Said]:
        """Yield the messages of all branches of a thread, each with the time of the turn that first wrote it."""
        chains = {"thread": thread, "most": _MOST_MESSAGES}
        rows = {values.text(row.get("hash")): row for row in self._rows("threads", _CHAINS, chains)}
        turns = self._turns(thread, rows)
        for key, row in rows.items():
            turn, role = turns.get(key, {}), values.text(row.get("role"))
            kind, parent = _KINDS.get(role), values.text(row.get("parent_hash")) or None
            skipped = "" if kind else Reason.SYSTEM_PROMPT if role == "system" else Reason.BROKEN_MESSAGE
            time = values.moment(turn.get("datetime_utc"))
            yield Said(key, None, "", time, parent=parent, skipped=skipped)
            if kind:
                model = None if kind is Kind.USER else _model(turn)
                yield from self._pieces(Said(key, kind, "", time, model, parent, key))

    def _pieces(self, said: Said) -> Iterator[Said]:
        rows = self._rows("parts", _PARTS, said.key)
        parts = [(row, values.record(values.parsed(row.get("payload")))) for row in rows]
        texts, thoughts = (
            [text for row, payload in parts if row.get("type") == kind and (text := self._text(row, payload))]
            for kind in ("text", "reasoning")
        )
        if said.kind is not Kind.RESULT:
            attached = [values.text(values.record(payload.get("attachment")).get("id")) for _, payload in parts]
            files = (_file(self._first("attachments", each) or {"id": each}) for each in filter(None, attached))
            yield replace(said, text="\n\n".join(texts), thoughts="\n\n".join(thoughts), files=tuple(files))
        calls = [(row, payload) for row, payload in parts if row.get("type") == "tool_call"]
        for number, (row, payload) in enumerate(calls, 1):
            yield _call(said, number, payload.get("tool_call_id"), {"name": row.get("tool_name"), **payload})
        for number, (row, payload) in enumerate(parts):
            if row.get("type") == "tool_result":
                call, tool = values.text(payload.get("tool_call_id")), values.line(row.get("tool_name"))
                text, result_key = values.text(payload.get("output")), f"{said.key}/{number}"
                yield replace(said, kind=Kind.RESULT, text=text, key=result_key, call=call, tool=tool)

    def _text(self, row: values.Record, payload: values.Record) -> str:
        """Return the text of a part; if only its payload has text, join the literals and fragments there."""
        return values.text(row.get("text")) or "".join(
            values.text(self._first("fragments", number).get("content"))
            if isinstance(number := piece.get("fragment"), int)
            else values.text(piece.get("literal"))
            for piece in values.records(payload.get("text_ref"))
        )

    def _turns(self, thread: str, messages: Mapping[str, values.Record]) -> dict[str, values.Record]:
        """Return the first turn of each message; turns of a fork count as later than turns of its origin."""
        written: dict[str, values.Record] = {}
        for each in reversed(self._origins(thread)):
            for turn in self._rows("turns", "SELECT * FROM turns WHERE thread_id = ? ORDER BY id", each):
                key = values.text(turn.get("tip_message_hash"))
                while key in messages and key not in written:
                    written[key] = turn
                    key = values.text(messages[key].get("parent_hash"))
        return written

    def _origins(self, thread: str) -> list[str]:
        """Return a thread and the threads that it was forked from, the oldest last."""
        origins: dict[str, None] = {}
        while thread and thread not in origins:
            origins[thread] = None
            thread = values.text(self._first("threads", thread).get("forked_from"))
        return list(origins)

    def _rows(self, table: str, query: str, bound: object = ()) -> Iterator[dict[str, object]]:
        """Yield the rows of a query; yield none if the log is too old or too new to have the table."""
        if table not in self._tables:
            return
        found = self._connection.execute(query, bound if isinstance(bound, (dict, tuple)) else (bound,))
        names = [column[0] for column in found.description]
        for row in found:
            yield dict(zip(names, row, strict=True))


def _call(said: Said, number: int, call: object, facts: values.Record) -> Said:
    tool, key = values.line(facts.get("name")), f"{said.key}/{number}"
    arguments = facts.get("arguments")
    return replace(said, kind=Kind.CALL, key=key, call=values.text(call), tool=tool, arguments=arguments)


def _model(row: values.Record) -> str | None:
    return values.line(row.get("resolved_model")) or values.line(row.get("model")) or None


def _joined(
    facts: ForeignConversation, thread: values.Record, old: Sequence[Said | Skipped], new: Sequence[Said]
) -> ForeignConversation:
    """Join the pieces that older and newer versions of llm wrote, ``old`` and ``new``, without repetitions.

    When a newer llm continues an older conversation, it writes the old messages again, without their times.
    """
    tip = values.text(thread.get("tip_message_hash")) or None
    before, nodes = nodes_of(old)[0], {node.key: node for node in nodes_of(new)[0]}
    path = path_to(tip, {node.key: node.parent for node in nodes.values()})
    said = [node for node in before if node.messages]
    written = [nodes[key] for key in path if nodes[key].messages]
    equal = takewhile(lambda pair: _words(pair[0]) == _words(pair[1]), zip(said, written, strict=False))
    known = {copy.key: original.key for original, copy in equal}
    end = before[-1].key if before else None
    # The roots of the newer pieces follow the end of the older ones.
    parents = {
        key: known.get(node.parent or "", node.parent if node.parent in nodes else end) for key, node in nodes.items()
    }
    answered = {each.call for each in old if isinstance(each, Said) and each.kind is Kind.CALL}
    kept = [
        replace(each, parent=parents[each.node])
        for each in new
        if each.node not in known and not (each.kind is Kind.RESULT and each.call in answered)
    ]
    leaf = known.get(tip or "", tip) or (end if not new else None)
    return assembled(facts, (*old, *kept), leaf)


def _words(node: Node) -> list[tuple[Role, str]]:
    return [(message.role, message.content) for message in node.messages]


def _tables(connection: sqlite3.Connection) -> frozenset[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return frozenset(str(name) for (name,) in found)


def _file(row: values.Record) -> ForeignFile:
    """Return a file of a prompt, named by the end of its path or address, or by its media type if it has neither."""
    key, media_type = values.text(row.get("id")), values.line(row.get("type"))
    where = values.text(row.get("path")) or values.text(row.get("url")).partition("?")[0]
    name = values.line(where.rstrip("/").rpartition("/")[2])
    return ForeignFile(name or f"attachment{mimetypes.guess_extension(media_type) or ''}", media_type, key)


def _unchanged(path: object, sha256: str) -> bytes | None:
    """Return the bytes of a file if they have this hash, so that a forged log cannot bring in another file."""
    with suppress(OSError, ValueError):
        data = read_within(Path(str(path)), limits.IMPORTED_ENTRY)
        return data if hashlib.sha256(data).hexdigest() == sha256 else None
    return None


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        is_endless = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT
        reason = GIVEN_UP if is_endless else error
        raise ImportFormatError(f"{path} cannot be read as the log of llm: {reason}.") from error


def _opened(opening: Opening) -> Source | None:
    if not opening.beginning.startswith(_SIGNATURE):
        return None
    address = f"file:{quote(str(opening.path.absolute()))}?mode=ro"
    with _readable(opening.path):
        # One thread may open the log and another thread may read it, but never at the same time.
        connection = sqlite3.connect(address, uri=True, check_same_thread=False, factory=SqliteConnection)
        opening.resources.callback(connection.close)
        connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
        if _is_log(connection):
            log = _LlmLog(connection, opening.path)
            return Source(log.conversations, log.bytes_of)
    return None


def _is_log(connection: sqlite3.Connection) -> bool:
    try:
        foreign_code.read_tables_only(connection)
        names = _tables(connection)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        return False
    return "_llm_migrations" in names or {"responses", "conversations"} <= names


LLM_LOG = Format("the log of llm", "logs.db, which `llm logs path` finds", _opened)
