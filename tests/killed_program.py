"""Kills a program before each of its operations on files, one after the other, each time on a fresh copy of a home.

Statements of SQL count as such operations too where that is asked for.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_PROGRAM = """
import json, os, pathlib, shutil, signal, sys, threading

template, folder, arguments = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
since, every = sys.argv[4], int(sys.argv[5])
OPERATIONS = {"open", "os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate",
              "sqlite3.connect", "tempfile.mkdtemp", "tempfile.mkstemp"}

def kill_before(number, home):
    left, is_begun = number, not since
    def step():
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    def watch(event, values):
        nonlocal is_begun
        paths = [str(each) for each in values if isinstance(each, (str, os.PathLike))]
        if event in OPERATIONS and any(home in each for each in paths):
            is_begun = is_begun or any(since in each for each in paths)
            if is_begun:
                step()
    def statement(frame, event, called):
        if is_begun and event == "c_call" and called.__name__ == "execute":
            step()
    sys.addaudithook(watch)
    if since:
        threading.setprofile(statement)

from chorus_cli.cli import main
import chorus_cli.subcommands.backup

for number in range(1, 10_000, every):
    home = os.path.join(folder, str(number))
    shutil.copytree(template, home)
    child = os.fork()
    if not child:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        kill_before(number, home)
        os._exit(main([each.replace("HOME", home) for each in arguments], {**os.environ, "CHORUS_HOME": home}))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    print(json.dumps([home, code]))
    if code != -signal.SIGKILL:
        break
"""


class Killed(NamedTuple):
    """The homes of the programs that were killed, in the order of the operations, and of the one that ended."""

    homes: list[Path]
    ended: Path


def killed_at_each_step(template: Path, folder: Path, *arguments: str, since: str = "", every: int = 1) -> Killed:
    """Carry out a command until nothing kills it; ``HOME`` in an argument is its home.

    With ``since`` the steps are counted from the first operation on a file whose path contains it, and statements of
    SQL are steps too. Of the steps the first is tried and ``every`` such one.
    """
    command = [sys.executable, "-c", _PROGRAM, str(template), str(folder), json.dumps(arguments), since, str(every)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ}, timeout=300)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found[-1][1] == 0, found[-1]
    homes = [Path(home) for home, _ in found]
    return Killed(homes[:-1], homes[-1])


def killed_at(event: str, work: Callable[[], object]) -> None:
    """Do ``work`` in a child that kills itself at its first operation of this name."""
    with warnings.catch_warnings():
        # Newer Pythons warn of forking beside the threads of a test runner.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        sys.addaudithook(lambda name, _values: os.kill(os.getpid(), signal.SIGKILL) if name == event else None)
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
