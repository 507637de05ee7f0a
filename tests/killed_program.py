"""Kills a program before each of its operations on files, one after the other, each time on a fresh copy of a home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_PROGRAM = """
import json, os, pathlib, shutil, signal, sys

template, folder, arguments = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
OPERATIONS = {"open", "os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate",
              "sqlite3.connect", "tempfile.mkdtemp", "tempfile.mkstemp"}

def kill_before(number, home):
    left = number
    def watch(event, values):
        nonlocal left
        if event in OPERATIONS and any(isinstance(each, (str, os.PathLike)) and home in str(each) for each in values):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(watch)

from chorus_cli.cli import main
import chorus_cli.subcommands.backup

for number in range(1, 10_000):
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


def killed_at_each_step(template: Path, folder: Path, *arguments: str) -> Killed:
    """Carry out a command until nothing kills it; ``HOME`` in an argument is its home."""
    command = [sys.executable, "-c", _PROGRAM, str(template), str(folder), json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ}, timeout=100)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found[-1][1] == 0, found[-1]
    homes = [folder / str(number + 1) for number in range(len(found))]
    return Killed(homes[:-1], homes[-1])
