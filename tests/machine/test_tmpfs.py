"""The folder in memory for a private chat, and the editor that is told to keep nothing of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from chorus_cli.core.errors import HomeError
from chorus_cli.machine.editor import UserEditor
from chorus_cli.machine.tmpfs import SHARED_MEMORY, MemoryFolder

_PATIENCE_SECONDS = 60.0
_ON_A_DISK = Path(__file__).parent
needs_memory = pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="there is no file system in memory")


@needs_memory
def test_the_folder_is_made_when_it_is_asked_for_and_only_the_user_can_read_it() -> None:
    before = set(SHARED_MEMORY.glob("chorus-private-*"))
    folder = MemoryFolder({})
    assert set(SHARED_MEMORY.glob("chorus-private-*")) <= before
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


@needs_memory
def test_the_runtime_folder_is_taken_if_it_is_in_memory() -> None:
    with TemporaryDirectory(dir=SHARED_MEMORY) as runtime:
        for place, parent in ((runtime, Path(runtime)), (f"{_ON_A_DISK}", SHARED_MEMORY)):
            folder = MemoryFolder({"XDG_RUNTIME_DIR": place})
            assert folder.path().parent == parent
            folder.close()


@pytest.mark.parametrize("parent", ["missing", ""], ids=["no folder", "a folder on a disk"])
def test_a_machine_without_a_file_system_in_memory_gets_a_sentence(parent: str) -> None:
    with pytest.raises(HomeError, match="no file system in memory"):
        MemoryFolder({}, _ON_A_DISK / parent).path()


@pytest.mark.parametrize(
    ("name", "is_private", "told"), [("gvim", True, True), ("gvim", False, False), ("gedit", True, False)]
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
