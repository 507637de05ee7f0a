"""The files of sessions, ``sessions/<session_id>.json`` in the folder of their persona.

Only a valid session name becomes a path. The path gives the name and the persona of a session; the file's own entries
for them are ignored. A file is written whole or not at all, and ``create`` replaces no file.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from chorus_cli.core import limits
from chorus_cli.core.errors import SessionError
from chorus_cli.sessions.rules import format as session_format
from chorus_cli.sessions.rules.format import Session, candidates, is_session_id
from chorus_cli.storage.files import read_within, sync_folder, write_atomically

SESSIONS_FOLDER = "sessions"
ENDING = ".json"
LARGEST_FILE_BYTES = limits.SESSION.most


def folder(personas: Path, persona: str) -> Path:
    """Return the folder with the files of a persona's sessions."""
    return personas / persona / SESSIONS_FOLDER


def path_of(personas: Path, persona: str, session_id: str) -> Path:
    """Return the path of a session's file; refuse a name that is not valid."""
    if not is_session_id(session_id):
        raise SessionError(f"{session_id!r} is not the name of a session; a name looks like 2026-02-12_auth-refactor.")
    return folder(personas, persona) / f"{session_id}{ENDING}"


def ids(personas: Path, persona: str) -> frozenset[str]:
    """Return the names of the sessions that have a file; if the folder cannot be read, there are none."""
    try:
        files = [path for path in folder(personas, persona).iterdir() if path.suffix == ENDING]
    except OSError:
        return frozenset()
    return frozenset(path.stem for path in files if is_session_id(path.stem))


def read(personas: Path, persona: str, session_id: str) -> Session:
    """Return the session with a name; refuse a file that is gone, cannot be read, or is not a session."""
    path = path_of(personas, persona, session_id)
    try:
        text = read_within(path, limits.SESSION, follows_link=False).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise SessionError(f"The session {session_id} has no file here: there is no {path}.") from error
    except OSError as error:
        raise SessionError(f"The session {path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise SessionError(f"The session {path} is damaged: byte {error.start:,} is not UTF-8.") from error
    try:
        return replace(session_format.read(text), session_id=session_id, persona=persona)
    except SessionError as error:
        raise SessionError(f"The session {path} is damaged, or is not a session: {error}.") from error


def create(personas: Path, session: Session, taken: Collection[str] = ()) -> Session:
    """Write a session and return it; a number is added to a taken name. The caller must have locked the database."""
    for name in candidates(session.session_id):
        if name not in taken and not os.path.lexists(path_of(personas, session.persona, name)):
            break
    named = replace(session, session_id=name)
    write(personas, named)
    return named


def write(personas: Path, session: Session) -> None:
    """Write the file of a session in place of its old file; if this fails, the old file stays."""
    path = path_of(personas, session.persona, session.session_id)
    unwritten = f"The session cannot be written to {path.parent}"
    data = session_format.text_of(session).encode()
    if len(data) > LARGEST_FILE_BYTES:
        raise SessionError(f"{unwritten}: it would be larger than {limits.SESSION.size}. Nothing was saved.")
    try:
        # ``mkdir`` makes no parents, so that the folder of a deleted persona does not come back.
        if not path.parent.is_dir():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            sync_folder(path.parent.parent)
        write_atomically(path, data)
    except OSError as error:
        raise SessionError(f"{unwritten}: {error.strerror or error}. Nothing was saved.") from error
