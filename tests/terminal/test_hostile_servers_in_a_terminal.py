"""Servers whose answers are made to freeze the chat or to fill the memory: the real program has one sentence for each."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.adapters.models.fake_ollama import listening
from tests.adapters.models.fault_server import DONE, STREAM_HEAD, chunk, failure
from tests.terminal.driver import NEW_INTERPRETER, PROMPT, Home

if TYPE_CHECKING:
    import socket

    from tests.adapters.models.fake_ollama import Answer

PATIENCE_SECONDS = 5.0
"""The sentence needs a second at most, on a busy machine more. A pattern that takes long needs half an hour."""

MOST_MEBIBYTES = 40
"""How much more memory the chat may have needed: a few copies of a megabyte, but not what an answer unpacks to."""


class Hostile(NamedTuple):
    """An answer, and the sentence that tells of it."""

    answer: bytes
    sentence: str


TOKEN_COUNT = "token count " * 83_000
ANSWERS = {
    "a message of a megabyte": Hostile(
        failure(400, {"error": {"message": TOKEN_COUNT}}),
        "The provider of openai/m rejected the request (token count token count ",
    ),
    "a text of a megabyte": Hostile(
        failure(500, TOKEN_COUNT.encode()), "The provider of openai/m is failing or overloaded, status 500 (token count "
    ),
}


def after_a_greeting(hostile: bytes) -> Answer:
    """Answer the first message as a provider does, and those after it with what is hostile."""
    asked: list[str] = []

    def answer(connection: socket.socket, path: str) -> None:
        is_first = path.endswith("/completions") and not asked
        if path.endswith("/completions"):
            asked.append(path)
        connection.sendall(STREAM_HEAD + chunk("Hi.") + DONE if is_first else hostile)

    return answer


def most_mebibytes(process: int) -> float:
    """Return the most memory that a process has had so far."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what memory a process has had")
@pytest.mark.parametrize("hostile", ANSWERS.values(), ids=ANSWERS)
def test_a_hostile_answer_is_one_sentence_at_once_and_the_keyboard_is_heard(tmp_path: Path, hostile: Hostile) -> None:
    with listening(after_a_greeting(hostile.answer)) as address:
        provider = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "sk-of-nobody", "CHORUS_MODEL": "openai/m"}
        with Home(tmp_path / "home").chat(**provider, **NEW_INTERPRETER) as terminal:
            terminal.ask("Hello", "Hi.")
            before = most_mebibytes(terminal.pid)
            began = time.monotonic()
            terminal.say("Well?")
            terminal.type("typed meanwhile")
            terminal.await_text(hostile.sentence)
            terminal.await_line(f"{PROMPT} typed meanwhile")
            assert time.monotonic() - began < PATIENCE_SECONDS
            assert most_mebibytes(terminal.pid) - before < MOST_MEBIBYTES
