"""Starts ``chorus`` as a fork of the test runner, which has imported all of it: most of a start is imports.

The process, its terminal, its signals and its exit are those of a program of its own. The runs of the slow tests start
a new interpreter instead, and so does each test that asks for one.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import pkgutil
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NoReturn, TextIO, cast

from prompt_toolkit.application import current

import chorus_cli
from chorus_cli.core.text.redaction import without_keys
from chorus_cli.core.text.safe_text import safe_text
from chorus_cli.memory.rules.capture import captured
from chorus_cli.models.eliza import responder
from chorus_cli.models.providers.token_counter import VocabularyCounter
from chorus_cli.models.wire.client import _FIRST_REQUEST_MODULES
from tests.amount import is_thorough

PROGRAM = (sys.executable, "-m", "chorus_cli")
WATCHED_PROGRAM = (sys.executable, "-m", "tests.terminal.freeze.watched")
_RUN_BY: Mapping[tuple[str, ...], str] = {
    PROGRAM: "chorus_cli.__main__",
    WATCHED_PROGRAM: "tests.terminal.freeze.watched",
}
_OF_THE_INTERPRETER = ("PYTHON", "LC_", "LANG")
_HIDDEN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
_STANDARD_FILES = (0, 1, 2)
_OF_THE_PROTOCOL = ("chorus_cli.mcp.serving", "chorus_cli.mcp.oauth")
_LIBRARIES = (
    *("prompt_toolkit.shortcuts", "rich.console", "pygments.lexers"),
    *("httpx", "httpx_sse", "httpcore", "h2.connection", *_FIRST_REQUEST_MODULES),
)


def fork_of(command: Sequence[str | bytes], environment: Mapping[str, str]) -> Callable[[], None] | None:
    """Return what runs ``command`` in a child that was forked to start it, or None if it needs an interpreter."""
    module = _RUN_BY.get(tuple(map(os.fsdecode, command[:3])))
    if is_thorough() or module is None or _interpreter(environment) != _interpreter(os.environ):
        return None
    import_all()
    return partial(run_command, [os.fsdecode(argument) for argument in command[3:]], environment, module)


def _interpreter(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_OF_THE_INTERPRETER)}


def module_names() -> Iterator[str]:
    """Yield the names of the package's modules, without those whose library, an extra, is not installed."""
    has_protocol = importlib.util.find_spec("mcp") is not None
    for module in pkgutil.walk_packages(chorus_cli.__path__, "chorus_cli."):
        if has_protocol or module.name not in _OF_THE_PROTOCOL:
            yield module.name


@cache
def import_all() -> None:
    """Import all that a command or a chat may need, and load the vocabulary by which a chat counts tokens."""
    for name in module_names():
        if not name.endswith("__main__"):
            importlib.import_module(name)
    for library in _LIBRARIES:
        importlib.import_module(library)
    VocabularyCounter().load()
    _compile_patterns()


def _compile_patterns() -> None:
    """Have the patterns that any talk needs compiled, which the program puts off until it needs them."""
    safe_text("Hello")
    without_keys("Hello", "")
    captured("Hello")
    responder.reply(["Hello"])


def run_command(arguments: list[str], environment: Mapping[str, str], module: str = _RUN_BY[PROGRAM]) -> NoReturn:
    """Become ``chorus``, run by ``module``, with these arguments, in a process that was forked for it."""
    code = 1
    try:
        _begin_anew(arguments, environment)
        importlib.import_module(module).run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001 - the test runner must not go on in the child
        os.write(2, traceback.format_exc().encode())
    os._exit(code)


def _begin_anew(arguments: list[str], environment: Mapping[str, str]) -> None:
    """Leave the test runner behind: its files, signals, warnings, environment and objects."""
    gc.freeze()
    _leave_files()
    _reset_signals()
    warnings.resetwarnings()
    for category in _HIDDEN:
        warnings.simplefilter("ignore", category)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    time.tzset()
    random.seed()
    sys.argv = ["chorus", *arguments]
    sys.stdin = _stream(0, "r", "surrogateescape")
    sys.stdout = _stream(1, "w", "surrogateescape")
    sys.stderr = _stream(2, "w", "backslashreplace", buffering=1)
    # A test in the runner may have made prompt_toolkit keep its input and output, which are no terminal.
    current._current_app_session.set(current.AppSession())


def _leave_files() -> None:
    """Put the null device in place of the runner's files: an object that closes one later must not hit ours."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in [int(file.name) for file in Path("/dev/fd").iterdir()]:
        if number not in (*_STANDARD_FILES, nowhere):
            os.dup2(nowhere, number, inheritable=False)


def _stream(number: int, mode: str, errors: str, buffering: int = -1) -> TextIO:
    stream = open(number, mode, buffering, encoding="utf-8", errors=errors)  # noqa: SIM115 - open until the end
    return cast("TextIO", stream)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
