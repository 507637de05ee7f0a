"""Which model answers, from the keyboard of the real program."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path

import pytest

from tests.models.local.model_files import gguf, library_in, written
from tests.models.providers.fake_ollama import entry, listening, ollama
from tests.terminal.driver import PROMPT, Home

LLAMA = ollama(in_memory=[entry("llama3.2:latest", "2026-11-20T10:00:00Z")], reply="Hello from the llama.")


@pytest.mark.usefixtures("_litellm")
def test_a_running_ollama_answers_and_the_first_line_says_so(tmp_path: Path) -> None:
    with listening(LLAMA) as address, Home(tmp_path).chat(OLLAMA_API_BASE=address) as terminal:
        terminal.await_text("ollama_chat/llama3.2:latest answers (a running Ollama's most recently used model).")
        terminal.ask("Hello", "Hello from the llama.")
        terminal.ask("/model chorus/eliza", "Model: chorus/eliza (set by /model)")
        terminal.ask("/settings unset model", "Model: ollama_chat/llama3.2:latest (a running Ollama's")


def test_the_prompt_does_not_wait_for_an_ollama_but_the_first_message_does(tmp_path: Path) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def slow(connection: socket.socket, path: str) -> None:
        asked.set()
        may_answer.wait(10)
        LLAMA(connection, path)

    home = Home(tmp_path)
    with listening(slow) as address, home.chat(OLLAMA_API_BASE=address) as terminal:
        # The prompt is there while the question to Ollama is still open; its silence ends after 0.3 s.
        terminal.type("I am here")
        terminal.await_line(f"{PROMPT} I am here")
        assert asked.wait(10)
        terminal.press("enter")
        terminal.await_text("chorus/eliza answers (embedded: no provider's key is set and no Ollama answered).")
        terminal.await_line(PROMPT)
        may_answer.set()
    assert [status for _, status in home.replies()] == ["complete"]


def test_ctrl_c_while_ollama_is_asked_loses_nothing_and_the_chat_goes_on(tmp_path: Path) -> None:
    may_answer = threading.Event()

    def mute(_connection: socket.socket, _path: str) -> None:
        may_answer.wait(10)

    home = Home(tmp_path)
    with listening(mute) as address, home.chat(OLLAMA_API_BASE=address) as terminal:
        terminal.say("I am here")
        terminal.await_busy()
        terminal.press("ctrl-c")
        terminal.await_text("chorus/eliza answers")
        terminal.await_line(PROMPT)
        terminal.ask("/model", "Model: chorus/eliza")
        may_answer.set()
        terminal.say("/quit")
        assert terminal.await_end() == 0
    assert home.said() == ["I am here"]


def test_the_first_lines_ask_for_no_key_that_is_there(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.chat() as terminal:
        terminal.ask("/model chorus/eliza", "Model: chorus/eliza (set by /model)")
    with home.chat(ANTHROPIC_API_KEY="key") as terminal:
        terminal.await_text("ANTHROPIC_API_KEY is set: /model anthropic/claude-sonnet-5 switches to a language model.")
        assert "set a provider's key" not in terminal.screen_text()


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
