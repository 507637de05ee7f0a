"""The user's editor, in the foreground of the terminal that Chorus runs in.

The editor belongs to the process group of Chorus, so Ctrl-Z in it stops both, and the shell's ``fg`` continues both.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import termios
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from chorus_cli.core.errors import EditorError
from chorus_cli.machine.environment import umask_of, without_secrets

_INPUT, _OUTPUT = 0, 1
_FALLBACKS = ("editor", "nano", "vi")
_ADVICE = "Set EDITOR to an editor that is installed, for example: export EDITOR=nano"

# Options to open a file at a line, by editor; vi is separate because BusyBox's vi does not know +LINE.
_PLUS_LINE = frozenset(
    {"vim", "gvim", "nvim", "view", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne", "mg", "pico", "gedit"}
)
_GO_TO = frozenset({"code", "codium", "cursor", "windsurf"})
_FILE_AND_LINE = frozenset({"subl", "zed", "hx", "helix"})

_VIMS = frozenset({"vim", "gvim", "nvim", "view"})
# A modeline in a text that a model wrote must not set options. The user's own settings come later and win.
_WITHOUT_MODELINES = ["--cmd", "set nomodeline"]
# With these, Vim writes no swap, viminfo or shada file and, whatever the user's settings are, no undo or backup file.
_WITHOUT_TRACES = ["-n", "-i", "NONE", "-c", "set noundofile nobackup nowritebackup"]

# Ctrl-C and Ctrl-\ send these signals to every process in the foreground.
_KEY_SIGNALS = (signal.SIGINT, signal.SIGQUIT)
# Ctrl-Z stops this process too, and must do so without a handler, which would touch the terminal.
_WHILE_LENT = {**dict.fromkeys(_KEY_SIGNALS, signal.SIG_IGN), signal.SIGTSTP: signal.SIG_DFL}
# Python itself ignores SIGPIPE and SIGXFSZ.
_IGNORED_HERE = (*_KEY_SIGNALS, signal.SIGPIPE, signal.SIGXFSZ)

# An editor that is asked to end has this much time to rescue unsaved text.
_GRACE_SECONDS = 3.0

_PASTES_UNMARKED = b"\x1b[?2004l"
_SCREEN_GIVEN_BACK = (
    b"\x1b[?1049l"  # the other screen
    b"\x1b[?2004l"  # marks around pastes
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l"  # reports of the mouse, and of the window's focus
    b"\x1b[?1l\x1b>\x1b[>4m"  # other codes for arrows, digits and modified keys
    b"\x1b[?25h\x1b[0m\r"  # a hidden cursor, colours; what follows begins in the first column
)


_IN_TERMINAL = frozenset(
    {"vi", "vim", "nvim", "view", "nano", "pico", "ed", "micro", "kak", "joe", "ne", "mg", "hx", "helix"}
)


class UserEditor:
    """The editor named in ``environment``. It runs in the context ``alone``; if ``is_private``, Vim leaves no trace."""

    def __init__(
        self,
        environment: Mapping[str, str],
        alone: Callable[[], AbstractContextManager[None]] = nullcontext,
        *,
        is_private: bool = False,
    ) -> None:
        self.environment = environment
        self.alone = alone
        self.is_private = is_private
        self._process_id: int | None = None
        self._viewer: UserEditor | None = None

    async def open(self, path: Path, line: int | None = None) -> str:
        """Open a file and wait until the editor ends; return a sentence if it failed, else an empty text.

        The file is opened at ``line``, counted from 1, if the editor is known to take a line. Without a terminal, an
        editor that is known to need a terminal raises an ``EditorError``; any other is started, because it may have a
        window. The wait must not be cancelled, because the editor has the terminal until it ends.
        """
        command = _command(self.environment)
        name = Path(command[0]).name
        has_terminal = os.isatty(_INPUT) and os.isatty(_OUTPUT)
        if not has_terminal and self.stays_in_terminal():
            raise EditorError(f"The editor {name} needs a terminal. Open the chat in one (run: chorus) and edit there.")
        if _names(command[0]) & _VIMS:
            command += [*_WITHOUT_MODELINES, *(_WITHOUT_TRACES if self.is_private else [])]
        with self.alone(), _terminal_lent() if has_terminal else nullcontext(), _keys_left_to_the_editor():
            self._process_id = _started([*command, *_file_at(command[0], str(path), line)], self.environment)
            status = await asyncio.to_thread(self._wait, self._process_id)
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            return f"{name} was ended by signal {-code} ({signal.strsignal(-code)})."
        return f"{name} ended with status {code}." if code else ""

    async def page(self, text: str) -> bool:
        """Show a text in the user's pager if it is longer than the terminal; return false if no pager showed it."""
        pager = self.environment.get("PAGER", "less") if os.isatty(_INPUT) and os.isatty(_OUTPUT) else ""
        if not pager.strip() or text.count("\n") < shutil.get_terminal_size().lines - 1:
            return False
        self._viewer = UserEditor({**self.environment, "VISUAL": pager, "EDITOR": pager}, self.alone)
        with suppress(EditorError), NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
            file.write(text)
            file.flush()
            return not await self._viewer.open(Path(file.name))
        return False

    def end(self) -> None:
        """Ask the open editor or pager to end, even if it is stopped, and kill it if it is open after three seconds."""
        if self._viewer is not None:
            self._viewer.end()
        if self._process_id is not None:
            self._send(self._process_id, signal.SIGTERM, signal.SIGCONT)
            asyncio.get_running_loop().call_later(_GRACE_SECONDS, self._send, self._process_id, signal.SIGKILL)

    def stays_in_terminal(self) -> bool:
        """Return whether the editor is known to have no window of its own."""
        return bool(_names(_command(self.environment)[0]) & _IN_TERMINAL)

    def _wait(self, process_id: int) -> int:
        _, status = os.waitpid(process_id, 0)
        # From here on another process may get this number.
        self._process_id = None
        return status

    def _send(self, process_id: int, *signals: signal.Signals) -> None:
        for each in signals:
            # The editor may have ended a moment ago.
            with suppress(ProcessLookupError):
                if process_id == self._process_id:
                    os.kill(process_id, each)


def _command(environment: Mapping[str, str]) -> list[str]:
    """Return the user's editor with its arguments, or the first usual editor that is installed."""
    names = ("EDITOR",) if environment.get("TERM") == "dumb" else ("VISUAL", "EDITOR")
    variable = next((name for name in names if environment.get(name, "").strip()), None)
    if variable is not None:
        return _chosen(variable, environment)
    for name in _FALLBACKS:
        program = _found(name, environment)
        if program is not None:
            return [program]
    raise EditorError(f"There is no editor: EDITOR is not set, and none of {', '.join(_FALLBACKS)} is found. {_ADVICE}")


def _chosen(variable: str, environment: Mapping[str, str]) -> list[str]:
    value = environment[variable]
    try:
        name, *arguments = shlex.split(value)
    except ValueError as error:
        raise EditorError(
            f"{variable} cannot be read: {value} ends within a quote or after a backslash. {_ADVICE}"
        ) from error
    program = _found(name, environment)
    if program is None:
        raise EditorError(f"{variable} is {value}, but there is no program {name}. {_ADVICE}")
    return [program, *arguments]


def _found(name: str, environment: Mapping[str, str]) -> str | None:
    return shutil.which(name, path=environment.get("PATH", os.defpath))


def _file_at(program: str, path: str, line: int | None) -> list[str]:
    """Return the arguments that open a file, at a line if the editor is known to take one."""
    if line is None:
        return [path]
    names = _names(program)
    if "vi" in names:
        return ["-c", str(line), path]
    if names & _PLUS_LINE:
        return [f"+{line}", path]
    if names & _GO_TO:
        return ["--goto", f"{path}:{line}"]
    return [f"{path}:{line}"] if names & _FILE_AND_LINE else [path]


def _names(program: str) -> set[str]:
    """Return a program's own name and, for a link, the target's name without its ending: ``vim`` for vim.basic."""
    return {Path(program).name, Path(program).resolve().name.partition(".")[0]}


def _started(command: list[str], environment: Mapping[str, str]) -> int:
    """Start the editor with the default effect of the signals that this process ignores; return its process id."""
    try:
        with _masked(umask_of(environment)):
            return os.posix_spawn(command[0], command, without_secrets(environment), setsigdef=_IGNORED_HERE)
    except OSError as error:
        raise EditorError(f"{command[0]} cannot be started: {error.strerror}. {_ADVICE}") from error


@contextmanager
def _masked(umask: int) -> Iterator[None]:
    """Set the umask within this context, so that a child inherits it; -1 leaves the umask as it is."""
    if umask < 0:
        yield
        return
    before = os.umask(umask)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def _terminal_lent() -> Iterator[None]:
    """Put the terminal into the modes that a shell gives to a program, and restore it exactly afterwards."""
    before = termios.tcgetattr(_INPUT)
    plain = [*before]
    plain[0] = before[0] | termios.ICRNL
    plain[1] = before[1] | termios.OPOST
    plain[3] = before[3] | termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN
    termios.tcsetattr(_INPUT, termios.TCSANOW, plain)
    try:
        os.write(_OUTPUT, _PASTES_UNMARKED)
        yield
    finally:
        # If the terminal's window was closed meanwhile, there is nothing to restore.
        with suppress(termios.error, OSError):
            _, _, _, local_modes, *_ = termios.tcgetattr(_INPUT)
            # A full-screen program that died has left single-key mode on; other programs do not change the screen.
            if not local_modes & termios.ICANON:
                os.write(_OUTPUT, _SCREEN_GIVEN_BACK)
            termios.tcsetattr(_INPUT, termios.TCSANOW, before)


@contextmanager
def _keys_left_to_the_editor() -> Iterator[None]:
    """Ignore the signals of keys that an editor may use as commands; outside the main thread do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in _WHILE_LENT.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
