"""Signing in to servers with the real program: from a shell and in the chat, and where the tokens never are."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile, is_zipfile

import pytest

from tests.loopback_providers import CallingProvider, split_call
from tests.mcp.guarded_server import CANARY, Guarded, guarded
from tests.terminal.driver import Home

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the library mcp is not installed")

BROWSER = """\
import json, os, sys, urllib.error, urllib.parse, urllib.request
with open({seen!r}, "a") as file:
    file.write(json.dumps([sys.argv[1], *os.environ]) + "\\n")
back = urllib.parse.parse_qs(urllib.parse.urlsplit(sys.argv[1]).query)["redirect_uri"][0]
try:
    urllib.request.urlopen(back + "?code=c&state=another")
except urllib.error.HTTPError:
    urllib.request.urlopen(sys.argv[1]).read()
"""
"""It answers another sign-in first, which the program has to refuse."""


@pytest.fixture
def server() -> Iterator[Guarded]:
    with guarded() as running:
        yield running


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """The file that has each page that the browser opened, with the names of its variables."""
    return tmp_path / "seen.txt"


@pytest.fixture
def talking(talking: Home, server: Guarded, seen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home with a server that asks for a sign-in, and with a browser that signs in."""
    script = tmp_path / "browser.py"
    script.write_text(BROWSER.format(seen=str(seen)), encoding="utf-8")
    monkeypatch.setenv("BROWSER", f"{sys.executable} {script} %s")
    talking.path.mkdir(parents=True, exist_ok=True)
    config = {"mcpServers": {"far": {"url": server.url, "trust": True}}, "defaults": {"mcp_wait": 60}}
    (talking.path / "config.jsonc").write_text(json.dumps(config), encoding="utf-8")
    return talking


def traces(folder: Path) -> list[str]:
    """Return the names of the files that have a secret of the server, in archives too."""
    found = []
    for path in (path for path in folder.rglob("*") if path.is_file()):
        texts = [path.read_bytes()]
        if is_zipfile(path):
            with ZipFile(path) as archive:
                texts += [archive.read(name) for name in archive.namelist()]
        if any(CANARY.encode() in text for text in texts):
            found.append(path.name)
    return found


def test_a_shell_signs_in_and_out_and_no_file_but_one_has_the_tokens(
    talking: Home, provider: CallingProvider, server: Guarded, seen: Path
) -> None:
    provider.say("Without.")
    before = talking.run("ask", "-c", "Hello?")
    assert (before.code, before.output.strip()) == (0, "Without.")
    assert before.errors.splitlines()[-1] == "far wants you to sign in: chorus mcp login far"
    assert not seen.exists()

    outcomes = [talking.run("mcp", "login", "far")]
    assert outcomes[0].code == 0
    assert outcomes[0].output.strip() == "You are signed in to far, whose tools are offered with your next message."
    page, *variables = json.loads(seen.read_text(encoding="utf-8"))
    assert page.startswith(f"{server.address}/authorization?")
    assert page in outcomes[0].errors
    assert "PATH" in variables
    assert not [name for name in variables if "KEY" in name]

    server.lifetime_seconds = -1
    provider.call(*split_call("far__ping", {}))
    provider.say("With.")
    outcomes += [
        talking.run("ask", "-c", "And now?"),
        talking.run("backup"),
        talking.run("tools"),
        talking.run("paths"),
    ]
    outcomes += [talking.run("export", "--all", str(talking.path / "exported")), talking.run("doctor")]
    assert "pong" in [message["content"] for message in provider.asked[-1]["messages"]]
    assert CANARY not in json.dumps(provider.asked)
    assert traces(talking.path) == ["tokens.json"]
    assert not [each for each in outcomes if CANARY in each.output + each.errors]
    assert str(talking.path / "state" / "tokens.json") in outcomes[4].output

    assert talking.run("mcp", "logout", "far").output.strip() == "You are signed out of far."
    assert traces(talking.path) == []


def test_the_chat_signs_in_once_it_is_told_to(talking: Home, provider: CallingProvider, seen: Path) -> None:
    with talking.chat() as chat:
        chat.ask("Hello?", "far wants you to sign in: /mcp login far")
        chat.ask("/tools", "wants you to sign in")
        assert not seen.exists()
        chat.ask("/mcp login far", "You are signed in to far")
        provider.call(*split_call("far__ping", {}))
        provider.say("It says pong.")
        chat.ask("And now?", "It says pong.")
        assert CANARY not in chat.screen_text()
        chat.leave()
    assert traces(talking.path) == ["tokens.json"]


def test_ctrl_c_ends_a_sign_in_and_not_the_chat(talking: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", "false %s")
    with talking.chat() as chat:
        chat.say("/mcp login far")
        chat.await_text("open this address:")
        chat.stop("Stopped; nothing was done.")
    assert traces(talking.path) == []


def test_a_private_chat_keeps_its_sign_in_in_memory(talking: Home, provider: CallingProvider) -> None:
    with talking.chat() as chat:
        chat.ask("/private", "private")
        chat.ask("/mcp login far", "You are signed in to far")
        provider.call(*split_call("far__ping", {}))
        provider.say("It says pong.")
        chat.ask("And now?", "It says pong.")
        assert traces(talking.path) == []
