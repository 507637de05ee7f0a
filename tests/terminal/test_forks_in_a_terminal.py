"""A fork from the keyboard of the real program."""

from __future__ import annotations

from tests.terminal.driver import PROMPT, Home, Terminal


def tell(chat: Terminal, feeling: str) -> None:
    """Say how one feels, and wait for the reply, in which ELIZA repeats it."""
    chat.say(f"I am {feeling}")
    chat.await_text(feeling, times=2)
    chat.await_line(PROMPT)


def test_a_fork_goes_on_apart_and_is_closed_and_opened_again(home: Home) -> None:
    with home.chat() as chat:
        tell(chat, "unhappy")
        tell(chat, "tired")
        whole = home.seen()
        chat.ask("/thread fork 1", "Thread #2: I am unhappy (fork)")
        assert home.seen() == whole[:2]
        tell(chat, "hungry")
        forked = home.seen()
        assert forked[:2] == whole[:2]
        assert len(forked) == 4
        chat.ask("/thread 1", "Thread #1")
        assert home.seen() == whole
        chat.ask("/context undo 1", "Thread #2 is closed; you are in thread #1.")
        chat.ask("/redo", "Thread #2 is open again, and you are in it.")
        assert home.seen() == forked
        chat.leave()
    assert home.seen() == forked
    assert home.sql("SELECT count(*) FROM messages") == [6]
