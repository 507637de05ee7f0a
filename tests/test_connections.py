"""Chorus connects to the server of its model and to nothing else: every connection of a run is written down."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk
from tests.terminal.command import finished
from tests.terminal.driver import PROMPT, Home, Terminal

# Nothing connects or looks a name up without the interpreter telling its hooks.
PROGRAM = """
import os, sys

def write_down(event, arguments):
    if event == "socket.connect":
        told = arguments[1]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        told = arguments[:2]
    else:
        return
    with open(os.environ["CONNECTIONS"], "a") as file:
        print(*told, file=file)

sys.addaudithook(write_down)
from chorus_cli.cli import main
sys.exit(main(sys.argv[1:], os.environ))
"""


@pytest.mark.parametrize("wire", ["on", pytest.param("off", marks=pytest.mark.slow)])
def test_a_question_reaches_the_server_of_the_model_and_no_other(
    tmp_path: Path, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of its own address is asked for the size of its context too."""
    with serving(lambda _body: (200, [chunk("Hello."), chunk(finish_reason="stop"), DONE])) as address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-invented")
        monkeypatch.setenv("CHORUS_WIRE", wire)
        done, reached = asked(tmp_path, "--model", "openai/gpt-4o-mini", "ask", "hello")
    assert done == "Hello.\n"
    assert reached == {("127.0.0.1", str(urlsplit(address).port))}


@pytest.mark.parametrize("is_chat", [False, True], ids=["ask", "chat"])
def test_nothing_that_a_reply_points_to_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_chat: bool
) -> None:
    """Neither pictures nor links, and no name of them is looked up."""
    link = "https://elsewhere.invalid/a.png"
    reply = chunk(f"![a]({link}) [b]({link}) <{link}> <img src='{link}'>\n\n[c]: {link}\n\nSeen.")
    with serving(lambda _body: (200, [reply, chunk(finish_reason="stop"), DONE])) as address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-invented")
        monkeypatch.setenv("CONNECTIONS", str(tmp_path / "connections"))
        if is_chat:
            environment = {**Home(tmp_path / "home").environment, "CHORUS_MODEL": "openai/gpt-4o-mini"}
            with closing(Terminal(environment, command=[sys.executable, "-c", PROGRAM])) as chat:
                chat.await_line(PROMPT)
                chat.ask("hello", "Seen.")
        else:
            assert "Seen." in asked(tmp_path, "--model", "openai/gpt-4o-mini", "ask", "hello")[0]
    assert reached_by(tmp_path) == {("127.0.0.1", str(urlsplit(address).port))}


def test_eliza_needs_no_connection(tmp_path: Path) -> None:
    assert asked(tmp_path, "--model", "eliza", "ask", "I am tired")[1] == set()


def asked(folder: Path, *arguments: str) -> tuple[str, set[tuple[str, ...]]]:
    """Run a command; return its output, and the hosts and ports that it connected to or looked up."""
    notes = folder / "connections"
    environment = {**Home(folder / "home").environment, "CONNECTIONS": str(notes)}
    done = finished([sys.executable, "-c", PROGRAM, *arguments], environment)
    assert done.code == 0, done.errors
    return done.output, reached_by(folder)


def reached_by(folder: Path) -> set[tuple[str, ...]]:
    """Return the hosts and ports that the programs of a folder have connected to or looked up."""
    notes = folder / "connections"
    lines = notes.read_text().splitlines() if notes.exists() else []
    return {tuple(line.split()[:2]) for line in lines}
