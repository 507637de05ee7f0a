"""The files of sessions: whole or not at all, never one in the place of another, never a path that was typed."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import SessionError
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.sessions import files as session_files
from chorus_cli.sessions.rules.format import SavedThread, Session, text_of
from tests.fakes import START
from tests.storage.unsynced import confirm_folders, confirmed_syncs

if TYPE_CHECKING:
    from pathlib import Path

NAME = "2026-02-12_auth"
SESSION = Session(
    session_id=NAME,
    persona="chorus",
    timestamp=START,
    description="Auth",
    summary="Done.",
    token_estimate=1,
    window_start=START,
    window_end=START,
    active_thread_id=1,
    threads=(SavedThread(1),),
    messages=(MessageContent(1, Role.USER, "Hello", START, turn_id=1),),
)


@pytest.fixture
def personas(tmp_path: Path) -> Path:
    (tmp_path / "chorus").mkdir()
    return tmp_path


def put(personas: Path, data: bytes, name: str = NAME) -> Path:
    path = personas / "chorus" / "sessions" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def leftovers(personas: Path) -> list[str]:
    return [path.name for path in (personas / "chorus" / "sessions").iterdir() if path.suffix != ".json"]


def test_what_was_written_is_read_back_and_only_the_owner_may_read_it(personas: Path) -> None:
    assert session_files.create(personas, SESSION) == SESSION
    assert session_files.read(personas, "chorus", NAME) == SESSION
    path = session_files.path_of(personas, "chorus", NAME)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert leftovers(personas) == []


def test_a_name_that_is_taken_is_numbered_and_the_file_says_its_own_name(personas: Path) -> None:
    names = [session_files.create(personas, SESSION).session_id for _ in range(3)]
    assert names == [NAME, f"{NAME}-2", f"{NAME}-3"]
    assert f'"session_id": "{NAME}-3"' in session_files.path_of(personas, "chorus", names[2]).read_text()


def test_a_file_of_somebody_else_is_not_overwritten(personas: Path) -> None:
    put(personas, b"somebody else's")
    assert session_files.create(personas, SESSION).session_id == f"{NAME}-2"
    assert session_files.path_of(personas, "chorus", NAME).read_bytes() == b"somebody else's"
    assert session_files.create(personas, SESSION, {f"{NAME}-3"}).session_id == f"{NAME}-4"


def test_rewriting_replaces_the_whole_file(personas: Path) -> None:
    session_files.create(personas, SESSION)
    longer = replace(SESSION, summary="More was done.")
    session_files.write(personas, longer)
    assert session_files.read(personas, "chorus", NAME) == longer
    assert leftovers(personas) == []


def test_what_a_file_says_of_its_name_and_owner_does_not_count(personas: Path) -> None:
    put(personas, text_of(replace(SESSION, session_id="../../evil", persona="frodo")).encode())
    found = session_files.read(personas, "chorus", NAME)
    assert (found.session_id, found.persona) == (NAME, "chorus")


def test_a_byte_order_mark_that_an_editor_has_left_is_no_damage(personas: Path) -> None:
    put(personas, b"\xef\xbb\xbf" + text_of(SESSION).encode())
    assert session_files.read(personas, "chorus", NAME) == SESSION


@pytest.mark.parametrize("name", ["", "..", "../../etc/passwd", f"../{NAME}", "/etc/passwd", f"{NAME}\0", f"{NAME}/x"])
def test_what_is_no_name_never_becomes_a_path(personas: Path, name: str) -> None:
    with pytest.raises(SessionError, match="is no session's name"):
        session_files.read(personas, "chorus", name)
    with pytest.raises(SessionError, match="is no session's name"):
        session_files.create(personas, replace(SESSION, session_id=name))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is damaged or no session: line 1"),
        (b"\xff\xfe{}", "is damaged: byte 0 is not UTF-8"),
        (text_of(SESSION).encode()[:-40], "is damaged or no session: line "),
        (b'{"format": "other"}', 'its "format" is not'),
    ],
)
def test_restore_session_corrupted_file_raises(personas: Path, data: bytes, sentence: str) -> None:
    path = put(personas, data)
    with pytest.raises(SessionError, match=sentence) as refused:
        session_files.read(personas, "chorus", NAME)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == data


def test_a_file_that_is_gone_is_said_to_be(personas: Path) -> None:
    with pytest.raises(SessionError, match=f"The file of the session {NAME} is gone"):
        session_files.read(personas, "chorus", NAME)


def test_a_link_a_pipe_a_folder_and_a_giant_are_not_read(personas: Path) -> None:
    secret = personas / "secret"
    secret.write_text(text_of(SESSION))
    folder = put(personas, b"", "2026-01-01_giant").parent
    os.truncate(folder / "2026-01-01_giant.json", session_files.LARGEST_FILE_BYTES + 1)
    (folder / "2026-01-01_link.json").symlink_to(secret)
    os.mkfifo(folder / "2026-01-01_pipe.json")
    (folder / "2026-01-01_folder.json").mkdir()
    for name, reason in [
        ("link", "symbolic"),
        ("pipe", "regular file"),
        ("folder", ""),
        ("giant", "than 256 MB"),
    ]:
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


def test_a_rewritten_session_whose_folder_cannot_be_synced_is_as_it_was(
    personas: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_files.create(personas, SESSION)
    confirm_folders(monkeypatch, 0)
    with pytest.raises(SessionError, match=r"Input/output error\. Nothing was saved"):
        session_files.write(personas, replace(SESSION, summary="More was done."))
    assert session_files.read(personas, "chorus", NAME) == SESSION
    assert leftovers(personas) == []


def test_only_files_with_a_sessions_name_are_sessions(personas: Path) -> None:
    for name in (NAME, "notes", "2026-02-12_Auth", ".chorus-12.tmp"):
        put(personas, b"{}", name)
    (personas / "chorus" / "sessions" / f"{NAME}-2.txt").write_text("")
    assert session_files.ids(personas, "chorus") == {NAME}
    assert session_files.ids(personas, "nobody") == frozenset()
