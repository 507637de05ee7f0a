"""Commands of the shell, as real processes: their output, their ends, and nothing that survives."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chorus_cli.core.errors import JobError
from chorus_cli.machine.shell import ShellProcess, UserShell
from tests.terminal.command import await_death

PATIENCE_SECONDS = 20.0
ENVIRONMENT = {"PATH": os.environ["PATH"], "SHELL": "/bin/sh", "LC_ALL": "C.UTF-8"}
HAS_PROC = Path("/proc/self/environ").exists()
needs_proc = pytest.mark.skipif(not HAS_PROC, reason="only /proc names the processes")


@contextmanager
def started(command: str, *passing: str, **variables: str) -> Iterator[ShellProcess]:
    process = UserShell({**ENVIRONMENT, **variables}).start(command, passing)
    try:
        yield process
    finally:
        process.close()


async def printed(process: ShellProcess) -> str:
    """Read the output to its end."""
    pieces = []
    while piece := await process.read():
        pieces.append(piece)
    return b"".join(pieces).decode(errors="replace")


def group_of(process: ShellProcess) -> set[int]:
    """Return the processes that are alive in the group of a command."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=True)
    rows = (line.split() for line in listed.stdout.splitlines())
    return {int(pid) for pid, group, state in rows if int(group) == process._process.pid and state[0] not in "ZX"}


async def until_empty(process: ShellProcess) -> None:
    """Wait until the group of a command has no process."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while group := group_of(process):
        assert time.monotonic() < deadline, f"{group} run on"
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        *(("echo out; echo err >&2", "out\nerr\n", 0), ("exit 3", "", 3), ("kill -KILL $$", "", -9)),
        *(("kill -SEGV $$", "", -11), ("cat", "", 0)),
        ("printf '\\033[31mred\\377'", "\x1b[31mred\ufffd", 0),
        ("echo ${CHORUS_JOB_COMMAND-none} ${OPENAI_API_KEY-withheld} $MY_SETTING", "none withheld kept\n", 0),
        ("ulimit -c 0; trap '' TERM; echo \"a  b\" 'c\"d' $((1 + 1))", 'a  b c"d 2\n', 0),
    ],
)
async def test_output_and_exit_code_of_a_command(command: str, output: str, code: int) -> None:
    with started(command, OPENAI_API_KEY="sk-invented", MY_SETTING="kept") as process:
        assert await printed(process) == output
        assert await process.wait() == code


async def test_a_command_gets_the_secrets_that_are_named_for_it() -> None:
    variables = {"GH_TOKEN": "ghp_invented", "OPENAI_API_KEY": "sk-invented"}
    with started("echo $GH_TOKEN ${OPENAI_API_KEY-withheld}", "GH_TOKEN", **variables) as process:
        assert await printed(process) == "ghp_invented withheld\n"
    assert UserShell(variables).withheld(["GH_TOKEN"]) == ("OPENAI_API_KEY",)


async def test_a_command_has_no_terminal() -> None:
    with started("cat /dev/tty; tty; echo $?") as process:
        lines = (await printed(process)).splitlines()
    assert lines[0].startswith("cat: /dev/tty: ")
    assert lines[-1] == "1"


async def test_the_shell_is_the_users_own_and_else_that_of_the_system(tmp_path: Path) -> None:
    own = tmp_path / "own-shell"
    own.write_text('#!/bin/sh\necho "own: $2"\n')
    own.chmod(0o755)
    for shell, output in ((str(own), "own: echo hello\n"), ("/nowhere/sh", "hello\n"), ("", "hello\n")):
        with started("echo hello", SHELL=shell) as process:
            assert await printed(process) == output


async def test_a_command_that_no_shell_can_take_is_refused() -> None:
    with pytest.raises(JobError, match="NUL"), started("echo \0"):
        pass


async def test_a_signal_reaches_all_processes_of_the_group_even_if_they_are_suspended() -> None:
    with started("sleep 100 & sleep 100 & kill -STOP $!; echo begun; wait") as process:
        assert await process.read() == b"begun\n"
        assert len(group_of(process)) >= 3
        process.send(signal.SIGTERM)
        assert await process.wait() == -signal.SIGTERM
        process.close()
        await until_empty(process)


async def test_a_command_that_ignores_signals_is_killed_at_the_close() -> None:
    with started("trap '' TERM INT HUP; echo begun; while :; do sleep 0.1; done") as process:
        assert await process.read() == b"begun\n"
        process.send(signal.SIGTERM)
        process.close()
        assert await process.wait() == -signal.SIGKILL
        await until_empty(process)


async def test_reading_that_waits_ends_with_the_close() -> None:
    with started("sleep 100") as process:
        reading = asyncio.create_task(printed(process))
        await asyncio.sleep(0.1)
        process.close()
        assert await reading == ""


async def test_a_command_waits_while_nobody_reads() -> None:
    with started("yes") as process:
        await asyncio.sleep(0.3)
        assert len(await process.read()) <= 65_536


@needs_proc
async def test_processes_that_outlive_their_command_are_named() -> None:
    inside, outside = "sleep 98", "setsid sleep 99"
    with started(f"{inside} & ({outside} >/dev/null 2>&1 &); sleep 0.3") as process:
        await process.wait()
        left = await process.leftovers()
        assert {(each.name, each.is_in_group) for each in left} == {("sleep", True), ("sleep", False)}
        process.close()
        await until_empty(process)
        (daemon,) = [each for each in await process.leftovers() if not each.is_in_group]
        os.kill(daemon.process_id, signal.SIGKILL)


@needs_proc
async def test_a_daemon_that_forks_twice_is_named() -> None:
    script = "import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  time.sleep(97)\n os._exit(0)"
    with started(f'exec {sys.executable} -c "$SCRIPT"', SCRIPT=script) as process:
        await process.wait()
        await asyncio.sleep(0.2)
        (daemon,) = await process.leftovers()
        assert not daemon.is_in_group
        os.kill(daemon.process_id, signal.SIGKILL)


async def test_a_command_does_not_wait_for_the_watcher() -> None:
    script = "import os\ntry:\n os.wait()\nexcept ChildProcessError:\n print('no child')"
    with started(f'exec {sys.executable} -c "$SCRIPT"', SCRIPT=script) as process:
        assert await printed(process) == "no child\n"


def test_nothing_survives_the_death_of_the_process_that_started_it(tmp_path: Path) -> None:
    marks = tmp_path / "pids"
    program = (
        "import asyncio, os\n"
        "from chorus_cli.machine.shell import UserShell\n"
        "async def main():\n"
        f" command = 'sleep 96 & echo $! $$ > {marks}.new; mv {marks}.new {marks}; wait'\n"
        " process = UserShell(dict(os.environ)).start(command)\n"
        " await process.wait()\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parents[3])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not marks.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    for pid in marks.read_text().split():
        await_death(int(pid))
