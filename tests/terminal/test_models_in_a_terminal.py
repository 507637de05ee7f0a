"""Which model answers, and that neither the libraries that it needs nor a hostile server spoil the chat."""

from __future__ import annotations

import gzip
import json
import os
import socket
import sys
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.loopback_providers import recording
from tests.loopback_server import serving
from tests.models.local.model_files import gguf, library_in, written
from tests.models.providers.asked_models import STOP
from tests.models.providers.fake_ollama import entry, listening, ollama
from tests.models.providers.fault_server import STREAM_HEAD, chunk, encoded, failure
from tests.terminal.driver import NEW_INTERPRETER, PROMPT, Home

LLAMA = ollama(in_memory=[entry("llama3.2:latest", "2026-11-20T10:00:00Z")], reply="Hello from the llama.")


@pytest.mark.usefixtures("_litellm")
def test_a_running_ollama_answers_and_the_first_line_says_so(tmp_path: Path) -> None:
    with listening(LLAMA) as address, Home(tmp_path).chat(OLLAMA_API_BASE=address) as terminal:
        terminal.await_text("Model: ollama_chat/llama3.2:latest (the most recent model of a running Ollama).")
        terminal.ask("Hello", "Hello from the llama.")
        terminal.ask("/model chorus/eliza", "Model: chorus/eliza (set by /model)")
        terminal.ask("/settings unset model", "Model: ollama_chat/llama3.2:latest (the most recent")


def test_the_words_of_eliza_are_in_no_request_of_the_model_that_comes_after_her(home: Home) -> None:
    with recording() as provider, home.chat(**provider.environment("chorus/eliza")) as chat:
        chat.ask("hello", "I am ELIZA")
        told = "openai/gpt-4o does not see the 2 messages that you exchanged with ELIZA."
        chat.ask("/model openai/gpt-4o --once", told)
        chat.ask("Who are you?", "seen.")
        assert provider.contents() == ["Who are you?"]
        assert "ELIZA" not in json.dumps(provider.bodies)
        chat.ask("/context", "said with chorus/eliza")
        chat.ask("/thread list", "Last talked")
        assert "● #1 hello 2 4 " in chat.words()


def test_the_prompt_does_not_wait_for_an_ollama_but_the_first_message_does(home: Home) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def slow(connection: socket.socket, path: str) -> None:
        asked.set()
        may_answer.wait(10)
        LLAMA(connection, path)

    with listening(slow) as address, home.chat(OLLAMA_API_BASE=address) as terminal:
        # The prompt is there while the question to Ollama is still open; its silence ends after 0.3 s.
        terminal.type("I am here")
        terminal.await_line(f"{PROMPT} I am here")
        assert asked.wait(10)
        terminal.press("enter")
        terminal.await_text("No API key and no Ollama found, so ELIZA (1966) is answering.")
        terminal.await_line(PROMPT)
        may_answer.set()
    assert [status for _, status in home.replies()] == ["complete"]


def test_ctrl_c_while_ollama_is_asked_loses_nothing_and_the_chat_goes_on(home: Home) -> None:
    may_answer = threading.Event()

    def mute(_connection: socket.socket, _path: str) -> None:
        may_answer.wait(10)

    with listening(mute) as address, home.chat(OLLAMA_API_BASE=address) as terminal:
        terminal.say("I am here")
        terminal.await_busy()
        terminal.press("ctrl-c")
        terminal.await_text("ELIZA (1966) is answering")
        terminal.await_line(PROMPT)
        terminal.ask("/model", "Model: chorus/eliza")
        may_answer.set()
        terminal.say("/quit")
        assert terminal.await_end() == 0
    assert home.said() == ["I am here"]


def test_a_model_in_a_file_is_loaded_while_the_keyboard_works_and_ctrl_c_ends_the_loading(tmp_path: Path) -> None:
    home, folder = Home(tmp_path / "home"), tmp_path / "models"
    folder.mkdir()
    written(folder, "sound.gguf")
    written(folder, "endless.gguf", gguf(weights="endless"))
    with home.chat(**library_in(folder), HOME=str(folder), CHORUS_MODEL="local/~/endless.gguf") as terminal:
        terminal.say("Hello")
        terminal.await_text("waiting for")
        terminal.press("ctrl-c")
        terminal.await_line(PROMPT)
        terminal.type("/model local/~/so")
        terminal.await_text("local/~/sound.gguf")
        terminal.press("tab")
        terminal.await_line(f"{PROMPT} /model local/~/sound.gguf")
        terminal.press("enter")
        terminal.await_text("Model: local/~/sound.gguf (set by /model)")
        terminal.ask("Hello again", '"model": "sound"')
        process = json.loads(home.replies()[-1][0])["process"]
        os.kill(process, 0)
        terminal.leave()
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
    assert [status for _, status in home.replies()] == ["interrupted", "complete"]


FOREIGN = "FOREIGN"
# Python imports it before any program. It begins when the log is opened, as a library that is imported then would.
LIBRARY = f"""
import logging, sys, threading, time, warnings

def complain():
    while True:
        warnings.warn("{FOREIGN} warning", DeprecationWarning)
        logging.getLogger("library").error("{FOREIGN} line of a logger")
        if getattr(sys.modules.get("litellm"), "drop_params", False):  # it is ready
            logging.getLogger("LiteLLM").critical("{FOREIGN} line of litellm")
        print("{FOREIGN} line", file=sys.stderr)
        time.sleep(0.02)

def begin(event, _):
    if event == "sqlite3.connect" and "complaining" not in {{thread.name for thread in threading.enumerate()}}:
        threading.Thread(target=complain, name="complaining", daemon=True).start()

sys.addaudithook(begin)
"""


class Client(NamedTuple):
    """The variables by which one of the clients is asked, words of its reply, and of what is noted meanwhile."""

    variables: Mapping[str, str]
    reply: str = "Hi there."
    noted: Sequence[str] = ("warning", "line of a logger", "line\n")


@pytest.fixture(params=["ELIZA", "wire", "litellm", "local"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    libraries = library_in(tmp_path)
    (tmp_path / "sitecustomize.py").write_text(LIBRARY, encoding="utf-8")
    always = {**libraries, "PYTHONWARNINGS": "always"}
    with ExitStack() as serving_:
        address = serving_.enter_context(serving(lambda _: (200, [chunk("Hi there."), STOP])))
        provider = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-of-nobody", "CHORUS_MODEL": "openai/m"}
        yield {
            "ELIZA": Client(always, "I am ELIZA"),
            "wire": Client(always | provider),
            "litellm": Client(always | provider | {"CHORUS_WIRE": "off"}, noted=["line of litellm"]),
            "local": Client(always | {"CHORUS_MODEL": f"local/{written(tmp_path)}"}, '"context": 8192'),
        }[request.param]


def is_noted(home: Home, client: Client) -> bool:
    kept = (home.path / "state" / "chorus.log").read_text(encoding="utf-8")
    return all(f"{FOREIGN} {words}" in kept for words in client.noted) and "Traceback" not in kept


def test_the_chat_shows_only_our_words(home: Home, client: Client) -> None:
    with home.chat(**client.variables) as terminal:
        terminal.ask("Hello", client.reply)
        terminal.ask("/context", "are in context")
        terminal.ask("/nonsense", "There is no command")
        terminal.leave()
    assert FOREIGN.encode() not in terminal.drawn
    assert b"Warning" not in terminal.drawn
    assert is_noted(home, client)


@pytest.mark.parametrize("client", ["ELIZA"], indirect=True)
def test_of_a_private_chat_within_the_chat_nothing_is_noted(home: Home, client: Client) -> None:
    file = home.path / "state" / "chorus.log"
    with home.chat(**client.variables) as terminal:
        terminal.until(file.exists, "the first note")
        terminal.say("/private")
        terminal.await_text("Private: ")
        before = file.stat().st_size
        terminal.say("Hello")
        terminal.await_text(client.reply)
        terminal.watch(0.2)
        assert file.stat().st_size == before
        terminal.say("/private off")
        terminal.await_text("Private chat ended")
        terminal.until(lambda: file.stat().st_size > before, "another note")


MOST_PROCESSOR_SECONDS = 5.0
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
        f"{REJECTED} (the answer is compressed more than once).",
    ),
    "bytes that are not HTTP": (b"\x00\xff\x1b[31m" * 100_000, "/v1 (connection lost). Check that"),
}
BY_LITELLM = {"a text of a megabyte": (failure(400, TOKEN_COUNT.encode()), f"{REJECTED} (token count token count ")}


def most_mebibytes(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def processor_seconds(process: int) -> float:
    """Return the time that a process has worked, which does not grow while other programs keep it waiting."""
    figures = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(figures[11]) + int(figures[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what memory a process has had")
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
            before = 0.0
            for number, (name, (hostile, sentence)) in enumerate(answers.items(), 1):
                answer = GREETING
                terminal.ask("Hello", "\nHi.\n", times=number)
                answer, told = hostile, terminal.screen_text().count(sentence)
                before, began = before or most_mebibytes(terminal.pid), processor_seconds(terminal.pid)
                terminal.say("Well?")
                terminal.type("typed meanwhile")
                terminal.await_text(sentence, times=told + 1)
                terminal.await_line(f"{PROMPT} typed meanwhile")
                assert processor_seconds(terminal.pid) - began < MOST_PROCESSOR_SECONDS, name
                assert most_mebibytes(terminal.pid) - before < MOST_MEBIBYTES, name
                terminal.press("ctrl-c")
                terminal.ask("/thread new", f"Thread #{number + 1}")
