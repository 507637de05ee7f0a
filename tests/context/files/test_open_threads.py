"""Chats know which thread other running chats have open."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path, PosixPath

from chorus_cli.context.files import OpenThreads
from chorus_cli.storage.file_lock import hold


def test_the_thread_that_a_running_chat_announced_last_is_shared_with_it(tmp_path: Path) -> None:
    own, other = OpenThreads(tmp_path, "own"), OpenThreads(tmp_path, "other")
    other.announce("frodo", 4)
    other.announce("frodo", 3)
    alive = hold(tmp_path / "other")
    with alive:
        shared = [own.is_shared(*thread) for thread in (("frodo", 3), ("frodo", 33), ("frodo", 4), ("sam", 3))]
        assert shared == [True, False, False, False]
        assert not other.is_shared("frodo", 3)
    assert not own.is_shared("frodo", 3)


class Sorted(PosixPath):
    """A folder that lists its files by name."""

    def iterdir(self) -> Generator[Sorted, None, None]:
        yield from sorted(super().iterdir())


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "damaged").symlink_to("/proc/self/mem")
    OpenThreads(tmp_path, "other").announce("frodo", 3)
    with hold(tmp_path / "other"):
        assert OpenThreads(Sorted(tmp_path), "own").is_shared("frodo", 3)


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    lost = OpenThreads(tmp_path / "lost", "own")
    lost.announce("frodo", 3)
    assert not lost.is_shared("frodo", 3)
