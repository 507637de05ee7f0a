"""A reply in the background, from the keyboard: it is counted below, told to the next turn, and its end rings."""

from __future__ import annotations

from pathlib import Path

from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.editors import editor

LONG = "I am " + " ".join(f"word{number}" for number in range(120))
"""What ELIZA answers within two or three seconds."""


def send_to_background(chat: Terminal) -> None:
    chat.say(f"/bg {LONG}")
    chat.await_bottom_line("1 running")


def preambles(home: Home) -> list[str]:
    """Return the preamble of every question, in the order of the log."""
    return home.sql("SELECT preamble FROM messages WHERE role = 'user' ORDER BY id")


def test_a_reply_in_the_background_is_counted_below_told_to_the_model_and_rings(home: Home) -> None:
    with home.chat() as chat:
        assert "running" not in chat.bottom_line()
        send_to_background(chat)
        chat.until(lambda: preambles(home) == [""], "the first question in the log")
        chat.ask("Hello", "What would you like to talk about?")
        chat.await_text("thread #2 is done")
        chat.await_line(PROMPT)
        chat.until(lambda: "running" not in chat.bottom_line(), "an end of the reply below")
        chat.say("Hello again")
        chat.until(lambda: len(preambles(home)) == 3, "the third question in the log")
        assert chat.drawn.count(b"\a") == 1
    first, second, third = preambles(home)
    assert (first, third) == ("", "")
    heading, own, other = second.splitlines()
    assert (heading, own) == (
        "Active threads:",
        "  #1 (this thread): Hello, step 1, 0 s, currently: waiting for the model",
    )
    assert other.startswith("  #2: I am word0 word1 ")


def test_the_end_rings_as_the_setting_says(home: Home) -> None:
    home.run("ask", "/settings set notify osc")
    with home.chat(TMUX="", STY="", VTE_VERSION="") as chat:
        send_to_background(chat)
        chat.await_text("thread #2 is done")
        chat.await_line(PROMPT)
        assert b"\x1b]9;Chorus: The reply to " in chat.drawn
        # The message ends with that character.
        assert chat.drawn.count(b"\a") == 1


def test_in_an_editor_the_bell_rings_at_once_and_the_line_comes_afterwards(home: Home, tmp_path: Path) -> None:
    left = tmp_path / "left"
    visual = editor(tmp_path, f"until [ -e '{left}' ]; do sleep 0.1; done")
    with home.chat(VISUAL=visual) as chat:
        send_to_background(chat)
        chat.press("ctrl-x", "ctrl-e")
        chat.until(lambda: b"\a" in chat.drawn, "the bell")
        assert "is done" not in chat.screen_text()
        left.touch()
        chat.await_text("thread #2 is done")
        chat.await_line(PROMPT)
