"""Chorus connects to the server of its model and to no other machine: every connection of a run is written down."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.guard import DEAD_END
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


@pytest.mark.parametrize(
    ("is_chat", "wire"),
    [(False, "on"), pytest.param(False, "off", marks=pytest.mark.slow), (True, "on")],
    ids=["ask", "ask by litellm", "chat"],
)
def test_a_question_reaches_the_server_of_the_model_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_chat: bool, wire: str
) -> None:
    """Nor is anything that the reply points to: pictures and links are not fetched, nor their names looked up."""
    link = "https://elsewhere.invalid/a.png"
    reply = chunk(f"![a]({link}) [b]({link}) <{link}> <img src='{link}'>\n\n[c]: {link}\n\nSeen.")
    with serving(lambda _body: (200, [reply, chunk(finish_reason="stop"), DONE])) as address:
        variables = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-invented", "CHORUS_WIRE": wire}
        variables |= {"CHORUS_MODEL": "openai/gpt-4o-mini", "CONNECTIONS": str(tmp_path / "connections")}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        if is_chat:
            home = Home(tmp_path / "home")
            with closing(Terminal(home.environment, command=[sys.executable, "-c", PROGRAM])) as chat:
                chat.await_line(PROMPT)
                chat.ask("hello", "Seen.")
        else:
            assert "Seen." in asked(tmp_path, "ask", "-c", "hello")[0]
    # After two seconds a chat asks an Ollama on this machine for the names of its models.
    of_ollama = {("127.0.0.1", str(urlsplit(DEAD_END).port))} if is_chat else set()
    assert reached_by(tmp_path) - of_ollama == {("127.0.0.1", str(urlsplit(address).port))}


def test_eliza_needs_no_connection(tmp_path: Path) -> None:
    assert asked(tmp_path, "--model", "eliza", "ask", "-c", "I am tired")[1] == set()


def asked(folder: Path, *arguments: str) -> tuple[str, set[tuple[str, ...]]]:
    """Run a command; return its output, and the hosts and ports that it connected to or looked up."""
    environment = {**Home(folder / "home").environment, "CONNECTIONS": str(folder / "connections")}
    done = finished([sys.executable, "-c", PROGRAM, *arguments], environment)
    assert done.code == 0, done.errors
    return done.output, reached_by(folder)


def reached_by(folder: Path) -> set[tuple[str, ...]]:
    """Return the hosts and ports that the programs of a folder have connected to or looked up."""
    notes = folder / "connections"
    lines = notes.read_text().splitlines() if notes.exists() else []
    return {tuple(line.split()[:2]) for line in lines}
