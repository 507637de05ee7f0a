"""Drives the real program the way a user does: as a command, by keys and eyes in a pseudo-terminal, or in tmux."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import termios
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pexpect
import pyte
import pytest

from tests.terminal.command import PROGRAM, Outcome, finished, signals_heard, started
from tests.terminal.forked import fork_of
from tests.terminal.screen.screen_cells import ScrollingScreen, cells_in_use, text_of

PROMPT = "❯"
SHELL_PROMPT = "shell$"
PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.05
_SET_BY_LIBRARIES = ("LITELLM_", "TIKTOKEN_")
_LINES, _COLUMNS, _HISTORY_LINES = 40, 100, 2000
_MARKED_PASTES = 2004 << 5  # as pyte keeps the modes that only some terminals have
_KEYS = {
    "enter": "\r",
    "alt-enter": "\x1b\r",
    "tab": "\t",
    "left": "\x1b[D",
    "up": "\x1b[A",
    "escape": "\x1b",
    "v": "v",
    **{f"ctrl-{letter}": chr(ord(letter) & 31) for letter in "abcdejlrtxz"},
}

LONG_MESSAGE = "I am " + " ".join(f"word{number}" for number in range(50))
"""What ELIZA answers with as many words, 20 ms each: a reply that can be caught while it streams."""

NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
NEW_INTERPRETER = {"PYTHONHASHSEED": "0"}
"""Variables that only a new interpreter can obey: a program that has them is no fork of the test runner."""


@dataclass(frozen=True, slots=True)
class Home:
    """A user's data in a folder of the test, the programs that run on it, and the rows of its database."""

    path: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a program that keeps everything here, without what a library set in this process."""
        terminal = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        own = {name: value for name, value in os.environ.items() if not name.startswith(_SET_BY_LIBRARIES)}
        return {**own, **terminal, "CHORUS_HOME": str(self.path)}

    def run(self, *arguments: str | bytes, stdin: bytes = b"") -> Outcome:
        """Run a command to its end, with ``stdin`` piped in."""
        return finished([*PROGRAM, *arguments], self.environment, stdin)

    def shell(self, script: str) -> Outcome:
        """Run a line of shell that calls ``chorus``."""
        function = 'chorus() { "$0" -m chorus_cli "$@"; }'
        return finished(["sh", "-c", f"{function}\n{script}", sys.executable], self.environment)

    @contextmanager
    def running(
        self, *arguments: str, stdin: int = subprocess.DEVNULL, variables: Mapping[str, str] = NO_VARIABLES
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command whose output the test reads, unbuffered, while it runs."""
        with started([*PROGRAM, *arguments], {**self.environment, **variables}, stdin=stdin) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def chat(self, prompt: str = PROMPT, **variables: str) -> Iterator[Terminal]:
        """Open the chat and wait for its prompt; it is ended in the end, if the test has not done so."""
        terminal = Terminal({**self.environment, **variables})
        try:
            terminal.await_line(prompt)
            yield terminal
        finally:
            terminal.close()

    @contextmanager
    def shell_in_terminal(self, **variables: str) -> Iterator[Terminal]:
        """Open an interactive shell, which starts programs as jobs, and wait for its prompt."""
        plain = {"PS1": f"{SHELL_PROMPT} ", "ENV": ""}
        with closing(Terminal({**self.environment, **plain, **variables}, command=["sh", "-i"])) as terminal:
            terminal.await_line(SHELL_PROMPT)
            yield terminal

    def sql(self, statement: str, *values: str | int) -> list[Any]:
        """Read the database or change it by plain SQL; a row of one column is returned as its value."""
        with closing(sqlite3.connect(self.path / "chorus.db", timeout=PATIENCE_SECONDS)) as connection, connection:
            found = connection.execute(statement, values).fetchall()
        return [row[0] if len(row) == 1 else row for row in found]

    def say_by_sql(self, content: str, age: timedelta, *, role: str = "user", thread: int = 1) -> None:
        """Put a message into the log that is as old as ``age``."""
        moment = datetime.now(UTC) - age
        self.sql(
            "INSERT INTO messages(persona, thread_id, role, content, timestamp) VALUES ('chorus', ?, ?, ?, ?)",
            *(thread, role, content, f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"),
        )

    def said(self) -> list[Any]:
        return self.sql("SELECT content FROM messages WHERE role = 'user' ORDER BY id")

    def unsent(self) -> list[Any]:
        """Return the texts that are not said yet, those at prompts too."""
        return self.sql("SELECT content FROM outbox ORDER BY id")

    def replies(self) -> list[Any]:
        return self.sql("SELECT content, status FROM messages WHERE role = 'assistant' ORDER BY id")

    def seen(self) -> list[str]:
        """Return the messages of the next request, without the system message."""
        report = json.loads(self.run("context", "--json").output)
        return [message["content"] for message in report["messages"] if message["role"] != "system"]


class Terminal:
    """The chat, or another program, in a pseudo-terminal, and the screen that its user sees.

    ``drawn`` is all that the terminal was sent so far.
    """

    def __init__(
        self, environment: Mapping[str, str], screen: pyte.HistoryScreen | None = None, command: Sequence[str] = PROGRAM
    ) -> None:
        self.drawn = b""
        self._text: str | None = None
        self._screen = screen or ScrollingScreen(_COLUMNS, _LINES, history=_HISTORY_LINES)
        size = (self._screen.lines, self._screen.columns)
        self._stream = pyte.ByteStream(self._screen)
        with signals_heard(), warnings.catch_warnings():
            # Newer Pythons warn of forking beside the threads of a test runner; the child runs another program at once.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._child = pexpect.spawn(
                command[0], [*command[1:]], env=environment, dimensions=size, preexec_fn=fork_of(command, environment)
            )
        # pexpect waits 50 ms before each key unless told otherwise.
        self._child.delaybeforesend = None
        self._child.ptyproc.delayafterclose = 0
        # A terminal that is asked where its cursor is answers as if that were typed; pyte leaves it to us to send it.
        self._screen.write_process_input = self._child.send  # type: ignore[method-assign]

    @property
    def pid(self) -> int:
        return int(self._child.pid)

    @property
    def descriptor(self) -> int:
        """The side of the pseudo-terminal at which the user is."""
        return int(self._child.child_fd)

    @property
    def echoes(self) -> bool:
        """Whether the terminal echoes keys and edits lines, as a shell expects."""
        return bool(self._modes & termios.ECHO and self._modes & termios.ICANON and not self.marks_pastes)

    @property
    def marks_pastes(self) -> bool:
        """Whether the terminal marks the beginning and the end of a paste, as a prompt wants."""
        return _MARKED_PASTES in self._screen.mode

    def type(self, text: str | bytes) -> None:
        self._child.send(text)

    def paste(self, text: str) -> None:
        """Send a text the way a terminal does that knows bracketed paste."""
        self._child.send(f"\x1b[200~{text}\x1b[201~")

    def press(self, *keys: str) -> None:
        for key in keys:
            self._child.send(_KEYS[key])

    def say(self, text: str | bytes) -> None:
        self.type(text)
        self.press("enter")

    def ask(self, line: str | bytes, answer: str, prompt: str = PROMPT, *, times: int = 0) -> None:
        """Say a line, and wait for its answer and for the next prompt, by which time all of it is stored.

        Without ``times`` the answer must be there once more than before.
        """
        times = times or (self.screen_text().count(answer) + 1 if answer else 1)
        self.say(line)
        self.await_text(answer, times=times)
        self.await_line(prompt)

    def stop(self, told: str = "Stopped") -> None:
        """Press Ctrl-C, and wait until a text tells that something was stopped."""
        self.press("ctrl-c")
        self.await_text(told)
        self.await_line(PROMPT)

    def screen_text(self) -> str:
        """Return the text of the screen and the scrollback, without blanks at the ends of lines."""
        if self._text is None:
            above, below = map(self._text_of, self._screen.history.top), map(self.line, range(self._screen.lines))
            self._text = "\n".join((*above, *below)).rstrip()
        return self._text

    def words(self) -> str:
        """Return the words on the screen and above it, wherever its rows end."""
        return " ".join(self.screen_text().split())

    def await_text(self, text: str, seconds: float = PATIENCE_SECONDS, *, times: int = 1) -> None:
        """Look until ``text`` stands on the screen or above it, as often as ``times``."""
        self.until(lambda: self.screen_text().count(text) >= times, f"the text {text!r}", seconds)

    def await_line(self, line: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Look until the line with the cursor reads ``line``, such as the prompt and what is typed at it."""
        self.until(lambda: self.line(self._screen.cursor.y) == line, f"the cursor in the line {line!r}", seconds)

    def await_prompt(self, persona: str) -> None:
        """Look until an empty prompt is there and the line below names ``persona``."""
        self.await_line(PROMPT)
        self.await_bottom_line(f" {persona} ")

    def await_column(self, column: int) -> None:
        """Look until the cursor stands in a column, the first of which is 0."""
        self.until(lambda: int(self._screen.cursor.x) == column, f"the cursor in column {column}")

    def await_bottom_line(self, *pieces: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Look until the line below everything holds all pieces."""
        self.until(lambda: all(piece in self.bottom_line() for piece in pieces), f"{pieces} below", seconds)

    def bottom_line(self) -> str:
        return self.line(self._screen.lines - 1)

    def until(self, seen: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Look until ``seen`` is true of the screen."""
        deadline = time.monotonic() + seconds
        while not seen():
            assert not self._child.flag_eof, f"The program ended before {what} came:\n{self.screen_text()}"
            assert time.monotonic() < deadline, f"{what} did not come within {seconds:g} s:\n{self.screen_text()}"
            self._look()

    def await_busy(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Look until the program answers: from then on Ctrl-C is a signal to it, no longer a key at the prompt."""
        self.until(lambda: bool(self._modes & termios.ISIG), "a busy program", seconds)

    def await_idle(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Look until the prompt is there: from then on Ctrl-C is a key."""
        self.until(lambda: not self._modes & termios.ISIG, "the prompt", seconds)

    def watch(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._look()

    def await_end(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait until the program has ended and return its exit code, negative for a signal that killed it."""
        deadline = time.monotonic() + seconds
        while self._child.isalive():
            assert time.monotonic() < deadline, f"The program runs on:\n{self.screen_text()}"
            self._look()
        while self._look():
            pass
        return int(self._child.exitstatus if self._child.signalstatus is None else -self._child.signalstatus)

    def kill(self, number: int, seconds: float = PATIENCE_SECONDS) -> None:
        """Send a signal that ends the program: in order, unless it is SIGKILL."""
        os.kill(self.pid, number)
        assert self.await_end(seconds) == (-number if number == signal.SIGKILL else 128 + number)

    def leave(self) -> None:
        """Press Ctrl-D at the empty prompt, and wait for the end."""
        self.press("ctrl-d")
        assert self.await_end() == 0

    def resize(self, columns: int, lines: int = _LINES) -> None:
        """Change the size of the window, without reflowing its text."""
        self._screen.resize(lines, columns)
        self._text = None
        self._child.setwinsize(lines, columns)

    def hang_up(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Close the terminal's window and return the program's exit code as soon as it has noticed."""
        self._child.ptyproc.fileobj.close()
        return self.await_end(seconds)

    def close(self) -> None:
        """End the program if it still runs; a second time does nothing."""
        if self._child.isalive():
            self._child.kill(signal.SIGKILL)
            self._child.wait()
        self._child.close()

    def modes(self) -> list[Any]:
        return [*termios.tcgetattr(self._child.child_fd)]

    @property
    def _modes(self) -> int:
        return int(self.modes()[3])

    def _look(self) -> bytes:
        """Read and return the output of the program since then: nothing once it or the window is gone."""
        drawn = b""
        if self._child.flag_eof or self._child.ptyproc.fileobj.closed:
            time.sleep(_LOOK_SECONDS)
            return drawn
        with suppress(pexpect.TIMEOUT, pexpect.EOF):
            drawn = bytes(self._child.read_nonblocking(65536, _LOOK_SECONDS))
            self.drawn += drawn
            self._stream.feed(drawn)
            self._text = None
        return drawn

    def line(self, number: int) -> str:
        return self._text_of(self._screen.buffer[number])

    def _text_of(self, row: Mapping[int, Any]) -> str:
        return text_of(cells_in_use(row, self._screen.columns))


@contextmanager
def own_tmux(folder: Path) -> Iterator[Callable[..., str]]:
    """Yield a function that runs commands of a tmux of the test's own; its window has 60 columns and 15 lines."""
    program = shutil.which("tmux")
    if program is None:
        pytest.skip("tmux is not installed")
    configuration = folder / "tmux.conf"
    configuration.write_text(
        "set -g set-clipboard on\nset -g history-limit 50000\nset -g default-terminal tmux-256color\n"
    )
    base = [program, "-S", str(folder / "socket"), "-f", str(configuration)]

    def run(*arguments: str) -> str:
        return subprocess.run([*base, *arguments], capture_output=True, text=True, check=False, timeout=20).stdout

    run("new-session", "-d", "-x", "60", "-y", "15", "env -u COLUMNS -u LINES sh")
    try:
        yield run
    finally:
        run("kill-server")


def await_pane(tmux: Callable[..., str], text: str) -> str:
    """Look until ``text`` stands in the window or above it, and return all that stands there."""
    deadline = time.monotonic() + 20
    while text not in (pane := tmux("capture-pane", "-p", "-J", "-S", "-")):
        assert time.monotonic() < deadline, pane
        time.sleep(0.05)
    return pane
