"""A file is read up to its limit, and nothing that is no file is read at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chorus_cli.core.limits import Limit
from chorus_cli.storage.files import opened_file, read_within

TEN_BYTES = Limit("a note", 10, "It is refused.")


def test_a_file_up_to_the_limit_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "note").write_bytes(b"0123456789")
    assert read_within(tmp_path / "note", TEN_BYTES) == b"0123456789"


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="only /proc has files without a size")
def test_a_file_that_has_more_than_its_size_says_is_refused_too() -> None:
    """It may also grow between the look at its size and the reading."""
    assert Path("/proc/version").stat().st_size == 0
    with pytest.raises(OSError, match="it has more than 10 bytes"):
        read_within(Path("/proc/version"), TEN_BYTES)


def test_what_is_too_large_or_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"0123456789!")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    reasons = {"large": "it has more than 10 bytes", "pipe": "not a regular file", "device": "not a regular file"}
    for name, reason in {**reasons, "folder": "directory|regular file"}.items():
        with pytest.raises(OSError, match=reason):
            read_within(tmp_path / name, TEN_BYTES)


def test_a_folder_is_named_and_left_closed(tmp_path: Path) -> None:
    before = next_descriptor()
    with pytest.raises(IsADirectoryError, match="Is a directory") as refused:
        read_within(tmp_path, TEN_BYTES)
    assert refused.value.filename == str(tmp_path)
    assert next_descriptor() == before


def next_descriptor() -> int:
    """Return the lowest number that is free for a file."""
    with Path(os.devnull).open("rb") as file:
        return file.fileno()


def test_a_link_is_followed_only_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "note").write_bytes(b"A note.")
    (tmp_path / "link").symlink_to("note")
    with opened_file(tmp_path / "link") as file:
        assert file.read() == b"A note."
    with pytest.raises(OSError, match="symbolic link"), opened_file(tmp_path / "link", follows_link=False):
        pass
