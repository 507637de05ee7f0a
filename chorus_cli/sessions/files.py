"""The files of sessions, ``sessions/<session_id>.json`` in the folder of their persona.

Only a valid session name becomes a path. Name and persona of a session are those of its path; the ones inside the file
are ignored. A file is written whole or not at all, and a new one never replaces another.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from chorus_cli.core import limits
from chorus_cli.core.errors import SessionError
from chorus_cli.sessions.rules import format as session_format
from chorus_cli.sessions.rules import reader as session_reader
from chorus_cli.sessions.rules.format import is_session_id
from chorus_cli.storage.files import opened_file, sync_folder, syncing, write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from chorus_cli.sessions.rules.format import Session
    from chorus_cli.sessions.rules.reader import Head

SESSIONS_FOLDER = "sessions"
ENDING = ".json"
LARGEST_FILE_BYTES = limits.SESSION.most

TEMPORARY = r"\.chorus-[0-9a-f]{12}\.tmp"
"""The names of sessions that are being written, as a regular expression."""

_BEGINNING_BYTES = 8192


def folder(personas: Path, persona: str) -> Path:
    """Return the folder of a persona's sessions."""
    return personas / persona / SESSIONS_FOLDER


def path_of(personas: Path, persona: str, session_id: str) -> Path:
    """Return the file of a session.

    Raises:
        SessionError: the name is not valid.
    """
    if not is_session_id(session_id):
        raise SessionError(f"{session_id!r} is no session's name; one looks like 2026-02-12_auth-refactor.")
    return folder(personas, persona) / f"{session_id}{ENDING}"


def ids(personas: Path, persona: str) -> frozenset[str]:
    """Return the names of the sessions that have a file; none if the folder cannot be read."""
    try:
        names = [path.name for path in folder(personas, persona).iterdir()]
    except OSError:
        return frozenset()
    return frozenset(
        name.removesuffix(ENDING)
        for name in names
        if name.endswith(ENDING) and is_session_id(name.removesuffix(ENDING))
    )


def read(personas: Path, persona: str, session_id: str) -> Session:
    """Return the session of that name.

    Raises:
        SessionError: the file is gone, cannot be read, or is not a session.
    """
    path = path_of(personas, persona, session_id)
    try:
        text = _text(path)
    except FileNotFoundError as error:
        raise SessionError(f"The file of the session {session_id} is gone: there is no {path}.") from error
    except OSError as error:
        raise SessionError(f"The session {path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise SessionError(f"The session {path} is damaged: byte {error.start:,} is not UTF-8.") from error
    try:
        return replace(session_reader.read(text), session_id=session_id, persona=persona)
    except SessionError as error:
        raise SessionError(f"The session {path} is damaged or no session: {error}.") from error


def head(personas: Path, persona: str, session_id: str) -> Head | None:
    """Return time and description of a session, read from the beginning of its file; ``None`` if they are not there.

    The result is cached, so that it can be asked for at every key.
    """
    path = path_of(personas, persona, session_id)
    try:
        return _head(path, path.stat().st_mtime_ns)
    except OSError:
        return None


def create(personas: Path, session: Session, names: Iterable[str]) -> Session:
    """Write a session under the first of ``names`` that is free, even if other processes do the same.

    Returns:
        The session with its name.

    Raises:
        SessionError: it cannot be written; nothing is left of it.
    """
    place = folder(personas, session.persona)
    draft = place / f".chorus-{os.urandom(6).hex()}.tmp"
    try:
        # Not its parents: a persona that is gone is not made again.
        if not place.is_dir():
            place.mkdir(mode=0o700, exist_ok=True)
            sync_folder(place.parent)
        for name in names:
            named = replace(session, session_id=name)
            if name in ids(personas, session.persona):
                continue
            write_atomically(draft, _bounded(session_format.text_of(named)))
            if _moved_in(draft, path_of(personas, session.persona, name)):
                return named
    except OSError as error:
        raise _unwritten(place, error) from error
    finally:
        with suppress(OSError):
            draft.unlink()
    raise SessionError(f"No name was left for a session in {place}.")


def discard(path: Path) -> None:
    """Delete the file of a session that could not be stored.

    Raises:
        SessionError: it cannot be deleted.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _left(path, error) from error


def rewrite(personas: Path, session: Session) -> Callable[[], None]:
    """Replace the file of a session and return what brings the present one back, or raises a `SessionError`.

    Raises:
        SessionError: it cannot be written; the file is as it was.
    """
    path = path_of(personas, session.persona, session.session_id)
    try:
        present = path.read_bytes()
        write_atomically(path, _bounded(session_format.text_of(session)))
    except OSError as error:
        raise _unwritten(path.parent, error) from error
    return partial(_bring_back, path, present)


def _bring_back(path: Path, data: bytes) -> None:
    try:
        write_atomically(path, data)
    except OSError as error:
        raise _left(path, error) from error


def _left(path: Path, error: OSError) -> SessionError:
    return SessionError(
        f"The session was written to {path}, but not recorded in the log, and the file cannot be taken back: "
        f"{error.strerror or error}. It is listed and restored like any other; delete it if you do not want it."
    )


def _bounded(text: str) -> bytes:
    """Return the bytes of a session, unless they could not be read again.

    Raises:
        OSError: there are too many.
    """
    data = text.encode()
    if len(data) > LARGEST_FILE_BYTES:
        raise OSError(f"it would have more than {limits.SESSION.size}")
    return data


def _unwritten(place: Path, error: OSError) -> SessionError:
    return SessionError(f"The session cannot be written to {place}: {error.strerror or error}. Nothing was saved.")


def _moved_in(draft: Path, path: Path) -> bool:
    """Rename a draft, and return whether the name was still free."""
    with syncing(path.parent) as sync:
        try:
            _take(draft, path)
        except FileExistsError:
            return False
        try:
            sync()
        except BaseException:
            discard(path)
            raise
    return True


def _take(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links: the name is taken first, then its file replaced.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise


def _text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        OSError: it cannot be read, is too large, or is a link or a device.
    """
    with opened_file(path, follows_link=False) as file:
        if os.fstat(file.fileno()).st_size > LARGEST_FILE_BYTES:
            raise OSError(f"it has more than {limits.SESSION.size}")
        return file.read(LARGEST_FILE_BYTES).decode("utf-8-sig")


@lru_cache(maxsize=1024)
def _head(path: Path, _modified: int) -> Head | None:
    with opened_file(path, follows_link=False) as file:
        return session_reader.head(file.read(_BEGINNING_BYTES).decode("utf-8", "replace"))
