"""Answers that are made to freeze the chat or to fill the memory: each is one sentence in the real program."""

from __future__ import annotations

import gzip
import socket
import sys
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.models.providers.asked_models import STOP
from tests.models.providers.fake_ollama import Answer, listening, sending
from tests.models.providers.fault_server import STREAM_HEAD, chunk, encoded, failure
from tests.terminal.driver import NEW_INTERPRETER, PROMPT, Home

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what memory a process has had")

PATIENCE_SECONDS = 5.0
"""The sentence needs a second at most, on a busy machine more. A pattern that takes long needs half an hour."""

MOST_MEBIBYTES = 40
"""How much more memory the chat may have needed: a few copies of a megabyte, but not what an answer unpacks to."""


class Hostile(NamedTuple):
    """An answer, the sentence that tells of it, and variables of the chat."""

    answer: bytes
    sentence: str
    variables: Mapping[str, str] = {}


def swelling(megabytes: int) -> bytes:
    """Return what unpacks to so many megabytes, as gzip, without its end."""
    packing = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    first, each = (packing.compress(b"x" * 1_000_000) + packing.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + each * (megabytes - 1)


BY_LITELLM = {"CHORUS_WIRE": "off"}
TWICE = "gzip, gzip"
PACKED_TWICE = gzip.compress(swelling(8_000))
"""18 kB that unpack to 8 MB, which unpack to 8 GB."""

TOKEN_COUNT = "token count " * 83_000
INVALID = "The provider of openai/m sent an invalid response (compressed more than once)."
REJECTED = "The provider of openai/m rejected the request"


def error(encoding: str, body: bytes) -> bytes:
    return encoded(encoding).replace(b"200 OK", b"400 No") + body


ANSWERS = {
    "a message of a megabyte": Hostile(
        failure(400, {"error": {"message": TOKEN_COUNT}}), f"{REJECTED} (token count token count "
    ),
    "a text of a megabyte": Hostile(
        failure(400, TOKEN_COUNT.encode()), f"{REJECTED} (token count token count ", BY_LITELLM
    ),
    "a reply of gigabytes in 18 kB": Hostile(encoded(TWICE) + PACKED_TWICE, INVALID),
    "a reply of gigabytes in 18 kB, by litellm": Hostile(encoded(TWICE) + PACKED_TWICE, INVALID, BY_LITELLM),
    "an error of gigabytes in 18 kB": Hostile(
        error(TWICE, PACKED_TWICE), f"{REJECTED} (its answer is compressed more than once)."
    ),
    "bytes that are not HTTP": Hostile(b"\x00\xff\x1b[31m" * 100_000, "/v1 does not speak HTTP. Correct its address."),
    "an error of half a gigabyte": Hostile(error("gzip", swelling(500)), f"{REJECTED}\n(xxxx"),
    "an error of half a gigabyte, by litellm": Hostile(error("gzip", swelling(500)), f"{REJECTED}\n(xxxx", BY_LITELLM),
}


def after_a_greeting(hostile: bytes) -> Answer:
    """Answer the first message as a provider does, and those after it with what is hostile."""
    asked: list[str] = []

    def answer(connection: socket.socket, path: str) -> None:
        is_first = path.endswith("/completions") and not asked
        if path.endswith("/completions"):
            asked.append(path)
        connection.sendall(STREAM_HEAD + chunk("Hi.") + STOP if is_first else hostile)

    return answer


def most_mebibytes(process: int) -> float:
    """Return the most memory that a process has had so far."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@pytest.mark.parametrize("hostile", ANSWERS.values(), ids=ANSWERS)
def test_a_hostile_answer_is_one_sentence_at_once_and_the_keyboard_is_heard(tmp_path: Path, hostile: Hostile) -> None:
    with listening(after_a_greeting(hostile.answer)) as address:
        provider = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "sk-of-nobody", "CHORUS_MODEL": "openai/m"}
        with Home(tmp_path / "home").chat(**provider, **hostile.variables, **NEW_INTERPRETER) as terminal:
            terminal.ask("Hello", "Hi.")
            before = most_mebibytes(terminal.pid)
            began = time.monotonic()
            terminal.say("Well?")
            terminal.type("typed meanwhile")
            terminal.await_text(hostile.sentence)
            terminal.await_line(f"{PROMPT} typed meanwhile")
            assert time.monotonic() - began < PATIENCE_SECONDS
            assert most_mebibytes(terminal.pid) - before < MOST_MEBIBYTES


def test_a_file_that_would_fill_the_memory_is_not_attached(tmp_path: Path) -> None:
    with (
        listening(sending(encoded(TWICE) + PACKED_TWICE)) as address,
        Home(tmp_path / "home").chat(**NEW_INTERPRETER) as terminal,
    ):
        # By then the libraries that are loaded behind the prompt are there.
        terminal.await_bottom_line("/ 128,000")
        before = most_mebibytes(terminal.pid)
        terminal.ask(f"/attach {address}/notes.txt", "/notes.txt cannot be fetched: compressed more than once.")
        assert most_mebibytes(terminal.pid) - before < MOST_MEBIBYTES
