"""The AGENTS.md of the folder, in the real program: asked about once, sent in a chat, and in no ask."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.loopback_providers import Recorder, running
from tests.terminal.driver import PROMPT, Home

RULE = "Answer in rhymes."


def systems(provider: Recorder) -> list[bool]:
    """Return of each request whether it has the file."""
    return [RULE in json.dumps(body["messages"]) for body in provider.bodies]


def test_a_chat_asks_once_and_an_ask_never_sends_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    (folder / ".git").mkdir(parents=True)
    (folder / "AGENTS.md").write_text(RULE)
    monkeypatch.chdir(folder)
    with running(Recorder()) as provider:
        variables = provider.environment()
        with home.chat(**variables) as chat:
            chat.say("one")
            chat.await_text("(y/n)")
            chat.press("ctrl-c")
            chat.await_line(f"{PROMPT} one")
            assert provider.bodies == []
            chat.press("enter")
            chat.await_text("(y/n)", times=2)
            chat.say("y")
            chat.await_text("seen.")
            chat.ask("/context", "/set project off")
        with home.chat(**variables) as chat:
            chat.ask("two", "seen.")
            (folder / "AGENTS.md").write_text(f"{RULE} Be brief.")
            chat.say("three")
            chat.until(lambda: "has changed; it is sent as it is now." in chat.words(), "the change")
            chat.until(lambda: len(provider.bodies) == len(["one", "two", "three"]), "the third request")
        assert systems(provider) == [True] * 3
        with home.running("ask", "four", variables=variables) as asking:
            assert asking.wait(60) == 0
        assert systems(provider) == [True] * 3 + [False]


def test_a_line_typed_ahead_is_the_next_message_and_no_answer(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "AGENTS.md").write_text(RULE)
    monkeypatch.chdir(tmp_path)
    with running(Recorder()) as provider, home.chat(**provider.environment()) as chat:
        chat.type("one\ry\r")
        chat.await_text("(y/n)")
        chat.say("n")
        chat.await_text("seen.", times=2)
        assert systems(provider) == [False] * 2
