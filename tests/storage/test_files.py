"""Files that are replaced whole, the locks around it, and files that are read up to a limit."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chorus_cli.core.errors import HomeError, OutputError, SettingsError
from chorus_cli.core.limits import Limit
from chorus_cli.machine.paths import paths
from chorus_cli.run_storage import kept, on_disk
from chorus_cli.settings.files import change_key
from chorus_cli.storage import typed_paths
from chorus_cli.storage.file_lock import hold, is_locked, locked, try_lock
from chorus_cli.storage.files import copy_aside, opened_file, read_within, sweep_stale, write_atomically
from tests.killed_program import killed_at
from tests.storage.unsynced import confirm_folders, confirmed_syncs


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


def test_an_export_that_the_disk_does_not_confirm_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    confirm_folders(monkeypatch, 0)
    with pytest.raises(OutputError, match=r"Input/output error\. Nothing was written\."):
        typed_paths.write(tmp_path / "log.md", "new", replace=False)
    assert names(tmp_path) == []


def test_a_copy_of_a_file_that_is_gone_leaves_no_file_and_none_open(tmp_path: Path) -> None:
    before = len(names(Path("/dev/fd")))
    with pytest.raises(FileNotFoundError):
        copy_aside(tmp_path / "gone", tmp_path / "copy")
    assert (names(tmp_path), len(names(Path("/dev/fd")))) == ([], before)


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


def test_only_leftovers_of_killed_writes_that_are_old_or_from_the_future_are_swept(tmp_path: Path) -> None:
    ages = {".chorus-old.tmp": 7200, ".chorus-far.tmp": -7200, ".chorus-new.tmp": 0, ".chorus-near.tmp": -60}
    for name, age in {**ages, ".other-old.tmp": 7200, "chorus-old.tmp": 7200, "system.jsonc": 7200}.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age, time.time() - age))
    for folder in (tmp_path, tmp_path / "missing"):
        sweep_stale(folder)
    kept = {".chorus-new.tmp", ".chorus-near.tmp", ".other-old.tmp", "chorus-old.tmp", "system.jsonc"}
    assert {*names(tmp_path)} == kept


def test_a_lock_is_seen_and_refused_to_others_while_it_is_held(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert not is_locked(run)
    assert not run.exists()
    with hold(run) as lock:
        assert is_locked(run)
        assert try_lock(run) is None
        assert mode(run) == 0o600
        with pytest.raises(HomeError, match="Another Chorus is using"):
            hold(run, patience_seconds=0)
        lock.close()
        assert not is_locked(run)
    again = try_lock(run)
    assert again is not None
    again.close()


def test_a_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    run = tmp_path / "run"

    def held() -> None:
        with hold(run):
            if is_locked(run):
                run.chmod(0o600)

    killed_at("os.chmod", held)
    assert not is_locked(run)
    assert run.exists()


def test_a_lock_on_a_file_deleted_meanwhile_is_taken_on_the_new_one(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with hold(run):
        run.unlink()
        with hold(run):
            assert is_locked(run)
        assert not is_locked(run)


def test_a_change_waits_its_turn_but_not_for_ever(tmp_path: Path) -> None:
    file = tmp_path / "system.jsonc"
    with (
        locked(file),
        pytest.raises(SettingsError, match=r"^Another Chorus is changing .*system\.jsonc and has not finished"),
        locked(file, patience_seconds=0.05),
    ):
        pass
    with locked(file, patience_seconds=0):
        assert names(tmp_path) == ["system.jsonc.lock"]


# Runs that a row names oddly, that cannot be looked at, or whose lock file cannot be kept


@pytest.mark.parametrize("run", ["", "12\0 34"], ids=["empty", "a NUL"])
def test_a_run_with_an_impossible_name_is_not_alive(tmp_path: Path, run: str) -> None:
    assert not is_locked(tmp_path / run)


def test_a_run_that_cannot_be_looked_at_may_be_alive(tmp_path: Path) -> None:
    home = paths({}, str(tmp_path))
    home.run.parent.mkdir(parents=True)
    home.run.write_text("no folder")
    assert on_disk(home, "this-run").is_alive("another-run")


def test_a_lock_file_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match=r"cannot keep the file .*17-0123abcd locked while it runs: No such file"):
        hold(tmp_path / "run" / "17-0123abcd")


def test_a_file_system_that_knows_no_locks_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unlocked(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unlocked)
    with pytest.raises(HomeError, match=r"cannot keep the file .*17-0123abcd locked while it runs: No locks available"):
        hold(tmp_path / "17-0123abcd")
    with pytest.raises(SettingsError, match=r"config\.jsonc cannot be changed: No locks available"):
        change_key(tmp_path / "config.jsonc", "model", "m")
    assert not (tmp_path / "config.jsonc").exists()


def test_a_lock_file_that_cannot_be_deleted_is_left_without_a_word(tmp_path: Path) -> None:
    home = paths({}, str(tmp_path))
    home.make()
    with kept(home) as storage:
        (home.run / storage.run).unlink()
        (home.run / storage.run).mkdir()
    assert [path.name for path in home.run.iterdir()] == [storage.run]


# Reading up to a limit

TEN_BYTES = Limit("a note", 10, "It is refused.")


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="only /proc has files without a size")
def test_a_file_that_has_more_than_its_size_says_is_refused_too() -> None:
    """It may also grow between the look at its size and the reading."""
    assert Path("/proc/version").stat().st_size == 0
    with pytest.raises(OSError, match="it is larger than 10 bytes"):
        read_within(Path("/proc/version"), TEN_BYTES)


def test_a_file_up_to_the_limit_is_read_whole_and_what_is_larger_or_no_file_refused(tmp_path: Path) -> None:
    (tmp_path / "note").write_bytes(b"0123456789")
    assert read_within(tmp_path / "note", TEN_BYTES) == b"0123456789"
    (tmp_path / "large").write_bytes(b"0123456789!")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    reasons = {"large": "it is larger than 10 bytes", "pipe": "not a regular file", "device": "not a regular file"}
    for name, reason in {**reasons, "folder": "directory|regular file"}.items():
        with pytest.raises(OSError, match=reason):
            read_within(tmp_path / name, TEN_BYTES)


def test_a_folder_is_named_and_left_closed(tmp_path: Path) -> None:
    before = len(names(Path("/dev/fd")))
    with pytest.raises(IsADirectoryError, match="Is a directory") as refused:
        read_within(tmp_path, TEN_BYTES)
    assert refused.value.filename == str(tmp_path)
    assert len(names(Path("/dev/fd"))) == before


def test_a_link_is_followed_only_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "note").write_bytes(b"A note.")
    (tmp_path / "link").symlink_to("note")
    with opened_file(tmp_path / "link") as file:
        assert file.read() == b"A note."
    with pytest.raises(OSError, match="symbolic link"), opened_file(tmp_path / "link", follows_link=False):
        pass
