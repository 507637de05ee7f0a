"""The help on a terminal of 80 columns and 24 lines, its pager, and every byte of a chat for a screen reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from chorus_cli.catalogue import registry
from chorus_cli.framework.help import KEYS, page, screen
from tests.loopback_providers import SlowProvider, slow
from tests.terminal.command import PROGRAM
from tests.terminal.driver import LONG_MESSAGE, PROMPT, Home, Terminal

MOST_LINES, MOST_COMMANDS, LONGEST_DESCRIPTION = 20, 16, 50


def test_it_fits_on_one_screen() -> None:
    lines = screen(registry()).splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) < 80
    assert 12 <= len(registry().everyday) <= MOST_COMMANDS
    assert [each.path for each in registry().everyday if len(each.summary) > LONGEST_DESCRIPTION] == []


def test_it_is_seen_whole_and_everything_is_paged(home: Home, tmp_path: Path) -> None:
    paged = tmp_path / "paged"
    with home.chat(PAGER=f"sh -c 'cp \"$0\" {paged}'") as chat:
        chat.resize(80, 24)
        chat.ask("/help", KEYS)
        chat.await_bottom_line("Chorus")
        assert [chat.line(row) for row in range(1, 21)] == screen(registry()).splitlines()
        chat.ask("/help memory", "/memory checkpoints")
        assert not paged.exists()
        chat.say("/help all")
        chat.until(paged.exists, "the pager")
        chat.await_line(PROMPT)
        assert "/purge backups" not in chat.words()
    assert paged.read_text(encoding="utf-8") == page(registry(), "all")


@pytest.mark.parametrize("columns", [80, 60])
def test_the_help_of_a_command_breaks_no_word(home: Home, columns: int) -> None:
    told = page(registry(), "import")
    assert max(map(len, told.splitlines())) > columns
    with home.chat() as chat:
        chat.resize(columns, 40)
        chat.ask("/help import", "--dry-run")
        assert [word for word in told.split() if word not in chat.words().split()] == []


def test_without_a_pager_everything_is_printed(home: Home) -> None:
    with home.chat(PAGER="") as chat:
        chat.ask("/help all", "/purge backups")


def test_a_word_that_leaves_other_programs_is_asked_about(home: Home) -> None:
    with home.chat() as chat:
        chat.say("exit")
        chat.await_text('Leave the chat? n sends "exit" to Chorus. (y/n)')
        chat.press("ctrl-c")
        chat.await_line(f"{PROMPT} exit")
        chat.press("enter")
        chat.await_text("Leave the chat?", times=2)
        chat.ask("n", "Type /quit to leave")
        chat.say(":q")
        chat.await_text('n sends ":q" to Chorus.')
        chat.say("y")
        assert chat.await_end() == 0
    assert home.said() == ["exit"]
    with home.chat() as chat:
        chat.ask("/help undo", "/undo")
        assert "back at the prompt" not in chat.words()


# For a screen reader

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
        chat.await_text("Your message will be sent after the reply in thread #1")
        provider.finish("one", "two", "half")
        chat.await_text('The reply to "two" in thread #1 is done')
        chat.await_line("> hal")
        chat.ask("f", "Chorus:\nAbout half: all.", ">")
    assert_plain(chat)
    assert home.said() == ["one", "two", "half"]
