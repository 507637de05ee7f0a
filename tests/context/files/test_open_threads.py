"""Chats know which thread other running chats have open."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.context.files import OpenThreads
from chorus_cli.storage.file_lock import FileLock, hold


@pytest.fixture
def other(tmp_path: Path) -> OpenThreads:
    """Another Chorus, which has thread 3 of Frodo open."""
    other = OpenThreads(tmp_path, "other")
    other.announce("frodo", 3)
    return other


@pytest.fixture
def alive(tmp_path: Path, other: OpenThreads) -> FileLock:
    """The lock of the other Chorus's process."""
    del other
    return hold(tmp_path / "other")


@pytest.mark.parametrize(
    ("persona", "thread_id", "shared"), [("frodo", 3, True), ("frodo", 33, False), ("sam", 3, False)]
)
def test_a_thread_open_elsewhere_is_shared(
    tmp_path: Path, alive: FileLock, persona: str, thread_id: int, *, shared: bool
) -> None:
    with alive:
        assert OpenThreads(tmp_path, "own").is_shared(persona, thread_id) is shared


def test_a_process_that_has_ended_has_nothing_open(tmp_path: Path, alive: FileLock) -> None:
    alive.close()
    assert not OpenThreads(tmp_path, "own").is_shared("frodo", 3)


def test_nobody_shares_a_thread_with_itself(other: OpenThreads, alive: FileLock) -> None:
    with alive:
        assert not other.is_shared("frodo", 3)


def test_only_the_thread_announced_last_is_open(tmp_path: Path, other: OpenThreads, alive: FileLock) -> None:
    other.announce("frodo", 4)
    with alive:
        assert [OpenThreads(tmp_path, "own").is_shared("frodo", number) for number in (3, 4)] == [False, True]


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    lost = OpenThreads(tmp_path / "lost", "own")
    lost.announce("frodo", 3)
    assert not lost.is_shared("frodo", 3)
