"""A program that exchanges lines with Chorus: what it gets, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from chorus_cli.core.errors import JobError
from chorus_cli.machine.child import Child, Program, start
from tests.terminal.command import await_death

ENVIRONMENT = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-test-0123456789", "HOME": "/nowhere"}


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


async def run(script: str, told: list[str] | None = None, **variables: str) -> Child:
    return await start(Program("sh", ("-c", script), variables), ENVIRONMENT, ([] if told is None else told).append)


async def test_lines_go_both_ways_and_errors_are_told() -> None:
    told: list[str] = []
    child = await run("echo careful >&2; read line; echo got $line", told)
    await child.send(b"gold\n")
    assert await child.line() == b"got gold\n"
    assert await child.line() == b""
    await child.close()
    assert told == ["careful"]


async def test_it_gets_few_variables_and_those_that_are_given_to_it() -> None:
    child = await run("env", TOKEN="given")
    lines = []
    while line := await child.line():
        lines.append(line.decode().partition("=")[0])
    await child.close()
    assert {"PATH", "HOME", "TOKEN"} <= {*lines}
    assert "OPENAI_API_KEY" not in lines


async def test_closing_ends_what_ignores_signals_and_what_it_started() -> None:
    child = await run("trap '' TERM HUP; sleep 1000 & echo $!; while :; do sleep 1; done")
    started = int(await child.line())
    await child.close()
    await asyncio.to_thread(await_death, started)


async def test_a_line_without_end_is_an_error() -> None:
    child = await run("while :; do printf %65536s; done")
    with pytest.raises(ValueError, match="limit"):
        await child.line()
    await child.close()


@pytest.mark.parametrize(
    "program",
    [Program("no-such-program", (), {}), Program(sys.executable, (), {}, "/nowhere"), Program("sh", ("\0",), {})],
)
async def test_what_cannot_be_started_is_refused(program: Program) -> None:
    before = open_files()
    with pytest.raises(JobError):
        await start(program, ENVIRONMENT, print)
    assert open_files() == before
