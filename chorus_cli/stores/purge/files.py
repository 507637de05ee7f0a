"""Changes of the files that hold purged texts: sessions, drafts, rescued texts and attachments.

A session that loses a message loses its summary too. A session without messages is deleted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from chorus_cli.attachments.rows import attachments_in, named_attachments
from chorus_cli.context.rows.thread_views import without_mark
from chorus_cli.context.rules.earlier import ids_in
from chorus_cli.core.errors import PurgeError, SessionError
from chorus_cli.core.time import timestamps
from chorus_cli.editing.files import rescued_files
from chorus_cli.log.rules.attachments import Kind
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.machine.paths import STAGED, Paths
from chorus_cli.memory.rules.recall import without_items
from chorus_cli.personas import files as persona_files
from chorus_cli.sessions import files as session_files
from chorus_cli.sessions.rules import format as session_format
from chorus_cli.sessions.rules.format import SavedThread, Session, candidates
from chorus_cli.sessions.rules.matching import Contents
from chorus_cli.storage import drafts
from chorus_cli.storage.files import remove, sync_folder, write_atomically
from chorus_cli.storage.port import Connection
from chorus_cli.stores.listing import AMONG, BACKUPS, MESSAGES, SUMMARIES
from chorus_cli.stores.purge.concerned import Concerned, in_calls, text_of
from chorus_cli.stores.rules.purging import is_part, words_in_line

_SESSIONS = f"*/{session_files.SESSIONS_FOLDER}"
_UNKNOWN = ""
"""The persona of a file that names no persona. A search limited to a persona does not search such a file."""

_PURGED = "purged"
_TOOLS = frozenset({Role.TOOL_USE, Role.TOOL_RESULT})


class Home(NamedTuple):
    """A home or an unpacked backup that a purge looks into.

    ``is_alive`` takes a run, and returns whether its process still runs. ``beside`` are further folders of attachments;
    the purge of this home deletes nothing in these folders.
    """

    paths: Paths
    is_alive: Callable[[str], bool]
    beside: tuple[Path, ...] = ()

    @property
    def attachments(self) -> tuple[Path, ...]:
        """The folders of attachments."""
        return (self.paths.attachments, *self.beside)


class FileChange(NamedTuple):
    """A file that gets ``text`` and the path ``after``; without ``text``, it is deleted. ``row`` is a session's row."""

    path: Path
    after: Path
    text: str | None = None
    row: Mapping[str, str | int] = {}

    @property
    def session_name(self) -> str:
        """The persona and the id of a session, with a slash in between; empty if the file is no session."""
        folder = self.path.parent
        return f"{folder.parent.name}/{self.path.stem}" if folder.name == session_files.SESSIONS_FOLDER else ""


def change(wanted: FileChange) -> None:
    """Carry out a change. A missing file is skipped, so that the change can be repeated."""
    path, after, text, _ = wanted
    if not os.path.lexists(path):
        return
    if text is not None:
        write_atomically(after, text)
    if text is None or after != path:
        path.unlink()
        sync_folder(path.parent)


@dataclass(frozen=True, slots=True)
class SavedTexts:
    """Recognises purged texts in sessions.

    ``messages`` are role, time and text of the purged messages. ``lines`` are their words by persona, as
    ``words_in_line`` writes them. ``summaries`` are the texts of purged summaries.
    """

    found: Concerned
    messages: frozenset[tuple[str, str, str]]
    lines: Mapping[str, str]
    summaries: frozenset[str]

    def purged(self, session: Session) -> Session:
        """Return a session without purged texts; an equal session if it has none."""
        persona = session.persona
        kept = tuple(self._message(each, persona) for each in session.messages if not self._is_gone(each, persona))
        touched = {each.thread_id for each in session.messages if self._is_gone(each, persona)}
        lost = len(kept) < len(session.messages) or self.is_named(session.summary, persona)
        result = replace(
            session,
            messages=kept,
            summary="" if lost else session.summary,
            description="" if self.is_named(session.description, persona) else session.description,
            threads=tuple(self._thread(each, persona, is_touched=each.id in touched) for each in session.threads),
            token_estimate=session.token_estimate * len(kept) // max(1, len(session.messages)),
        )
        if result.description != session.description or self.is_named(_name_in_words(session.session_id), persona):
            result = replace(result, session_id=_purged_name(session.session_id))
        return result

    def purged_row(self, persona: str, row: Mapping[str, str]) -> dict[str, str | int]:
        """Return the changes of a session's row by the texts in it: its description, summary and ``session_id``."""
        changes: dict[str, str | int] = {
            column: "" for column in ("description", "summary") if row[column] and self.is_named(row[column], persona)
        }
        if "description" in changes or self.is_named(_name_in_words(row["session_id"]), persona):
            changes["session_id"] = _purged_name(row["session_id"])
        return changes

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
        is_gone = self.found.repeats(rest, persona) or not self.found.ids.messages.isdisjoint(ids_in(rest))
        return message._replace(preamble="" if is_gone else rest)

    def _thread(self, thread: SavedThread, persona: str, *, is_touched: bool) -> SavedThread:
        names = (thread.title, without_mark(thread.title))
        title = "" if any(self.is_named(name, persona) for name in names) else thread.title
        if is_touched or thread.summary in self.summaries or self.is_named(thread.summary, persona):
            return replace(thread, title=title, summary="", summarised=0)
        return replace(thread, title=title)

    def is_named(self, text: str, persona: str) -> bool:
        """Return whether a name, description or summary repeats purged texts, or is a part of a purged message."""
        return self.found.repeats(text, persona) or is_part(text, self.lines.get(persona, ""))


def saved_texts(connection: Connection, found: Concerned) -> SavedTexts:
    """Read the texts to look for in sessions; this must happen before the rows with these texts are overwritten."""
    messages = MESSAGES.rows(connection, "persona, role, timestamp, content", found.ids.messages)
    texts = SUMMARIES.rows(connection, "content", found.ids.summaries)
    keys = {
        (role, timestamps.to_text(timestamps.from_text(timestamp)), content) for _, role, timestamp, content in messages
    }
    contents: dict[str, list[str]] = {}
    for persona, _, _, content in messages:
        contents.setdefault(persona, []).append(content)
    lines = {persona: words_in_line(said) for persona, said in contents.items()}
    return SavedTexts(found, frozenset(keys), lines, frozenset(text for (text,) in texts if text))


def changes(home: Home, texts: SavedTexts) -> Iterator[FileChange]:
    """Yield the changes of the sessions, drafts and rescued texts that a purge concerns."""
    for path in chain(*(sorted(personas.glob(_SESSIONS)) for personas in _folders_of_personas(home))):
        yield from _changed_sessions(path.parent, texts)
    yield from _changed_drafts(home, texts.found)
    yield from _changed_rescues(home, texts.found)


def _folders_of_personas(home: Home) -> tuple[Path, Path]:
    return home.paths.personas, home.paths.deleted_personas


def _changed_sessions(folder: Path, texts: SavedTexts) -> Iterator[FileChange]:
    """Yield the changes of a persona's sessions. A damaged session is deleted if it repeats purged texts."""
    personas, name, persona = folder.parent, folder.name, persona_files.slug_of(folder)
    names = {*session_files.ids(personas, name)}
    for session_id in sorted(names):
        path = session_files.path_of(personas, name, session_id)
        if persona in texts.found.wanted.personas:
            yield FileChange(path, path)
            continue
        try:
            before = replace(session_files.read(personas, name, session_id), persona=persona)
        except SessionError as error:
            # Chorus makes no link and no folder of this name, so it wrote nothing there.
            if isinstance(error.__cause__, OSError) and not (path.is_symlink() or path.is_dir()):
                raise PurgeError(f"{error} Nothing was purged.") from error
            if texts.found.repeats(text_of(path), persona):
                yield FileChange(path, path)
            continue
        after = texts.purged(before)
        if after.session_id != session_id:
            free = next(name for name in candidates(after.session_id) if name not in names)
            names.add(free)
            after = replace(after, session_id=free)
        if not after.messages:
            yield FileChange(path, path)
        elif after != before:
            named = session_files.path_of(personas, name, after.session_id)
            yield FileChange(path, named, session_format.text_of(after), _row(after))


def _row(session: Session) -> Mapping[str, str | int]:
    path = f"{session.persona}/{session_files.SESSIONS_FOLDER}/{session.session_id}.json"
    names = ("session_id", "description", "summary", "message_count", "token_estimate")
    return {name: getattr(session, name) for name in names} | {"file_path": path}


def _changed_drafts(home: Home, found: Concerned) -> Iterator[FileChange]:
    """Yield the deletions of drafts with purged texts, except drafts that a running Chorus has open."""
    for path in sorted(home.paths.drafts.glob("*")):
        if not drafts.is_owned(path, home.is_alive) and found.takes(text_of(path), drafts.persona_of(path)):
            yield FileChange(path, path)


def _changed_rescues(home: Home, found: Concerned) -> Iterator[FileChange]:
    """Yield the changes of files of rescued texts. Each line is a text; the purged lines are deleted."""
    for path in sorted(rescued_files.files(home.paths.rescue)):
        lines = text_of(path).splitlines()
        kept = [line for line in lines if not _is_purged(line, found)]
        if len(kept) < len(lines):
            yield FileChange(path, path, "".join(f"{line}\n" for line in kept) or None)


def list_session(connection: Connection, name: str, row: Mapping[str, str | int]) -> None:
    """Change the row of a session, or delete it if ``row`` is empty; summaries no longer name the session."""
    persona, _, session_id = name.partition("/")
    if not row or row.get("session_id", session_id) != session_id:
        forget_sessions(connection, [(persona, str(row.get("session_id", session_id)))])
    if row:
        values = ", ".join(f"{column} = ?" for column in row)
        changed = f"UPDATE sessions SET {values} WHERE persona = ? AND session_id = ?"
        connection.execute(changed, (*row.values(), persona, session_id))
    # The next idle save makes a new session.
    connection.execute("DELETE FROM meta WHERE key = ?", (f"idle_session:{persona}",))
    connection.execute("UPDATE summaries SET model = NULL WHERE model = ?", (f"session {session_id}",))


class LostSession(NamedTuple):
    """A session that a purge concerns and that has no file here; an empty ``row`` means that its row is deleted."""

    session_name: str
    row: Mapping[str, str | int]


def lost_sessions(connection: Connection, personas: Path, texts: SavedTexts) -> Iterator[LostSession]:
    """Yield the lost sessions that a purge concerns. A session whose row repeats purged texts is deleted."""
    found = connection.execute("SELECT persona, session_id, description, summary, contents FROM sessions").fetchall()
    purged = texts.found.ids.messages
    for persona, session_id, description, summary, contents in found:
        if session_id in session_files.ids(personas, persona):
            continue
        ids = Contents.from_text(contents).message_ids if contents else set[int]()
        name = f"{persona}/{session_id}"
        if texts.found.takes(f"{description}\n{summary}\n{_name_in_words(session_id)}", persona):
            yield LostSession(name, {})
            continue
        row = texts.purged_row(persona, {"description": description, "summary": summary, "session_id": session_id})
        if not purged.isdisjoint(ids):
            left = f"SELECT COUNT(*) FROM messages WHERE id {AMONG} AND purged_by IS NULL"
            (number,) = connection.execute(left, {"ids": json.dumps([*ids - purged])}).fetchone()
            yield LostSession(name, {**row, "summary": "", "message_count": number} if number else {})
        elif row:
            yield LostSession(name, row)


def forget_sessions(connection: Connection, rows: Iterable[tuple[str, str]]) -> None:
    """Delete the rows of sessions, given by persona and id."""
    connection.executemany("DELETE FROM sessions WHERE persona = ? AND session_id = ?", rows)


def lonely_attachments(connection: Connection, found: Concerned) -> dict[str, int]:
    """Return the sizes in bytes, by SHA-256, of the attachments that only purged messages name."""
    gone, kept = (
        {
            each.sha256: each.size_bytes
            for (text,) in connection.execute(
                f"SELECT attachments FROM messages WHERE attachments IS NOT NULL AND id {negation} {AMONG}",
                {"ids": json.dumps([*found.ids.messages])},
            )
            for each in attachments_in(text)
        }
        for negation in ("", "NOT")
    )
    return {digest: size for digest, size in gone.items() if digest not in kept}


def unsent_attachments(connection: Connection, home: Home, found: Concerned) -> dict[str, int]:
    """Return the sizes in bytes, by SHA-256, of attachments that repeat purged texts and that no message names."""
    named = named_attachments(connection)
    stored = [path for folder in home.attachments for path in sorted(folder.glob("[0-9a-f][0-9a-f]/*"))]
    unnamed = [path for path in stored if path.name not in named]
    return {path.name: path.stat().st_size for path in unnamed if found.repeats(text_of(path), _UNKNOWN)}


def unsearched_pdfs(connection: Connection, found: Concerned) -> int:
    """Count the PDFs that stay although they may have the words: a search reads no PDF. Without words, return 0."""
    rows = connection.execute(
        "SELECT id, attachments FROM messages WHERE ? <> '' AND attachments IS NOT NULL AND ? IN ('', persona)",
        (found.wanted.words, found.wanted.persona),
    )
    kept = {each for id_, text in rows if id_ not in found.ids.messages for each in attachments_in(text)}
    return len({each.sha256 for each in kept if each.kind is Kind.PDF})


def documents(home: Home, found: Concerned) -> Iterator[tuple[str, str]]:
    """Yield path and persona of each prompt or document that repeats purged texts or has the words of the search."""
    for folder in sorted(chain(*(personas.glob("*/") for personas in _folders_of_personas(home)))):
        persona = persona_files.slug_of(folder)
        prompt, _ = persona_files.read_prompt(folder.parent, folder.name)
        sent, _ = persona_files.documents(folder.parent, folder.name)
        texts = {folder / persona_files.DOCUMENTS_FOLDER / each.name: each.content for each in sent}
        prompts = {Path(prompt.name): str(text) for text in prompt.values.values()}
        for path, text in {**prompts, **texts}.items():
            if found.repeats(text, persona):
                yield str(path), persona


def delete_remains(places: Paths) -> None:
    """Delete the copies of the log that killed processes left when they made backups, upgrades, restores or purges."""
    for path in (*BACKUPS.leftovers(places), *places.database.parent.glob(f"{STAGED}-*")):
        try:
            # A process that looks into a backup may delete its own folder first.
            with suppress(FileNotFoundError):
                remove(path)
            sync_folder(path.parent)
        except OSError as error:
            raise PurgeError(f"{path} cannot be deleted: {error.strerror or error}.") from error


def _is_purged(line: str, found: Concerned) -> bool:
    with suppress(ValueError, TypeError, KeyError):
        record = json.loads(line)
        return found.takes(str(record["content"]), str(record["persona"]))
    return found.repeats(line, _UNKNOWN)


def _purged_name(session_id: str) -> str:
    return f"{session_id.partition('_')[0]}_{_PURGED}"


def _name_in_words(session_id: str) -> str:
    name = session_id.partition("_")[2]
    is_cut = len(name) >= session_format.LONGEST_SLUG - 1
    return f"{name.replace('-', ' ')}{'…' if is_cut else ''}"
