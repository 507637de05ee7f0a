"""Errors that no caller gets are reported without keys: Python would print their tracebacks."""

from __future__ import annotations

import asyncio
import errno
import gc
import threading
from typing import TYPE_CHECKING

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from chorus_cli.machine import event_loop
from chorus_cli.machine.bug_report import report_bug
from chorus_cli.terminal.prompt.line import Prompt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.world import World

CANARY = "canary-deploy-0005"


def fail() -> None:
    raise ValueError(f"a bug that quotes {CANARY}")


async def failing() -> None:
    fail()


async def in_a_callback() -> None:
    asyncio.get_running_loop().call_soon(fail)
    await asyncio.sleep(0.01)


async def in_a_task() -> None:
    await asyncio.wait({asyncio.create_task(failing())})


async def in_a_thread() -> None:
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()


class Finalised:
    def __del__(self) -> None:
        fail()


async def in_a_finaliser() -> None:
    Finalised()


PLACES = [in_a_callback, in_a_task, in_a_thread, in_a_finaliser]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), BrokenPipeError(), SystemExit()])
async def test_a_terminal_that_is_gone_is_no_bug(error: BaseException) -> None:
    told: list[BaseException] = []
    with event_loop.unseen_reported(told.append):
        for each in (error, OSError(errno.EBADF, "Bad file descriptor")):
            asyncio.get_running_loop().call_exception_handler({"message": "drawing", "exception": each})
    assert [type(each) for each in told] == [OSError]


@pytest.mark.parametrize("place", PLACES)
def test_an_error_that_nobody_awaits_is_reported_without_keys(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], place: Callable[[], Awaitable[None]]
) -> None:
    told: list[str] = []

    async def work() -> None:
        log_file, environment = tmp_path / "chorus.log", {"DEPLOY_TOKEN": CANARY}
        with event_loop.unseen_reported(lambda error: told.append(report_bug(log_file, error, environment))):
            await place()
            gc.collect()
            await asyncio.sleep(0)

    event_loop.run(work())
    shown = capfd.readouterr()
    assert "Traceback" not in shown.out + shown.err
    assert len(told) == 1
    kept = (tmp_path / "chorus.log").read_text()
    assert "a bug that quotes [redacted]" in kept
    assert CANARY not in kept


async def test_a_prompt_leaves_the_reporting_as_it_is(world: World) -> None:
    told: list[BaseException] = []
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        prompt = Prompt(lambda: world.services, lambda _columns: [])
        with event_loop.unseen_reported(told.append):
            asking = asyncio.create_task(prompt.read(world.current.target().persona, InMemoryHistory()))
            await asyncio.sleep(0.1)
            await in_a_callback()
            keys.send_text("hello\r")
            assert await asking == "hello"
    assert [str(error) for error in told] == [f"a bug that quotes {CANARY}"]
