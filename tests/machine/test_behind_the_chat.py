"""Behind the chat: threads at work at its end, sentences of services, and what libraries write to standard error.

That stands in the log file, its beginning, without keys, and on no screen."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from chorus_cli.core.errors import HomeError
from chorus_cli.machine import event_loop
from chorus_cli.machine.bug_report import noted, own_standard_error, unnoted
from chorus_cli.machine.notifier import Notifier
from tests.terminal.command import finished
from tests.terminal.driver import Home

WAITING_SECONDS = 40
ASKED = f"""
import os, signal, socket, time

def look_up(*_):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep({WAITING_SECONDS})

socket.getaddrinfo = look_up
from chorus_cli.cli import main
os._exit(main(["ask", "-c", "hello"], os.environ))
"""


def test_ctrl_c_ends_a_question_while_the_name_of_the_server_is_looked_up(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    far = {
        "CHORUS_MODEL": "openai/gpt-4o",
        "OPENAI_BASE_URL": "http://far.example/v1",
        "OPENAI_API_KEY": "sk-invented",
        "no_proxy": "far.example",
    }
    began = time.monotonic()
    assert finished([sys.executable, "-c", ASKED], home.environment | far).code == 130
    assert time.monotonic() - began < WAITING_SECONDS / 2
    assert home.replies() == [("", "interrupted")]


def test_the_end_waits_for_a_thread_that_is_at_work_for_a_moment_only() -> None:
    is_free = threading.Event()

    async def broken_off() -> None:
        waiting = asyncio.create_task(asyncio.to_thread(is_free.wait, WAITING_SECONDS))
        await asyncio.sleep(0)
        waiting.cancel()

    began = time.monotonic()
    try:
        event_loop.run(broken_off())
        assert time.monotonic() - began < WAITING_SECONDS / 2
    finally:
        is_free.set()


def test_work_that_is_nearly_done_is_finished_at_the_end() -> None:
    has_begun, is_free, done = threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        has_begun.set()
        is_free.wait()
        done.append("written")

    async def broken_off() -> None:
        working = asyncio.create_task(asyncio.to_thread(work))
        await asyncio.sleep(0)
        assert has_begun.wait(WAITING_SECONDS)
        working.cancel()
        is_free.set()

    event_loop.run(broken_off())
    assert done == ["written"]


def test_sentences_are_told_while_the_chat_listens_and_dropped_otherwise() -> None:
    notifier, progress, asides = Notifier(), list[str](), list[str]()
    notifier.progress("too early")
    with notifier.heard_by(progress.append, asides.append):
        notifier.progress("half of it is done")
        notifier.aside("the oldest messages are summarised")
    notifier.aside("too late")
    assert (progress, asides) == (["half of it is done"], ["the oldest messages are summarised"])


def test_the_end_of_work_in_the_background_is_an_aside_unless_it_is_listened_for() -> None:
    notifier, asides, done = Notifier(), list[str](), list[str]()
    with notifier.heard_by(asides.append, asides.append):
        notifier.done("thread #2")
    with notifier.heard_by(asides.append, asides.append, done.append):
        notifier.done("thread #3")
    assert (asides, done) == (["thread #2"], ["thread #3"])


CANARY = "canary-deploy-0005"
ENVIRONMENT = {"DEPLOY_TOKEN": CANARY}


def warn() -> None:
    # The test runner hears what is warned of.
    sys.stderr.write(warnings.formatwarning(f"quotes {CANARY}\nand the reply", UserWarning, __file__, 1))


def log() -> None:
    logger, handler = logging.getLogger("library"), logging.StreamHandler()
    logger.addHandler(handler)
    logger.error("quotes %s\nand the reply", CANARY)
    logger.removeHandler(handler)


def show() -> None:
    print(f"quotes {CANARY}\nand the reply", file=sys.stderr)  # noqa: T201 - as a library does


@pytest.mark.parametrize("write", [warn, log, show])
def test_only_the_beginning_is_noted_and_nothing_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], write: Callable[[], None]
) -> None:
    file = tmp_path / "chorus.log"
    with noted(lambda: file, ENVIRONMENT):
        write()
    (line,) = file.read_text(encoding="utf-8").splitlines()
    assert line.endswith("quotes [redacted]")
    assert file.stat().st_mode & 0o077 == 0
    shown = capfd.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_of_a_traceback_the_kind_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "chorus.log"
    try:
        raise ValueError("Precious words\nand more")  # noqa: TRY301 - as a library does
    except ValueError as error:
        with noted(lambda: file, ENVIRONMENT):
            traceback.print_exception(error)
            show()
            sys.stderr.write(traceback.format_exc())
            show()
    lines = [line.split(" ", 1)[1] for line in file.read_text(encoding="utf-8").splitlines()]
    assert lines == ["ValueError", "quotes [redacted]"] * 2


def test_standard_error_is_found_behind_it(tmp_path: Path) -> None:
    before = sys.stderr
    with noted(lambda: tmp_path / "chorus.log", {}):
        assert own_standard_error() is before
        assert not sys.stderr.isatty()
        print(file=sys.stderr)  # noqa: T201 - as a library does
    assert own_standard_error() is sys.stderr is before
    assert [*tmp_path.iterdir()] == []


def test_of_a_private_chat_nothing_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "chorus.log"
    with unnoted(), noted(lambda: file, {}):
        with unnoted():
            show()
        assert not file.exists()
        show()
    assert "quotes" in file.read_text(encoding="utf-8")
    with noted(lambda: None, {}):
        show()


def test_what_cannot_be_noted_is_no_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def homeless() -> Path:
        raise HomeError("There is no home.")

    for log_file in (homeless, lambda: tmp_path / "nowhere" / "chorus.log", lambda: tmp_path):
        with noted(log_file, {}):
            show()
    assert [*tmp_path.iterdir()] == []
    assert capfd.readouterr().err == ""
