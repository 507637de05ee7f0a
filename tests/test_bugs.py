"""A bug ends in one sentence and is kept in a file without keys, also where no caller gets it."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import threading
from collections import UserDict
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from chorus_cli.cli import main
from chorus_cli.core import limits
from chorus_cli.machine import event_loop
from chorus_cli.machine.bug_report import report_bug
from chorus_cli.subcommands.exit_codes import BUG
from chorus_cli.terminal.prompt.line import Prompt
from tests.world import World

CANARY = "canary-deploy-0005"
KEYS = {"DEPLOY_TOKEN": CANARY}


class BrokenEnvironment(UserDict[str, str]):
    """An environment in which reading one variable for the first time is a bug."""

    is_broken = True

    def __getitem__(self, key: str) -> str:
        if key == "CHORUS_PERSONA" and self.is_broken:
            self.is_broken = False
            raise ValueError("a bug made for a test")
        return super().__getitem__(key)


def main_with_a_bug(home: Path, *arguments: str) -> int:
    mask = os.umask(0o077)
    try:
        return main([*arguments], BrokenEnvironment({"CHORUS_HOME": str(home), "CHORUS_PERSONA": "frodo"}))
    finally:
        os.umask(mask)


def test_a_bug_is_one_sentence_and_its_traceback_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main_with_a_bug(tmp_path, "context") == BUG
    assert "Traceback" not in capsys.readouterr().err
    assert "a bug made for a test" in (tmp_path / "state" / "chorus.log").read_text(encoding="utf-8")


def test_the_log_file_of_bugs_stays_small_and_holds_no_keys(tmp_path: Path) -> None:
    log_file = tmp_path / "state" / "chorus.log"
    for number, length in enumerate((limits.LOG_FILE.most, limits.LOG_FILE.most, 0)):
        error = ValueError(f"bug {number} {CANARY} xai-0123456789abcdef {'x' * length}")
        assert str(log_file) in report_bug(log_file, error, KEYS)
    kept = {path.name: path.read_text(encoding="utf-8") for path in log_file.parent.iterdir()}
    assert sorted(kept) == ["chorus.log", "chorus.log.old"]
    assert "bug 2 [redacted] [redacted]" in kept["chorus.log"]
    assert "bug 1 [redacted] [redacted]" in kept["chorus.log.old"]
    assert log_file.stat().st_mode & 0o077 == 0


def fail_over(said: str) -> None:
    raise ValueError(len(said))


def test_a_traceback_holds_no_values_of_variables(tmp_path: Path) -> None:
    said = "told in confidence".upper()
    with pytest.raises(ValueError, match="18") as caught:
        fail_over(said)
    report_bug(tmp_path / "chorus.log", caught.value, {})
    kept = (tmp_path / "chorus.log").read_text(encoding="utf-8")
    assert "raise ValueError(len(said))" in kept
    assert said not in kept


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


@pytest.mark.parametrize("place", [in_a_callback, in_a_task, in_a_thread, in_a_finaliser])
def test_an_error_that_nobody_awaits_is_reported_without_keys(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], place: Callable[[], Awaitable[None]]
) -> None:
    told: list[str] = []

    async def work() -> None:
        with event_loop.unseen_reported(lambda error: told.append(report_bug(tmp_path / "chorus.log", error, KEYS))):
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


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), BrokenPipeError(), SystemExit()])
async def test_a_terminal_that_is_gone_is_no_bug(error: BaseException) -> None:
    told: list[BaseException] = []
    with event_loop.unseen_reported(told.append):
        for each in (error, OSError(errno.EBADF, "Bad file descriptor")):
            asyncio.get_running_loop().call_exception_handler({"message": "drawing", "exception": each})
    assert [type(each) for each in told] == [OSError]


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
