"""No key leaves: the real program has canaries for keys, and all that it wrote, printed and passed on is searched."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.loopback_providers import CallingProvider
from tests.models.providers.fault_server import chunk, event
from tests.terminal.driver import PROMPT, Home
from tests.terminal.editors import editor

VARIABLES = {
    "OPENAI_API_KEY": "sk-canary-openai-0001",
    "WATSONX_APIKEY": "canary/watson+0002",
    "LANGFUSE_SECRET_KEY": "canary-langfuse-0003",
    "PGPASSWORD": "canary-postgres-0004",
    "DEPLOY_TOKEN": "canary-deploy-0005",
    "MY_NOTE": "gsk_canary00060006000600060006",
}
"""Variables named like secrets, and one with the shape of a key."""

ELSEWHERE = {"in the settings": "sk-canary-settings-0007", "of somebody else": "xai-canary0008000800080008000800080008"}
ADDRESS = "canary-address-0009"
CANARIES = (*VARIABLES.values(), *ELSEWHERE.values())
# As they are, in an address, in base64 or cut: each has its number.
TRACES = re.compile(rb"canary[-/_a-z%2F+]{0,24}00[0-9]{2}|Y2FuYXJ5")

QUOTING = (
    f"Bad keys {', '.join(CANARIES)}; see http://host/v1?key={quote(CANARIES[1], safe='')}"
    f" and https://user:{ADDRESS}@host/"
)


def settings_with_keys(home: Home) -> None:
    """Put keys where the user may have put them by mistake: an unknown setting, a wrong value."""
    home.run("paths")
    home.run("log")
    path = home.path / "personas" / "chorus" / "system.jsonc"
    key = ELSEWHERE["in the settings"]
    path.write_text(
        json.dumps({"name": "Chorus", "api_key": key, "temperature": key, "context_hours": [key], "model": "openai/m"})
    )


def searched(home: Home, *more: bytes) -> list[str]:
    """Return the places of canaries: in files that Chorus wrote, or in ``more``."""
    files = {path: path.read_bytes() for path in home.path.rglob("*") if path.is_file() and path.name != "system.jsonc"}
    found = [f"{path}: {TRACES.findall(data)}" for path, data in files.items() if TRACES.search(data)]
    return found + [f"output: {TRACES.findall(data)} in {data!r}" for data in more if TRACES.search(data)]


@pytest.mark.usefixtures("_litellm")
@pytest.mark.parametrize(
    ("status", "wire"), [(400, "on"), (401, "on"), (403, "on"), (404, "on"), (413, "on"), (400, "off"), (401, "off")]
)
def test_a_refusal_that_quotes_keys_is_told_without_them(
    home: Home, provider: CallingProvider, status: int, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the wire, and through litellm, which prints of its own accord."""
    monkeypatch.setenv("CHORUS_WIRE", wire)
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENAI_BASE_URL", provider.address)
    settings_with_keys(home)
    provider.refuse(status, QUOTING)
    for arguments in (("ask", "-c", "hello"), ("ask", "--json", "hello")):
        done = home.run(*arguments)
        assert done.code == 1 or provider.asked
        assert not searched(home, done.output.encode(), done.errors.encode())
        provider.refuse(status, QUOTING)
    assert provider.asked, "the provider was never asked"


def test_an_error_within_a_reply_and_an_address_with_a_password_are_told_without_keys(
    home: Home, provider: CallingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENAI_BASE_URL", provider.address)
    provider._script.append((200, chunk("Well") + event({"error": {"message": QUOTING}})))
    cut = home.run("--model", "openai/m", "ask", "-c", "hello")
    assert cut.output.startswith("Well")
    assert "[redacted]" in cut.errors
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://user:{ADDRESS}@127.0.0.1:1/v1")
    unreachable = home.run("--model", "openai/m", "ask", "-c", "hello")
    assert unreachable.code == 1
    wrong = home.run("ask", "--thread", ELSEWHERE["of somebody else"], "hello")
    assert wrong.code == 2
    told = (done.output + done.errors for done in (cut, unreachable, wrong))
    assert not searched(home, *(text.encode() for text in told))


def test_the_chat_and_its_editor_clipboard_and_commands_get_no_keys(
    home: Home, provider: CallingProvider, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("xclip", "wl-copy", "pbcopy"):
        (tools / name).write_text(f"#!/bin/sh\nenv > {tmp_path}/copied\ncat > /dev/null\n")
        (tools / name).chmod(0o700)
    own = {
        "PATH": f"{tools}:{home.environment['PATH']}",
        "DISPLAY": ":0",
        "EDITOR": editor(tmp_path, f"env > {tmp_path}/edited"),
        "OPENAI_BASE_URL": provider.address,
    }
    settings_with_keys(home)
    provider.refuse(400, QUOTING)
    with home.chat(**VARIABLES, **own) as chat:
        chat.say("hello")
        chat.await_text("[redacted]")
        chat.await_line(PROMPT)
        chat.ask("and now?", "ok")
        chat.say("/copy")
        chat.until((tmp_path / "copied").exists, "the clipboard tool")
        chat.say(f"!env > {tmp_path}/shell")
        chat.until((tmp_path / "shell").exists, "the command")
        chat.say(f"/run env > {tmp_path}/job")
        chat.until((tmp_path / "job").exists, "the job")
        chat.say("/context edit")
        chat.until((tmp_path / "edited").exists, "the editor")
        chat.await_line(PROMPT)
        chat.ask("/settings", "temperature")
        drawn = chat.drawn
    passed = [(tmp_path / name).read_bytes() for name in ("copied", "shell", "job", "edited")]
    assert all(b"PATH=" in each for each in passed)
    assert not searched(home, drawn, *passed)
