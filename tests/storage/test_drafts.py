"""Drafts are private, are read back only if no other file has replaced them, and are deleted when they are old."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import EditorError
from chorus_cli.storage import drafts
from tests.amount import examples
from tests.storage.unsynced import confirmed_syncs

NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def aged(path: Path, age: timedelta) -> Path:
    """Make a file that was changed so long before now."""
    path.write_text("")
    moment = (NOW - age).timestamp()
    os.utime(path, (moment, moment))
    return path


def test_a_draft_is_for_its_owner_only_and_is_named_so_that_editors_know_its_syntax(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "drafts"
    path = drafts.create(folder, "system.jsonc", "{}")
    assert (path.parent, path.read_text(), mode(path), mode(folder)) == (folder, "{}", 0o600, 0o700)
    assert path.name.endswith("system.jsonc")


def test_a_draft_is_synced_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    confirmed = confirmed_syncs(monkeypatch)
    assert confirmed.has_all(drafts.create(tmp_path, "note.md", "text"))


@examples(100)
@given(st.text(st.characters(codec="utf-8")))
def test_what_is_written_is_read_back_sign_for_sign(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = drafts.create(tmp_path_factory.getbasetemp(), "any.md", text)
    assert drafts.read(path) == text
    drafts.delete(path)


@pytest.mark.parametrize("name", ["n" * 255, "no/such/folder.md"])
def test_a_draft_that_cannot_be_written_is_refused_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(EditorError, match=r"No draft can be written in .*: (File name too long|No such file)"):
        drafts.create(tmp_path, name, "text")
    assert names(tmp_path) == set()


def test_a_draft_is_found_only_when_all_of_it_is_written(tmp_path: Path) -> None:
    """A process is killed while the disk takes it."""
    create = "drafts.create(Path(sys.argv[1]), 'unsent-frodo.md', 'half')"
    imports = "import os, sys; from pathlib import Path; from chorus_cli.storage import drafts"
    killed = f"{imports}; os.fsync = lambda _: os.kill(os.getpid(), 9); {create}"
    assert subprocess.run([sys.executable, "-c", killed, str(tmp_path)], check=False).returncode == -9
    [left] = tmp_path.iterdir()
    assert drafts.kept(tmp_path, datetime.now(UTC), lambda _run: False) == ()
    aged(left, timedelta(days=8))
    drafts.sweep(tmp_path, NOW, lambda _run: False)
    assert names(tmp_path) == set()


def replaced_by(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


BY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (replaced_by(lambda path: path.symlink_to("/dev/null")), "it is a symbolic link now"),
        (replaced_by(Path.mkdir), "it is no longer a file"),
        (replaced_by(os.mkfifo), "it is no longer a file"),
        (lambda path: os.truncate(path, 64 * 1024**2 + 1), "it is larger than 64 MB"),
        (lambda path: path.write_bytes(b"one\ntwo\nd\xe9j\xe0\n"), "line 3 is not UTF-8 (it has the byte 0xe9)"),
        (lambda path: path.write_bytes("text".encode("utf-16")), "it was saved as UTF-16, not as UTF-8"),
        (lambda path: path.write_bytes(b"\xfe\xff\x00t\x00e"), "it was saved as UTF-16, not as UTF-8"),
        pytest.param(lambda path: os.chown(path, 65534, -1), "it belongs to another user now", marks=BY_ROOT),
    ],
)
def test_what_is_no_longer_the_users_text_is_not_read(
    tmp_path: Path, change: Callable[[Path], object], reason: str
) -> None:
    path = drafts.create(tmp_path, "text.md", "text")
    change(path)
    with pytest.raises(EditorError) as refusal:
        drafts.read(path)
    assert str(refusal.value) == f"The draft cannot be read back: {reason}. It is kept in {path}."


def test_a_draft_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "text.md"
    with pytest.raises(EditorError) as refusal:
        drafts.read(path)
    assert str(refusal.value) == f"{path} is gone: the editor deleted it or saved it under another name."


def test_a_file_that_was_saved_by_replacing_it_is_the_draft(tmp_path: Path) -> None:
    path = drafts.create(tmp_path, "text.md", "text")
    (tmp_path / "new").write_text("new text")
    (tmp_path / "new").replace(path)
    assert drafts.read(path) == "new text"


def test_a_deleted_draft_takes_the_editors_backup_with_it(tmp_path: Path) -> None:
    path = drafts.create(tmp_path, "text.md", "text")
    path.with_name(f"{path.name}~").write_text("text before")
    drafts.delete(path)
    drafts.delete(path)
    assert names(tmp_path) == set()


def test_deleting_what_has_become_a_link_or_a_folder_touches_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    link, folder = (drafts.create(tmp_path, "text.md", "text") for _ in range(2))
    link.unlink()
    link.symlink_to(target)
    replaced_by(Path.mkdir)(folder)
    for path in (link, folder):
        drafts.delete(path)
    assert names(tmp_path) == {"target", folder.name}


def test_kept_drafts_are_listed_the_oldest_first(tmp_path: Path) -> None:
    old = aged(tmp_path / "draft-b-system.jsonc", timedelta(days=3))
    new = aged(tmp_path / "draft-a-frodo.md", timedelta(hours=1))
    for other in ("draft-b-system.jsonc~", ".draft-b-system.jsonc.swp", "notes.md"):
        (tmp_path / other).write_text("")
    (tmp_path / "draft-folder").mkdir()
    aged(tmp_path / "draft-c-about-to-be-swept.md", timedelta(days=7, seconds=1))
    assert drafts.kept(tmp_path, NOW, lambda _run: False) == (old, new)


def test_drafts_of_a_living_process_are_not_listed(tmp_path: Path) -> None:
    paths = [drafts.create(tmp_path, "text.md", "text", run) for run in ("12-0a1b2c3d", "13-0a1b2c3d", "")]
    for path in paths:
        path.write_text("edited")
    found = drafts.kept(tmp_path, datetime.now(UTC), lambda run: run == "12-0a1b2c3d")
    assert set(found) == {*paths[1:]}


def test_drafts_without_an_edit_are_not_listed_and_stay_for_an_editor_that_may_be_open(tmp_path: Path) -> None:
    unedited, edited = (drafts.create(tmp_path, "text.md", "text", "12-0a1b2c3d") for _ in range(2))
    edited.write_text("text.")
    assert drafts.kept(tmp_path, datetime.now(UTC), lambda _run: False) == (edited,)
    unedited.write_text("text!")
    assert {*drafts.kept(tmp_path, datetime.now(UTC), lambda _run: False)} == {edited, unedited}


def test_only_drafts_older_than_a_week_are_swept_with_what_editors_left_beside_them(tmp_path: Path) -> None:
    week = timedelta(days=7)
    for old in ("draft-a-x.md", "draft-a-x.md~", ".draft-a-x.md.swp", "#draft-a-x.md#", "notes.md"):
        aged(tmp_path / old, week + timedelta(seconds=1))
    aged(tmp_path / "draft-b-x.md", week - timedelta(seconds=1))
    (tmp_path / "draft-folder").mkdir()
    drafts.sweep(tmp_path, NOW, lambda _run: False)
    assert names(tmp_path) == {"draft-b-x.md", "draft-folder", "notes.md"}


def test_an_old_draft_of_a_living_process_is_not_swept(tmp_path: Path) -> None:
    drafts.create(tmp_path, "text.md", "text", "12-0a1b2c3d")
    swap = tmp_path / ".draft-12-0a1b2c3d-a-text.md.swp"
    swap.write_text("")
    for path in tmp_path.iterdir():
        aged(path, timedelta(days=8))
    drafts.sweep(tmp_path, NOW, lambda run: run == "12-0a1b2c3d")
    assert len(names(tmp_path)) == 2
    drafts.sweep(tmp_path, NOW, lambda _run: False)
    assert names(tmp_path) == set()


def test_messages_in_files_of_an_older_chorus_are_found_unless_it_lives(tmp_path: Path) -> None:
    for name in ("1-ab-x-unsent-frodo.md", "2-ab-y-unsent-sam.md", "1-ab-z-context.md"):
        aged(tmp_path / f"draft-{name}", timedelta())
    [(path, _)] = drafts.unsent(tmp_path, lambda run: run == "2-ab")
    assert drafts.persona_of(path) == "frodo"
