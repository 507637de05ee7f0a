"""Answers that are made to freeze the chat or to fill the memory: each is one sentence in the real program."""

from __future__ import annotations

import gzip
import sys
import time
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.models.providers.asked_models import STOP
from tests.models.providers.fake_ollama import listening
from tests.models.providers.fault_server import STREAM_HEAD, chunk, encoded, failure
from tests.terminal.driver import NEW_INTERPRETER, PROMPT, Home

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what memory a process has had")

PATIENCE_SECONDS = 5.0
"""The sentence needs a second at most, on a busy machine more. A pattern that takes long needs half an hour."""

MOST_MEBIBYTES = 40
"""How much more memory the chat may have needed: a few copies of a megabyte, but not what an answer unpacks to."""


def swelling(megabytes: int) -> bytes:
    """Return what unpacks to so many megabytes, as gzip, without its end."""
    packing = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    first, each = (packing.compress(b"x" * 1_000_000) + packing.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + each * (megabytes - 1)


TWICE = "gzip, gzip"
PACKED_TWICE = gzip.compress(swelling(8_000))  # 18 kB that unpack to 8 MB, which unpack to 8 GB
TOKEN_COUNT = "token count " * 83_000
INVALID = "The provider of openai/m sent an invalid response (compressed more than once)."
REJECTED = "The provider of openai/m rejected the request"


def error(encoding: str, body: bytes) -> bytes:
    return encoded(encoding).replace(b"200 OK", b"400 No") + body


GREETING = STREAM_HEAD + chunk("Hi.") + STOP
BOTH = {
    "a reply of gigabytes in 18 kB": (encoded(TWICE) + PACKED_TWICE, INVALID),
    "an error of half a gigabyte": (error("gzip", swelling(500)), f"{REJECTED}\n(xxxx"),
}
BY_WIRE = {
    "a message of a megabyte": (failure(400, {"error": {"message": TOKEN_COUNT}}), f"{REJECTED} (token count token c"),
    "an error of gigabytes in 18 kB": (
        error(TWICE, PACKED_TWICE),
        f"{REJECTED} (its answer is compressed more than once).",
    ),
    "bytes that are not HTTP": (b"\x00\xff\x1b[31m" * 100_000, "/v1 does not speak HTTP. Correct its address."),
}
BY_LITELLM = {"a text of a megabyte": (failure(400, TOKEN_COUNT.encode()), f"{REJECTED} (token count token count ")}


def most_mebibytes(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@pytest.mark.parametrize(
    ("answers", "variables"),
    [(BOTH | BY_WIRE, {}), (BOTH | BY_LITELLM, {"CHORUS_WIRE": "off"})],
    ids=["wire", "litellm"],
)
def test_a_hostile_answer_is_one_sentence_at_once_and_the_keyboard_is_heard(
    tmp_path: Path, answers: Mapping[str, tuple[bytes, str]], variables: Mapping[str, str]
) -> None:
    answer = GREETING
    with listening(lambda connection, _path: connection.sendall(answer)) as address:
        provider = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "sk-of-nobody", "CHORUS_MODEL": "openai/m"}
        with Home(tmp_path / "home").chat(**provider, **variables, **NEW_INTERPRETER) as terminal:
            for number, (name, (hostile, sentence)) in enumerate(answers.items(), 1):
                answer = GREETING
                terminal.say("Hello")
                terminal.await_text("\nHi.\n", times=number)
                terminal.await_line(PROMPT)
                answer, told = hostile, terminal.screen_text().count(sentence)
                before, began = most_mebibytes(terminal.pid), time.monotonic()
                terminal.say("Well?")
                terminal.type("typed meanwhile")
                terminal.await_text(sentence, times=told + 1)
                terminal.await_line(f"{PROMPT} typed meanwhile")
                assert time.monotonic() - began < PATIENCE_SECONDS, name
                assert most_mebibytes(terminal.pid) - before < MOST_MEBIBYTES, name
                terminal.press("ctrl-c")
                terminal.ask("/thread new", f"Thread #{number + 1}")
