"""The files of sessions, whole or not at all, and their rows."""

from __future__ import annotations

import asyncio
import os
import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.core.errors import DatabaseDamagedError, SessionError
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.acts import Clear, Edit, Redo, Restore, Retry, Subject, Undo, Window
from chorus_cli.log.rules.log_acts import Act
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.sessions import files as session_files
from chorus_cli.sessions import rows as session_rows
from chorus_cli.sessions.rows import IDLE, MANUAL, Saving, SessionRow, row_of
from chorus_cli.sessions.rules.format import SavedThread, Session, text_of
from chorus_cli.storage.port import Connection, OpenConnection
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.storage.store import Store, committed
from tests.fakes import START
from tests.storage.database import REFUSALS, refuse
from tests.storage.unsynced import confirm_folders, confirmed_syncs

NAME = "2026-02-12_auth"
HELLO = MessageContent(1, Role.USER, "Hello", START, turn_id=1)
SESSION = Session(NAME, "chorus", START, "Auth", "Done.", 1, START, START, 1, (SavedThread(1),), (HELLO,))


@pytest.fixture
def personas(tmp_path: Path) -> Path:
    (tmp_path / "chorus").mkdir()
    return tmp_path


def put(personas: Path, data: bytes, name: str = NAME) -> Path:
    path = personas / "chorus" / "sessions" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def test_what_was_written_is_read_back_and_only_the_owner_may_read_it(personas: Path) -> None:
    assert session_files.create(personas, SESSION) == SESSION
    assert session_files.read(personas, "chorus", NAME) == SESSION
    path = session_files.path_of(personas, "chorus", NAME)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [*path.parent.iterdir()] == [path]


def test_a_name_that_is_taken_is_numbered_and_the_file_says_its_own_name(personas: Path) -> None:
    put(personas, b"somebody else's")
    names = [session_files.create(personas, SESSION, {f"{NAME}-3"}).session_id for _ in range(2)]
    assert names == [f"{NAME}-2", f"{NAME}-4"]
    assert f'"session_id": "{NAME}-4"' in session_files.path_of(personas, "chorus", names[1]).read_text()
    assert session_files.path_of(personas, "chorus", NAME).read_bytes() == b"somebody else's"


def test_a_byte_order_mark_and_another_name_and_owner_in_a_file_do_not_count(personas: Path) -> None:
    put(personas, b"\xef\xbb\xbf" + text_of(replace(SESSION, session_id="../../evil", persona="frodo")).encode())
    assert session_files.read(personas, "chorus", NAME) == SESSION


@pytest.mark.parametrize("name", ["", "..", "../../etc/passwd", f"../{NAME}", "/etc/passwd", f"{NAME}\0", f"{NAME}/x"])
def test_what_is_no_name_never_becomes_a_path(personas: Path, name: str) -> None:
    with pytest.raises(SessionError, match="is not the name of a session"):
        session_files.read(personas, "chorus", name)
    with pytest.raises(SessionError, match="is not the name of a session"):
        session_files.create(personas, replace(SESSION, session_id=name))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is damaged, or is not a session: line 1"),
        (b"\xff\xfe{}", "is damaged: byte 0 is not UTF-8"),
        (text_of(SESSION).encode()[:-40], "is damaged, or is not a session: line "),
        (b'{"format": "other", "version": 1}', "it may be from a newer Chorus"),
    ],
)
def test_restore_session_corrupted_file_raises(personas: Path, data: bytes, sentence: str) -> None:
    path = put(personas, data)
    with pytest.raises(SessionError, match=sentence) as refused:
        session_files.read(personas, "chorus", NAME)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == data


def test_a_link_a_pipe_a_folder_and_a_giant_are_not_read(personas: Path) -> None:
    secret = personas / "secret"
    secret.write_text(text_of(SESSION))
    folder = put(personas, b"", "2026-01-01_giant").parent
    os.truncate(folder / "2026-01-01_giant.json", session_files.LARGEST_FILE_BYTES + 1)
    (folder / "2026-01-01_link.json").symlink_to(secret)
    os.mkfifo(folder / "2026-01-01_pipe.json")
    (folder / "2026-01-01_folder.json").mkdir()
    for name, reason in {"link": "symbolic", "pipe": "regular file", "folder": "", "giant": "than 256 MB"}.items():
        with pytest.raises(SessionError, match=rf"2026-01-01_{name}\.json cannot be read: .*{reason}"):
            session_files.read(personas, "chorus", f"2026-01-01_{name}")


def test_a_folder_that_cannot_be_written_is_said_and_nothing_is_left(personas: Path) -> None:
    (personas / "chorus" / "sessions").write_text("a file is in the way")
    with pytest.raises(SessionError, match=r"The session cannot be written to .*Nothing was saved"):
        session_files.create(personas, SESSION)
    assert session_files.ids(personas, "chorus") == frozenset()


def test_a_session_is_synced_with_the_names_of_its_file_and_folder(
    personas: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    confirmed = confirmed_syncs(monkeypatch)
    session_files.create(personas, SESSION)
    path = session_files.path_of(personas, "chorus", NAME)
    assert confirmed.has_all(path)
    assert confirmed.has_name(path.parent)


@pytest.mark.parametrize("times", [0, 1])
def test_a_new_session_whose_folder_cannot_be_synced_leaves_no_file(
    personas: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    confirm_folders(monkeypatch, times)
    with pytest.raises(SessionError, match=r"Input/output error\. Nothing was saved"):
        session_files.create(personas, SESSION)
    assert [*(personas / "chorus" / "sessions").iterdir()] == []


def test_only_files_with_a_sessions_name_are_sessions(personas: Path) -> None:
    for name in (NAME, "notes", "2026-02-12_Auth", ".chorus-12.tmp"):
        put(personas, b"{}", name)
    (personas / "chorus" / "sessions" / f"{NAME}-2.txt").write_text("")
    assert session_files.ids(personas, "chorus") == {NAME}
    assert session_files.ids(personas, "nobody") == frozenset()


def saving(trigger: str = MANUAL, through: int = 5, operation: int = 0) -> Saving:
    return Saving(SESSION, trigger, through, 4, operation)


def created(connection: Connection, personas: Path, what: Saving) -> SessionRow:
    row = session_rows.save(connection, personas, what)
    assert row is not None
    return row


def do(connection: Connection, act: Act, persona: str = "chorus") -> int:
    return operation_rows.introduce(connection, NewOperation(persona, act, START)).id


def test_what_was_stored_is_read_back(connection: Connection, personas: Path) -> None:
    row = created(connection, personas, saving())
    assert session_rows.of(connection, "chorus") == [row] == [row_of(SESSION, MANUAL, 5)]
    (path,) = connection.execute("SELECT file_path FROM sessions").fetchone()
    assert path == f"chorus/sessions/{NAME}.json"


def test_a_session_whose_row_cannot_be_stored_is_a_file_that_is_found(
    connection: OpenConnection, personas: Path
) -> None:
    committed(connection, lambda c: refuse(c, "INSERT ON sessions", "no row"))
    with pytest.raises(REFUSALS, match="no row"):
        committed(connection, lambda c: session_rows.save(c, personas, saving()))
    assert session_rows.of(connection, "chorus") == []
    assert session_files.read(personas, "chorus", NAME) == SESSION


async def test_saving_at_the_same_moment_gives_everybody_a_name_of_their_own(personas: Path) -> None:
    stores = [Store(Sqlite(personas.parent / "names.db")) for _ in range(4)]
    for store in stores:
        await store.open()
    mine = [saving()._replace(session=replace(SESSION, description=str(number))) for number in range(12)]
    saved = (stores[number % 4].write(session_rows.save, personas, each) for number, each in enumerate(mine))
    rows = [row for row in await asyncio.gather(*saved) if row is not None]
    for store in stores:
        await store.close()
    assert len({row.session_id for row in rows}) == 12
    for row in rows:
        assert session_files.read(personas, "chorus", row.session_id).description == row.description


def test_list_sessions_ordered_by_timestamp_desc(connection: Connection, personas: Path) -> None:
    names = [f"2026-02-12_{letter}" for letter in "abc"]
    for days, name in zip((2, 3, 1), names, strict=True):
        session = replace(SESSION, session_id=name, timestamp=START + timedelta(days=days))
        created(connection, personas, saving()._replace(session=session))
    found = [row.session_id for row in session_rows.of(connection, "chorus")]
    assert found == [names[1], names[0], names[2]]
    assert session_rows.of(connection, "frodo") == []


def test_a_name_is_taken_by_a_row_as_well_as_by_a_file(connection: Connection, personas: Path) -> None:
    created(connection, personas, saving())
    session_files.path_of(personas, "chorus", NAME).unlink()
    assert created(connection, personas, saving()).session_id == f"{NAME}-2"
    session_files.create(personas, replace(SESSION, session_id=f"{NAME}-3"))
    assert created(connection, personas, saving()).session_id == f"{NAME}-4"


def test_what_somebody_else_has_saved_meanwhile_is_not_saved_again(connection: Connection, personas: Path) -> None:
    late = saving(IDLE)._replace(expected_through=0)
    assert session_rows.save(connection, personas, late) is not None
    assert session_rows.save(connection, personas, late) is None
    assert session_rows.save(connection, personas, late._replace(is_new=False)) is None
    assert len(session_rows.of(connection, "chorus")) == 1


def test_the_sessions_of_an_earlier_persona_are_forgotten(connection: Connection, personas: Path) -> None:
    session_rows.save(connection, personas, saving(IDLE))
    boundary = operation_rows.introduce(connection, NewOperation("chorus", Clear(), START))
    session_rows.leave_behind(connection, "chorus", boundary)
    assert session_rows.of(connection, "chorus") == []
    assert session_rows.idle_session(connection, "chorus") is None


def test_the_idle_session_is_the_newest_that_was_saved_by_itself(connection: Connection, personas: Path) -> None:
    assert session_rows.idle_session(connection, "chorus") is None
    session_rows.save(connection, personas, saving(MANUAL))
    assert session_rows.idle_session(connection, "chorus") is None
    idle = created(connection, personas, saving(IDLE))
    session_rows.save(connection, personas, saving(MANUAL))
    assert session_rows.idle_session(connection, "chorus") == (idle, 4)


@pytest.mark.parametrize(
    "act", [Clear(), Edit(), Restore(), Undo(Subject(operation_id=1)), Redo(Subject(operation_id=1))]
)
def test_a_boundary_or_taking_one_back_ends_the_idle_session(connection: Connection, personas: Path, act: Act) -> None:
    do(connection, Clear())
    before = do(connection, Window(8, 24))
    idle = created(connection, personas, saving(IDLE, operation=before))
    do(connection, act, persona="frodo")
    for other in (Window(24, 8), Retry(), Undo(Subject(operation_id=before)), Redo(Subject(operation_id=before))):
        do(connection, other)
    assert session_rows.idle_session(connection, "chorus") == (idle, 4)
    do(connection, act)
    assert session_rows.idle_session(connection, "chorus") is None


def test_a_row_whose_name_could_lead_elsewhere_is_no_session(connection: Connection, personas: Path) -> None:
    created(connection, personas, saving())
    connection.execute("UPDATE sessions SET timestamp = '2026-02-31T00:00:00Z'")
    with pytest.raises(DatabaseDamagedError, match=f"the session {NAME} of chorus cannot be read"):
        session_rows.of(connection, "chorus")
    connection.execute("UPDATE sessions SET session_id = '../../evil'")
    assert session_rows.of(connection, "chorus") == []
