"""Libraries warn, log and print without end, and nothing of it reaches the screen, whichever client answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.loopback_server import serving
from tests.models.local.model_files import library_in, written
from tests.models.providers.asked_models import STOP
from tests.models.providers.fault_server import chunk
from tests.terminal.command import PROGRAM
from tests.terminal.driver import Home, Terminal

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


def asking(home: Home, client: Client, *arguments: str) -> closing[Terminal]:
    return closing(Terminal({**home.environment, **client.variables}, command=[*PROGRAM, "ask", *arguments]))


def is_noted(home: Home, client: Client) -> bool:
    kept = (home.path / "state" / "chorus.log").read_text(encoding="utf-8")
    return all(f"{FOREIGN} {words}" in kept for words in client.noted) and "Traceback" not in kept


def test_the_chat_shows_only_our_words(tmp_path: Path, client: Client) -> None:
    home = Home(tmp_path / "home")
    with home.chat(**client.variables) as terminal:
        terminal.ask("Hello", client.reply)
        terminal.ask("/context", "are in context")
        terminal.ask("/nonsense", "There is no command")
        terminal.leave()
    assert FOREIGN.encode() not in terminal.drawn
    assert b"Warning" not in terminal.drawn
    assert is_noted(home, client)


def test_a_question_shows_only_the_answer(tmp_path: Path, client: Client) -> None:
    home = Home(tmp_path / "home")
    with asking(home, client, "Hello") as terminal:
        assert terminal.await_end() == 0
    told = [line for line in terminal.screen_text().splitlines() if line]
    assert len(told) == 1
    assert client.reply in told[0]
    assert is_noted(home, client)


@pytest.mark.parametrize("client", ["ELIZA"], indirect=True)
def test_of_a_private_chat_within_the_chat_nothing_is_noted(tmp_path: Path, client: Client) -> None:
    home = Home(tmp_path / "home")
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
        terminal.await_text("The private chat is over")
        terminal.until(lambda: file.stat().st_size > before, "another note")
