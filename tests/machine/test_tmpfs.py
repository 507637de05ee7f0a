"""The folder in memory for a private chat, and the editor that is told to keep nothing of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chorus_cli.core.errors import HomeError
from chorus_cli.machine.editor import UserEditor
from chorus_cli.machine.tmpfs import MemoryFolder, in_memory

_PATIENCE_SECONDS = 60.0
IN_MEMORY = Path("/dev") / "shm"
needs_memory = pytest.mark.skipif(not IN_MEMORY.is_dir(), reason="there is no file system in memory")

ROOT = "30 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw"


def mounted(place: Path, kind: str) -> str:
    escaped = str(place).replace(" ", r"\040")
    return f"31 30 0:25 / {escaped} rw,nosuid shared:7 - {kind} {kind} rw,size=4k"


@pytest.mark.parametrize(
    ("mounts", "found"),
    [
        ({"": "tmpfs"}, True),
        ({"": "ramfs"}, True),
        ({"run user": "tmpfs"}, True),
        ({"": "tmpfs", "run user": "ext4"}, False),
        ({"": "ext4", "run user": "tmpfs"}, True),
        ({"": "ext4"}, False),
        ({"run": "tmpfs"}, False),
        ({}, False),
    ],
)
def test_the_innermost_mount_of_a_folder_says_whether_it_is_in_memory(
    tmp_path: Path, mounts: dict[str, str], *, found: bool
) -> None:
    folder = tmp_path / "run user"
    folder.mkdir()
    table = "\n".join([ROOT, *(mounted(tmp_path / place, kind) for place, kind in mounts.items())])
    assert in_memory([tmp_path / "missing", folder], table) == (folder if found else None)
    assert in_memory([folder], "") is None


@needs_memory
def test_the_folder_is_made_when_it_is_asked_for_and_only_the_user_can_read_it(tmp_path: Path) -> None:
    before = set(IN_MEMORY.glob("chorus-private-*"))
    folder = MemoryFolder({"XDG_RUNTIME_DIR": str(tmp_path)})
    assert set(IN_MEMORY.glob("chorus-private-*")) <= before
    path = folder.path()
    assert folder.path() == path
    assert path.stat().st_mode & 0o777 == 0o700
    (path / "deep").mkdir()
    (path / "deep" / "draft.md").write_text("secret")
    folder.close()
    assert not path.exists()
    folder.close()


@needs_memory
def test_the_folder_of_a_process_that_was_killed_is_deleted() -> None:
    program = (
        "import os\n"
        "from chorus_cli.machine.tmpfs import MemoryFolder\n"
        "path = MemoryFolder(os.environ).path()\n"
        "(path / 'draft.md').write_text('secret')\n"
        "print(path, flush=True)\n"
        "input()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        path = Path(os.fsdecode(process.stdout.readline().strip()))
        assert (path / "draft.md").exists()
        process.kill()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_machine_without_a_file_system_in_memory_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="no file system in memory"):
        MemoryFolder({}, tmp_path / "missing").path()


@pytest.mark.parametrize(
    ("name", "is_private", "told"),
    [("gvim", True, True), ("gvim", False, False), ("gedit", True, False)],
)
async def test_vim_keeps_nothing_of_a_private_text(tmp_path: Path, name: str, *, is_private: bool, told: bool) -> None:
    program = tmp_path / name
    program.write_text(f'#!/bin/sh\nprintf "%s " "$@" > {tmp_path}/arguments\n')
    program.chmod(0o700)
    editor = UserEditor({"EDITOR": str(program), "PATH": os.environ["PATH"]}, is_private=is_private)
    assert await editor.open(tmp_path / "draft.md") == ""
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.endswith("draft.md ")
    assert ("-n -i NONE -c set noundofile nobackup nowritebackup" in arguments) is told
