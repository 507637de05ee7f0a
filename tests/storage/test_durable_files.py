"""Files that are replaced whole, and the locks around it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import HomeError, SettingsError
from chorus_cli.machine.paths import paths
from chorus_cli.storage.file_lock import hold, is_locked, locked, try_lock
from chorus_cli.storage.files import sweep_stale, write_atomically
from tests.storage.unsynced import confirm_folders, confirmed_syncs

if TYPE_CHECKING:
    from pathlib import Path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("content", "data"), [("é\r\n", b"\xc3\xa9\r\n"), (b"\xff\x00", b"\xff\x00"), ("", b"")])
def test_content_is_written_byte_for_byte(tmp_path: Path, content: str | bytes, data: bytes) -> None:
    write_atomically(tmp_path / "file", content)
    assert (tmp_path / "file").read_bytes() == data
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("before", "after"), [(0o600, 0o600), (0o644, 0o600), (0o755, 0o700), (0o400, 0o600), (None, 0o600)]
)
def test_only_the_owner_may_read_what_was_written(tmp_path: Path, before: int | None, after: int) -> None:
    file = tmp_path / "file"
    if before is not None:
        file.write_text("old")
        file.chmod(before)
    write_atomically(file, "new")
    assert (mode(file), file.read_text()) == (after, "new")


def test_a_symlink_stays_one_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "file"
    target.write_text("old")
    link = tmp_path / "link"
    link.symlink_to("real/file")
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert (names(tmp_path), names(tmp_path / "real")) == (["link", "real"], ["file"])


def test_a_symlink_to_nowhere_gets_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "file").read_text() == "new"


def test_a_name_as_long_as_names_may_be_is_written(tmp_path: Path) -> None:
    write_atomically(tmp_path / ("n" * 255), "new")
    assert (tmp_path / ("n" * 255)).read_text() == "new"


def test_a_file_is_whole_at_any_moment_of_its_being_replaced(tmp_path: Path) -> None:
    file, length = tmp_path / "file", 2_000_000
    contents = [letter * length for letter in (b"a", b"b")]
    write_atomically(file, contents[0])

    def write_all() -> None:
        for content in contents * 20:
            write_atomically(file, content)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_all)
        found = [file.read_bytes() in contents]
        while not writing.done():
            found.append(file.read_bytes() in contents)
        writing.result()
    assert len(found) > 10
    assert all(found)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    script = (
        "import resource, sys, pathlib\n"
        "from chorus_cli.storage.files import write_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "write_atomically(pathlib.Path(sys.argv[1]), 'x' * 10_000)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, file], capture_output=True, text=True, check=False)
    assert "OSError: [Errno 27]" in ended.stderr
    assert file.read_text() == "old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("before", ["old", None])
def test_a_file_whose_folder_cannot_be_synced_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    file = tmp_path / "file"
    if before:
        file.write_text(before)
        file.chmod(0o700)
    confirm_folders(monkeypatch, 0)
    with pytest.raises(OSError, match="Input/output error"):
        write_atomically(file, "new")
    assert [(path.name, path.read_text(), mode(path)) for path in tmp_path.iterdir()] == (
        [("file", before, 0o700)] if before else []
    )


@pytest.mark.parametrize("before", ["old", None])
def test_what_was_written_is_synced_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    file = tmp_path / "file"
    if before:
        file.write_text(before)
    confirmed = confirmed_syncs(monkeypatch)
    write_atomically(file, "new")
    assert confirmed.has_all(file)


def test_each_folder_of_a_new_home_is_synced_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    confirmed = confirmed_syncs(monkeypatch)
    paths({}, str(tmp_path / "far" / "away")).make()
    made = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert {"far", "away", "state", "run"} <= {path.name for path in made}
    assert [path for path in made if not confirmed.has_name(path)] == []


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_atomically(tmp_path / "folder", "new")
    assert names(tmp_path) == ["folder"]


def test_text_that_is_not_unicode_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_atomically(tmp_path / "file", "\ud800")
    assert names(tmp_path) == []


def test_leftovers_from_the_future_are_swept(tmp_path: Path) -> None:
    for name, ahead in ((".chorus-far.tmp", 7200), (".chorus-near.tmp", 60)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() + ahead, time.time() + ahead))
    sweep_stale(tmp_path)
    assert names(tmp_path) == [".chorus-near.tmp"]


def test_only_old_leftovers_of_killed_writes_are_swept(tmp_path: Path) -> None:
    two_hours_ago = time.time() - 7200
    for name in (".chorus-old.tmp", ".chorus-new.tmp", ".other-old.tmp", "chorus-old.tmp", "system.jsonc"):
        (tmp_path / name).write_text("")
        if "new" not in name:
            os.utime(tmp_path / name, (two_hours_ago, two_hours_ago))
    sweep_stale(tmp_path)
    assert names(tmp_path) == [".chorus-new.tmp", ".other-old.tmp", "chorus-old.tmp", "system.jsonc"]


def test_sweeping_a_missing_folder_does_nothing(tmp_path: Path) -> None:
    sweep_stale(tmp_path / "missing")
    assert names(tmp_path) == []


def test_a_lock_is_seen_while_it_is_held(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert not is_locked(run)
    assert not run.exists()
    with hold(run) as lock:
        assert is_locked(run)
        assert try_lock(run) is None
        assert mode(run) == 0o600
        lock.close()
        assert not is_locked(run)
    again = try_lock(run)
    assert again is not None
    again.close()


def test_a_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    script = (
        "import pathlib, sys\n"
        "from chorus_cli.storage.file_lock import hold\n"
        "lock = hold(pathlib.Path(sys.argv[1]))\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(run)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert is_locked(run)
        process.kill()
    assert not is_locked(run)
    assert run.exists()


def test_a_lock_on_a_file_deleted_meanwhile_is_taken_on_the_new_one(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with hold(run):
        run.unlink()
        with hold(run):
            assert is_locked(run)
        assert not is_locked(run)


def test_a_run_that_another_holds_is_refused(tmp_path: Path) -> None:
    with hold(tmp_path / "run"), pytest.raises(HomeError, match="is held by another Chorus"):
        hold(tmp_path / "run", patience_seconds=0)


def test_a_change_waits_its_turn_but_not_for_ever(tmp_path: Path) -> None:
    file = tmp_path / "system.jsonc"
    with (
        locked(file),
        pytest.raises(SettingsError, match=r"system\.jsonc is being changed by another Chorus"),
        locked(file, patience_seconds=0.05),
    ):
        pass
    with locked(file, patience_seconds=0):
        assert names(tmp_path) == ["system.jsonc.lock"]
