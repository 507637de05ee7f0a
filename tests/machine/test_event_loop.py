"""The end of the program waits for no thread at work, and sentences of services reach the chat while it listens."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from chorus_cli.machine import event_loop
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
os._exit(main(["ask", "hello"], os.environ))
"""


def test_a_host_is_looked_up_and_a_failure_is_the_caller_s() -> None:
    async def found(port: int | str) -> list[object]:
        return [each[4] for each in await asyncio.get_running_loop().getaddrinfo("127.0.0.1", port)]

    assert ("127.0.0.1", 80) in event_loop.run(found(80))
    with pytest.raises(socket.gaierror):
        event_loop.run(found("no such service"))


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
