"""All that Chorus keeps is private to its user: its files, the folder in memory, and what an editor is given."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from chorus_cli.core.errors import HomeError
from chorus_cli.machine.editor import UserEditor
from chorus_cli.machine.tmpfs import SHARED_MEMORY, MemoryFolder
from tests.terminal.command import finished
from tests.terminal.driver import Home
from tests.terminal.editors import editor
from tests.terminal.ordinary_user import ordinary, refused

KEPT = (
    "chorus.db", "personas", "personas/chorus", "state", "state/run", "config.jsonc", "attachments", "attachments/ab",
    "backups", "backups/old.db", "state/drafts", "state/drafts/draft-note.md", "commands", "commands/mine.md",
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with something of each kind, as the first run and its user leave it."""
    home = Home(tmp_path / "home")
    home.run("log")
    for name in KEPT:
        path = home.path / name
        if not path.exists() and not path.suffix:
            path.mkdir(mode=0o700)
        elif not path.exists():
            path.write_text("{}" if path.suffix == ".jsonc" else "text")
            path.chmod(0o600)
    return home


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def too_wide(home: Home) -> list[str]:
    return [str(path) for path in [home.path, *home.path.rglob("*")] if mode(path) & 0o077]


@pytest.mark.parametrize("arguments", [("log",), ("ask", "-c", "I am tired"), ("context",)])
def test_everything_that_was_open_to_others_is_closed_and_told_once(home: Home, arguments: tuple[str, ...]) -> None:
    assert home.run("log").errors == ""
    for path in [home.path, *home.path.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o664)
    told = home.run(*arguments).errors
    assert told.count(f"{home.path} was open to other users of this machine; now only you can read it.") == 1
    assert mode(home.path) == 0o700
    assert all((home.path / name).exists() for name in KEPT)
    assert home.run("log").errors == ""


@pytest.mark.parametrize("name", ["chorus.db", "personas", "state", "config.jsonc"])
def test_among_other_files_what_is_of_chorus_is_closed_and_told(home: Home, name: str) -> None:
    foreign, path = home.path / "my-other-things", home.path / name
    foreign.mkdir()
    for each in (foreign, home.path, path):
        each.chmod(0o755)
    assert f"{path} was open to other users of this machine" in home.run("log").errors
    assert [mode(each) & 0o077 for each in (foreign, home.path, path)] == [0o055, 0o055, 0]
    assert home.run("log").errors == ""


def test_everything_that_chorus_makes_is_for_its_user_only(tmp_path: Path) -> None:
    home, picture = Home(tmp_path / "new"), tmp_path / "note.txt"
    picture.write_text("A note.")
    before = os.umask(0)
    try:
        with home.chat(EDITOR=editor(tmp_path, 'echo "unread" > "$file"; exit 1')) as chat:
            chat.ask("I am tired", "tired?")
            chat.ask("/model openai/gpt-4o", "openai/gpt-4o")
            chat.ask(f"/attach {picture}", "note.txt")
            chat.ask("/model chorus/eliza", "chorus/eliza")
            chat.ask("/settings set temperature 0.5", "temperature is now 0.5")
            chat.ask("/context save evening", "evening")
            chat.ask("/backup", "1 attachment")
            chat.say("/context edit")
            chat.await_text("Use the saved text?")
            chat.ask("n", "your text is kept in")
    finally:
        os.umask(before)
    made = {path.relative_to(home.path).parts[0] for path in home.path.rglob("*") if path.is_file()}
    assert made >= {"chorus.db", "personas", "state", "attachments", "backups"}
    assert list(home.path.glob("state/drafts/draft-*"))
    assert too_wide(home) == []


def test_a_link_is_left_alone(home: Home, tmp_path: Path) -> None:
    elsewhere = tmp_path / "shared"
    home.path.joinpath("commands").rename(elsewhere)
    home.path.joinpath("commands").symlink_to(elsewhere)
    for path in (elsewhere, home.path):
        path.chmod(0o755)
    home.path.joinpath("my-other-things").touch()
    assert home.run("log").errors == ""
    assert mode(elsewhere) == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a file away")
def test_a_folder_of_another_user_is_left_alone(home: Home) -> None:
    home.path.joinpath("backups").chmod(0o755)
    os.chown(home.path / "backups", 65_534, 65_534)
    home.path.joinpath("my-other-things").touch()
    home.path.chmod(0o755)
    assert home.run("log").errors == ""
    assert mode(home.path / "backups") == 0o755


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
def test_the_runtime_folder_is_taken_if_it_is_in_memory_and_can_be_written_to() -> None:
    with TemporaryDirectory(dir=SHARED_MEMORY) as runtime:
        for place, parent in ((runtime, Path(runtime)), (f"{_ON_A_DISK}", SHARED_MEMORY)):
            folder = MemoryFolder({"XDG_RUNTIME_DIR": place})
            assert folder.path().parent == parent
            folder.close()
        told = "import os; from chorus_cli.machine.tmpfs import MemoryFolder; print(MemoryFolder(os.environ).path())"
        with refused(Path(runtime)):
            outcome = finished([*ordinary(), sys.executable, "-c", told], {**os.environ, "XDG_RUNTIME_DIR": runtime})
        assert Path(outcome.output).parent == SHARED_MEMORY


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
    assert ("--cmd set nomodeline" in arguments) is (name == "gvim")
