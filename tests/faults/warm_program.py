"""A process that has imported all of Chorus and forks a child for each command, which a fault may strike.

It is started with the library of ``fault.c`` in ``LD_PRELOAD``; a request and its answer are a line of JSON each.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import sys
from typing import Any, NoReturn

from chorus_cli.models.providers.token_counter import VocabularyCounter
from tests.terminal.forked import import_all, run_command

_LIBRARY = ctypes.CDLL(None)


def main() -> None:
    """Serve requests until standard input ends."""
    import_all()
    VocabularyCounter().load()
    _write("ready")
    for line in sys.stdin:
        _write(json.dumps(_served(json.loads(line))))


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _served(request: dict[str, Any]) -> dict[str, Any]:
    files = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
    # The counters are shared: those of the child that was struck must not be taken for the next one's.
    _arm(request | {"calls": 0})
    if not (child := os.fork()):
        _begin(request, files)
    code = _ended(child, request["seconds"])
    _, output, errors = [_content(file) for file in files]
    counted, struck = _LIBRARY.fault_counted(), _LIBRARY.fault_struck()
    return {"code": code, "output": output, "errors": errors, "counted": counted, "struck": struck}


def _begin(request: dict[str, Any], files: list[int]) -> NoReturn:
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
    _arm(request)
    run_command(request["arguments"], request["environment"])


def _arm(request: dict[str, Any]) -> None:
    home, first, last = request["home"].encode(), request["first"], request["last"]
    _LIBRARY.fault_arm(home, request["error"], ctypes.c_long(first), ctypes.c_long(last), request["calls"])


def _ended(child: int, seconds: float) -> int | None:
    """Return the exit code of a child, negative for a signal, or ``None`` if it had to be ended."""
    watch = os.pidfd_open(child)
    with selectors.DefaultSelector() as selector:
        selector.register(watch, selectors.EVENT_READ)
        is_over = bool(selector.select(seconds))
    os.close(watch)
    if not is_over:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if is_over else None


def _content(file: int) -> str:
    os.lseek(file, 0, os.SEEK_SET)
    with os.fdopen(file, encoding="utf-8", errors="replace") as stream:
        return stream.read()


if __name__ == "__main__":
    # Ctrl-C at the test runner is for the test runner: the end of standard input ends this one.
    signal.signal(signal.SIGINT, lambda *_: None)
    main()
