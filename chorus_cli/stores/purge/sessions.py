"""Saved sessions without purged texts: their rows and their files.

A session loses the messages, and with one of them its summary; one that has none left is deleted.
"""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chorus_cli.core.errors import PurgeError, SessionError
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.messages import Role
from chorus_cli.memory.rules.recall import without_items
from chorus_cli.sessions import files as session_files
from chorus_cli.sessions.rules import format as session_format
from chorus_cli.sessions.rules.format import candidates
from chorus_cli.stores.purge.files import FileChange
from chorus_cli.stores.purge.selection import in_calls, text_of
from chorus_cli.stores.rules.purging import is_part, words_in_line

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from chorus_cli.log.rules.messages import MessageContent
    from chorus_cli.sessions.rules.format import SavedThread, Session
    from chorus_cli.stores.purge.concerned import Concerned

_PURGED = "purged"
_FAULTS = frozenset({errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""The errors of a machine that cannot read a session now, which is no fault of the session."""
_TOOLS = frozenset({Role.TOOL_USE, Role.TOOL_RESULT})


@dataclass(frozen=True, slots=True)
class SavedTexts:
    """Recognises purged texts in sessions.

    ``messages`` are role, time and text of the purged messages, ``lines`` their words by persona, and ``summaries`` the
    texts of purged summaries.
    """

    found: Concerned
    messages: frozenset[tuple[str, str, str]]
    lines: Mapping[str, str]
    summaries: frozenset[str]

    def purged(self, session: Session) -> Session:
        """Return a session without purged texts; the same one if it has none."""
        persona = session.persona
        kept = tuple(self._message(each, persona) for each in session.messages if not self._is_gone(each, persona))
        touched = {each.thread_id for each in session.messages if self._is_gone(each, persona)}
        lost = len(kept) < len(session.messages) or self._is_named(session.summary, persona)
        result = replace(
            session,
            messages=kept,
            summary="" if lost else session.summary,
            description="" if self._is_named(session.description, persona) else session.description,
            threads=tuple(self._thread(each, persona, is_touched=each.id in touched) for each in session.threads),
            token_estimate=session.token_estimate * len(kept) // max(1, len(session.messages)),
        )
        if result.description != session.description or self._is_named(_name_in_words(session.session_id), persona):
            result = replace(result, session_id=f"{session.session_id.partition('_')[0]}_{_PURGED}")
        return result

    def _is_gone(self, message: MessageContent, persona: str) -> bool:
        if (message.role, timestamps.to_text(message.timestamp), message.content) in self.messages:
            return True
        if message.role in _TOOLS:
            return self.found.repeats("\n".join([message.content, *in_calls(message.tool_calls or "")]), persona)
        return self.found.has_words(message.content, persona)

    def _message(self, message: MessageContent, persona: str) -> MessageContent:
        if not message.preamble:
            return message
        rest = without_items(message.preamble, self.found.ids.items)
        return message._replace(preamble="" if self.found.repeats(rest, persona) else rest)

    def _thread(self, thread: SavedThread, persona: str, *, is_touched: bool) -> SavedThread:
        title = "" if self._is_named(thread.title, persona) else thread.title
        if is_touched or thread.summary in self.summaries or self._is_named(thread.summary, persona):
            return replace(thread, title=title, summary="", summarised=0)
        return replace(thread, title=title)

    def _is_named(self, text: str, persona: str) -> bool:
        return self.found.repeats(text, persona) or is_part(text, self.lines.get(persona, ""))


def saved_texts(connection: sqlite3.Connection, found: Concerned) -> SavedTexts:
    """Read the texts by which sessions are recognised, before their rows are overwritten."""
    ids, summaries = json.dumps([*found.ids.messages]), json.dumps([*found.ids.summaries])
    among = "IN (SELECT value FROM json_each(?))"
    messages = connection.execute(
        f"SELECT persona, role, timestamp, content FROM messages WHERE id {among}", (ids,)
    ).fetchall()
    texts = connection.execute(f"SELECT content FROM summaries WHERE id {among}", (summaries,)).fetchall()
    keys = {
        (role, timestamps.to_text(timestamps.from_text(timestamp)), content) for _, role, timestamp, content in messages
    }
    contents: dict[str, list[str]] = {}
    for persona, _, _, content in messages:
        contents.setdefault(persona, []).append(content)
    lines = {persona: words_in_line(said) for persona, said in contents.items()}
    return SavedTexts(found, frozenset(keys), lines, frozenset(text for (text,) in texts if text))


@dataclass(frozen=True, slots=True)
class SessionChange:
    """A session that holds something of a purge, and the one in its place; ``None`` if it is to be deleted."""

    persona: str
    session_id: str
    after: Session | None


def changes(personas: Path, texts: SavedTexts) -> Iterator[SessionChange]:
    """Yield the sessions below a folder of personas that hold something of a purge.

    One that is damaged is deleted if its text repeats it.

    Raises:
        PurgeError: the machine cannot read one now.
    """
    for path in sorted(personas.glob(f"*/{session_files.SESSIONS_FOLDER}")):
        persona = path.parent.name
        names = {*session_files.ids(personas, persona)}
        for session_id in sorted(names):
            if persona in texts.found.wanted.personas:
                yield SessionChange(persona, session_id, None)
                continue
            try:
                before = session_files.read(personas, persona, session_id)
            except SessionError as error:
                if isinstance(error.__cause__, OSError) and error.__cause__.errno in _FAULTS:
                    raise PurgeError(f"{error} Nothing was purged.") from error
                if texts.found.repeats(text_of(session_files.path_of(personas, persona, session_id)), persona):
                    yield SessionChange(persona, session_id, None)
                continue
            after = texts.purged(before)
            if after.session_id != session_id:
                free = next(name for name in candidates(after.session_id) if name not in names)
                names.add(free)
                after = replace(after, session_id=free)
            if after != before:
                yield SessionChange(persona, session_id, after if after.messages else None)


def file_change(personas: Path, change: SessionChange) -> FileChange:
    """Return the change of the file of a session."""
    path = session_files.path_of(personas, change.persona, change.session_id)
    after = change.after
    if after is None:
        return FileChange(path, path)
    named = session_files.path_of(personas, change.persona, after.session_id)
    return FileChange(path, named, session_format.text_of(after))


def store(connection: sqlite3.Connection, change: SessionChange) -> None:
    """Carry out a change of the row of a session; the idle timer begins a new one."""
    key = (change.persona, change.session_id)
    after = change.after
    if after is None:
        connection.execute("DELETE FROM sessions WHERE persona = ? AND session_id = ?", key)
    else:
        connection.execute(
            "UPDATE OR REPLACE sessions SET session_id = ?, description = ?, summary = ?, message_count = ?, "
            "token_estimate = ?, file_path = ? WHERE persona = ? AND session_id = ?",
            (
                *(after.session_id, after.description, after.summary, len(after.messages), after.token_estimate),
                f"{change.persona}/{session_files.SESSIONS_FOLDER}/{after.session_id}.json",
                *key,
            ),
        )
    connection.execute("DELETE FROM meta WHERE key = ?", (f"idle_session:{change.persona}",))
    connection.execute("UPDATE summaries SET model = NULL WHERE model = ?", (f"session {change.session_id}",))


def lost(connection: sqlite3.Connection, personas: Path, texts: SavedTexts) -> list[tuple[str, str]]:
    """Return persona and name of the rows of sessions whose files are gone, if they repeat purged texts."""
    found = connection.execute("SELECT persona, session_id, description, summary FROM sessions").fetchall()
    return [
        (persona, session_id)
        for persona, session_id, description, summary in found
        if session_id not in session_files.ids(personas, persona)
        and texts.found.takes(f"{description}\n{summary}\n{_name_in_words(session_id)}", persona)
    ]


def forget(connection: sqlite3.Connection, rows: Iterable[tuple[str, str]]) -> None:
    """Delete rows of sessions, named by persona and name."""
    connection.executemany("DELETE FROM sessions WHERE persona = ? AND session_id = ?", rows)


def _name_in_words(session_id: str) -> str:
    return session_id.partition("_")[2].replace("-", " ")
