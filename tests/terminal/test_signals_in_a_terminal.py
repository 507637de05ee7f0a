"""A signal ends the chat at once wherever it is, and text that was typed meanwhile is at the next prompt."""

from __future__ import annotations

import signal
import time

import pytest

from tests.mock_provider import MockProvider
from tests.terminal.driver import PROMPT, Home

AT_ONCE_SECONDS = 2.0


@pytest.mark.parametrize(
    ("line", "number"),
    [("/context save", signal.SIGTERM), ("/context compact", signal.SIGHUP), ("say nothing", signal.SIGTERM)],
)
def test_a_signal_ends_what_waits_for_a_silent_model_and_keeps_what_was_typed(
    home: Home, mock_provider: MockProvider, line: str, number: int
) -> None:
    for text in ("hello", "hello again", "and again"):
        assert home.run("ask", text).code == 0
    model = {"OPENAI_BASE_URL": f"{mock_provider.address}/v1", "OPENAI_API_KEY": "sk-test", "CHORUS_MODEL": "openai/x"}
    with home.chat(**model) as chat:
        mock_provider.behave(type="stream_fault", kind="stall", after_chunks=0)
        chat.say(line)
        chat.await_text("… 1 s")
        chat.type("typed meanwhile")
        chat.watch(0.2)
        began = time.monotonic()
        chat.kill(number)
        assert time.monotonic() - began < AT_ONCE_SECONDS
        assert chat.echoes
    with home.chat(f"{PROMPT} typed meanwhile") as chat:
        chat.press("ctrl-c")


REMEMBERED = "SELECT content FROM context_items WHERE forgotten_by IS NULL"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_a_question_ends_the_chat_and_nothing_is_done(home: Home, number: int) -> None:
    assert home.run("ask", "/remember call the plumber").code == 0
    with home.chat() as chat:
        chat.say("/memory forget 1")
        chat.await_text("(y/n)")
        began = time.monotonic()
        chat.kill(number)
        assert time.monotonic() - began < AT_ONCE_SECONDS
        assert chat.echoes
    assert home.sql(REMEMBERED) == ["call the plumber"]
    assert not (home.path / "state" / "chorus.log").exists()
