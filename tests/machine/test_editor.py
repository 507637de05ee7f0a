"""The user's editor in a pseudo-terminal: little scripts stand in for it, everything else is real."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.machine.editor import UserEditor, _file_at

_PROGRAM = """
import asyncio, fcntl, json, os, pathlib, signal, sys, termios
from chorus_cli.machine.editor import UserEditor
from chorus_cli.machine.clock import SystemClock
from chorus_cli.core.errors import EditorError
from chorus_cli.framework.drafts import Editing
from chorus_cli.terminal.prompt.keyboard import typing_ahead

async def edit(folder, manner):
    stops = []
    if manner == "chat":
        for number in (signal.SIGINT, signal.SIGQUIT):
            asyncio.get_running_loop().add_signal_handler(number, stops.append, number)
    try:
        edited = await Editing(UserEditor(os.environ), lambda: folder, SystemClock()).edit("system.jsonc", "old\\n")
        told = {"text": edited.text, "doubt": edited.doubt}
    except EditorError as error:
        told = {"error": str(error)}
    if manner == "chat":
        early = len(stops)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.01)
        told["stops"] = [early, len(stops)]
    return told

folder, result, manner = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
if os.isatty(0):
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
with typing_ahead():
    modes = termios.tcgetattr(0) if os.isatty(0) else None
    told = asyncio.run(edit(folder, manner))
    told["restored"] = modes is None or modes == termios.tcgetattr(0)
told["drafts"] = [str(path) for path in folder.iterdir()]
result.write_text(json.dumps(told))
"""
_PATIENCE_SECONDS = 60.0
_SCREEN_GIVEN_BACK = b"\x1b[?1049l"


@dataclass(frozen=True, slots=True)
class Told:
    """The program's report, and its output to the terminal."""

    written: bytes
    restored: bool
    drafts: list[str]
    text: str = ""
    doubt: str = ""
    error: str = ""
    stops: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Desk:
    """A folder with an editor that is a shell script, and the terminal in which Chorus opens it."""

    folder: Path

    def editor(self, script: str, name: str = "scribe") -> Path:
        """Write an editor and return its path."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)
        return path

    def command(self, manner: str) -> list[str]:
        """Return the program that edits, in the manner of ``chorus ask`` or of the chat, and tells what it found."""
        return [sys.executable, "-c", _PROGRAM, str(self.folder / "drafts"), str(self.folder / "result"), manner]

    def edit(self, *keys: str, manner: str = "ask", **variables: str) -> Told:
        """Have the text ``old`` edited, pressing each key when the editor has written ``ready``."""
        with self._editing(manner, variables) as (master, process):
            written = _conversation(master, list(keys))
            assert process.wait(timeout=_PATIENCE_SECONDS) == 0, written.decode()
        return Told(written, **json.loads((self.folder / "result").read_text()))

    @contextmanager
    def _editing(self, manner: str, variables: dict[str, str]) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
        master, terminal = pty.openpty()
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm", **variables}
        with subprocess.Popen(
            self.command(manner),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=environment,
            start_new_session=True,
        ) as process:
            os.close(terminal)
            try:
                yield master, process
            finally:
                process.kill()
                os.close(master)


def _conversation(master: int, keys: list[str]) -> bytes:
    """Press the next key whenever ``ready`` comes, until the terminal is closed; return all that came."""
    written = b""
    with suppress(OSError):  # how Linux says that the other end is closed
        while select.select([master], [], [], _PATIENCE_SECONDS)[0] and (chunk := os.read(master, 4096)):
            written += chunk
            if b"ready" in chunk and keys:
                os.write(master, keys.pop(0).encode())
    return written


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "drafts").mkdir()
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("script", "text", "doubt"),
    [
        ('echo new >> "$1"', "old\nnew\n", ""),
        ('echo new > "$1"; exit 1', "new\n", "scribe ended with status 1."),
        ('echo new > "$1"; kill -9 $$', "new\n", "scribe was ended by signal 9 (Killed)."),
    ],
)
def test_what_the_editor_leaves_is_read_however_it_ended(desk: Desk, script: str, text: str, doubt: str) -> None:
    told = desk.edit(EDITOR=str(desk.editor(script)))
    assert (told.text, told.error) == (text, "")
    assert told.doubt.startswith(doubt)
    assert bool(told.doubt) == bool(doubt)
    assert told.restored
    assert _SCREEN_GIVEN_BACK not in told.written
    assert len(told.drafts) == 1


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"VISUAL": "{folder}/visual", "EDITOR": "{folder}/editor"}, "visual"),
        ({"VISUAL": "{folder}/visual", "EDITOR": "{folder}/editor", "TERM": "dumb"}, "editor"),
        ({"VISUAL": " ", "EDITOR": "{folder}/editor"}, "editor"),
        ({"EDITOR": "editor", "PATH": "{folder}:/usr/bin:/bin"}, "editor"),
        ({"EDITOR": "{folder}/editor --wait 'two words'"}, "editor --wait two words"),
        ({"EDITOR": "'{folder}/with space/editor' -w"}, "editor -w"),
        *(({"PATH": "{folder}:/usr/bin:/bin"}, "editor"), ({"PATH": "{folder}/only nano"}, "nano")),
        ({"PATH": "{folder}/only vi"}, "vi"),
    ],
)
def test_the_editor_is_the_one_that_was_asked_for_with_its_arguments(
    desk: Desk, variables: dict[str, str], text: str
) -> None:
    tell = 'called="${0##*/}"; while [ $# -gt 1 ]; do called="$called $1"; shift; done; echo "$called" > "$1"'
    for name in ("visual", "editor", "nano", "vi", "with space/editor", "only nano/nano", "only vi/vi"):
        desk.editor(tell, name)
    told = desk.edit(**{name: value.format(folder=desk.folder) for name, value in variables.items()})
    assert (told.error, told.text) == ("", f"{text}\n")


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        ({"EDITOR": "missing -w"}, "EDITOR is missing -w, but there is no program missing. Set EDITOR to an editor"),
        ({"VISUAL": "missing", "EDITOR": "true"}, "VISUAL is missing, but there is no program missing."),
        ({"EDITOR": "/dev/null"}, "EDITOR is /dev/null, but there is no program /dev/null."),
        ({"EDITOR": 'vim "x'}, 'EDITOR cannot be read: vim "x ends within a quote or after a backslash.'),
        ({"EDITOR": "{folder}/damaged"}, "/damaged cannot be started: Exec format error."),
        ({"PATH": "/nowhere"}, "There is no editor: EDITOR is not set, and none of editor, nano, vi is found."),
    ],
)
def test_an_editor_that_cannot_be_started_is_named_and_leaves_no_draft(
    desk: Desk, variables: dict[str, str], error: str
) -> None:
    desk.editor("").with_name("damaged").write_bytes(b"\x00\x01")
    (desk.folder / "damaged").chmod(0o700)
    told = desk.edit(**{name: value.format(folder=desk.folder) for name, value in variables.items()})
    assert error in told.error
    assert told.drafts == []
    assert told.restored


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("/usr/bin/vi", "-c 17 /d/draft.md"),
        *((f"/usr/bin/{name}", "+17 /d/draft.md") for name in ("vim", "gvim", "nvim", "view", "nano", "micro", "kak")),
        *(
            (f"/usr/bin/{name}", "+17 /d/draft.md")
            for name in ("emacs", "emacsclient", "joe", "ne", "mg", "pico", "gedit")
        ),
        *((f"/usr/bin/{name}", "--goto /d/draft.md:17") for name in ("code", "codium", "cursor", "windsurf")),
        *((f"/usr/bin/{name}", "/d/draft.md:17") for name in ("subl", "zed", "hx", "helix")),
        *((f"/usr/bin/{name}", "/d/draft.md") for name in ("ed", "mousepad", "my editor", "vim-wrapper")),
    ],
)
def test_an_editor_that_takes_a_line_number_is_given_it_and_no_other(program: str, arguments: str) -> None:
    assert " ".join(_file_at(program, "/d/draft.md", 17)) == arguments
    assert _file_at(program, "/d/draft.md", None) == ["/d/draft.md"]


def test_the_systems_usual_editor_is_known_by_what_it_is_a_link_to(tmp_path: Path) -> None:
    (tmp_path / "vim.basic").touch()
    (tmp_path / "alternative").symlink_to("vim.basic")
    (tmp_path / "editor").symlink_to("alternative")
    assert _file_at(str(tmp_path / "editor"), "draft.md", 17) == ["+17", "draft.md"]


@pytest.mark.parametrize("manner", ["ask", "chat"])
@pytest.mark.parametrize("key", ["\x03", "\x1c"])
def test_keys_that_send_signals_belong_to_the_editor(desk: Desk, manner: str, key: str) -> None:
    # A shell may first finish reading its line, which the signal has emptied.
    script = """
        trap 'echo caught >> "$1"; echo ready' INT QUIT
        echo ready; until [ "$line" = go ]; do read line; done; echo saved >> "$1"
    """
    signalled = f"{key}\n"
    told = desk.edit(signalled, signalled, "go\n", manner=manner, EDITOR=str(desk.editor(script)))
    assert told.text == "old\ncaught\ncaught\nsaved\n"
    assert told.stops == ([0, 1] if manner == "chat" else [])
    assert told.restored


def test_the_editor_finds_the_terminal_as_a_shell_leaves_it(desk: Desk) -> None:
    told = desk.edit(EDITOR=str(desk.editor('stty -a > "$1"')))
    assert {"icanon", "echo", "isig", "iexten", "icrnl", "opost"} <= set(told.text.replace(";", " ").split())
    assert told.written.startswith(b"\x1b[?2004h\x1b[?2004l")
    assert told.restored


def test_after_a_full_screen_program_that_was_killed_the_screen_is_given_back(desk: Desk) -> None:
    script = 'stty raw -echo; printf "\\033[?1049h\\033[?1000h\\033[?25l"; echo new > "$1"; kill -9 $$'
    told = desk.edit(EDITOR=str(desk.editor(script)))
    assert (told.text, told.doubt) == ("new\n", "scribe was ended by signal 9 (Killed).")
    assert told.restored
    _, _, after = told.written.partition(b"\x1b[?25l")
    assert all(sequence in after for sequence in (_SCREEN_GIVEN_BACK, b"\x1b[?1000l", b"\x1b[?25h", b"\x1b[0m"))


def test_without_a_terminal_only_an_editor_that_needs_none_is_started(desk: Desk) -> None:
    """Another has nothing to draw on, or nobody to type."""
    told = without_a_terminal(desk, str(desk.editor("exit 0", "nano")))
    assert told["error"] == "The editor nano needs a terminal. Open the chat in one (run: chorus) and edit there."
    assert told["drafts"] == []
    told = without_a_terminal(desk, "sed -i s/old/new/")
    assert (told["text"], told["doubt"], len(told["drafts"])) == ("new\n", "", 1)


def without_a_terminal(desk: Desk, editor: str) -> dict[str, Any]:
    environment = {**os.environ, "EDITOR": editor}
    subprocess.run(desk.command("ask"), stdin=subprocess.DEVNULL, env=environment, check=True, capture_output=True)
    told: dict[str, Any] = json.loads((desk.folder / "result").read_text())
    return told


@pytest.mark.parametrize(("editor", "stays"), [("sh", False), ("ed", True), ("ed -s", True)])
def test_editors_without_a_window_are_known(tmp_path: Path, editor: str, stays: bool) -> None:  # noqa: FBT001
    for name in ("sh", "ed"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o700)
    environment = {"EDITOR": editor, "PATH": str(tmp_path)}
    assert UserEditor(environment).stays_in_terminal() is stays
