"""A chat for a screen reader: the real program in a terminal, and every byte that it sends there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

import pytest

from tests.loopback_providers import SlowProvider, slow
from tests.terminal.command import PROGRAM
from tests.terminal.driver import LONG_MESSAGE, Home, Terminal

ALLOWED = re.compile(rb"\x1b\[\?2004[hl]")  # marks pastes, and draws nothing
BOXES_AND_SPINNERS = re.compile("[\u2500-\u259f\u2800-\u28ff\u25b0\u25b1]")


@pytest.fixture
def provider() -> Iterator[SlowProvider]:
    with slow() as running:
        yield running


def assert_plain(chat: Terminal) -> None:
    """Nothing moves the cursor up, erases, or colours; only carriage returns and backspaces go back within a line."""
    sent = ALLOWED.sub(b"", chat.drawn)
    assert b"\x1b" not in sent
    assert not BOXES_AND_SPINNERS.search(sent.decode())


def by_the_setting(home: Home) -> Mapping[str, str]:
    assert home.run("settings", "set", "plain", "true").code == 0
    return {}


@pytest.mark.parametrize("is_set", [False, True], ids=["by the environment", "by the setting"])
def test_a_plain_chat_redraws_nothing_and_names_who_speaks(home: Home, *, is_set: bool) -> None:
    with home.chat(">", **(by_the_setting(home) if is_set else {"ACCESSIBLE": "1"})) as chat:
        chat.say(LONG_MESSAGE)
        chat.until(lambda: chat.drawn.count(b"word0") > 1, "the reply")
        assert chat.drawn.count(b"word49") > 1, "The reply did not come in one piece."
        chat.await_line(">")
        assert re.search(r"^Chorus:\n\S.* word0", chat.screen_text(), re.MULTILINE)
        chat.type("I am sd")
        chat.await_line("> I am sd")
        chat.press("left")
        chat.await_column(len("> I am s"))
        chat.type("a")
        chat.await_line("> I am sad")
        chat.await_column(len("> I am sa"))
        chat.ask("", "sad", ">", times=2)
        chat.ask("/context", "Context window: 8h", ">")
        chat.ask("/thread list", "I am word0", ">", times=2)
        chat.say("/persona Ada")
        chat.await_line("There is no persona called 'Ada'. Create it? (y/n)")
        chat.ask("yes", "You are now talking to Ada", ">")
        chat.ask("I am here", "Ada:", ">")
        chat.press("ctrl-d")
        assert chat.await_end() == 0
    assert_plain(chat)
    assert home.said()[1:] == ["I am sad", "I am here"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(("Hello",), "unknown setting"), (("--thread", "1", "/thread list"), "In thread #1.")],
)
def test_a_question_at_the_shell_is_plain_by_the_setting(home: Home, arguments: Sequence[str], told: str) -> None:
    by_the_setting(home)
    assert home.run("ask", "Hello").code == 0
    (home.path / "config.jsonc").write_text('{"defaults": {"colour": 1}}')
    with closing(Terminal(home.environment, command=[*PROGRAM, "ask", *arguments])) as shell:
        assert shell.await_end() == 0
    assert told in shell.screen_text()
    assert_plain(shell)


def test_nothing_ticks_while_a_plain_chat_waits_for_a_reply(home: Home, provider: SlowProvider) -> None:
    with home.chat(">", **provider.variables, ACCESSIBLE="1") as chat:
        chat.say("one")
        chat.until(lambda: bool(provider.asked), "the request")
        chat.watch(0.5)
        before = chat.drawn
        chat.watch(3.5)
        assert chat.drawn == before
        provider.finish("one")
        chat.await_text("Chorus:\nAbout one: all.")
        chat.await_line(">")
    assert_plain(chat)


def test_a_plain_reply_goes_to_the_background_and_what_is_typed_meanwhile_waits(
    home: Home, provider: SlowProvider
) -> None:
    with home.chat(">", **provider.variables, ACCESSIBLE="1") as chat:
        chat.say("one")
        chat.await_text("Chorus:")
        before = chat.drawn
        chat.say("two")
        chat.type("hal")
        chat.watch(0.3)
        assert chat.drawn == before
        chat.press("ctrl-b")
        chat.await_text("The reply continues in the background")
        provider.finish("one", "two", "half")
        chat.await_text('The reply to "two" in thread #1 is done')
        chat.await_line("> hal")
        chat.ask("f", "Chorus:\nAbout half: all.", ">")
    assert_plain(chat)
    assert home.said() == ["one", "two", "half"]
