"""Folders and files that permissions keep the user from while a chat is open: a sentence, and the chat goes on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.ordinary_user import ordinary_program, refused

COMMANDS = (
    "/persona",
    "/persona frodo",
    "/persona chorus",
    "/context save again",
    "/context show 2",
    "/settings set context_hours 5",
    "/search hello",
    "/purge search word",
    "hello again",
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    for words in ("hello", "/context save"):
        assert home.run("ask", words).code == 0
    return home


def carried_out(home: Home, commands: tuple[str, ...], name: str, awaited: str = "") -> str:
    """Take a file or folder away while a chat is open, type commands, and return all that is on the screen then.

    Each command is given time until the prompt is back, or until the text ``awaited`` comes.
    """
    with closing(Terminal(home.environment, command=ordinary_program())) as chat:
        chat.await_line(PROMPT)
        with refused(home.path / name):
            for command in commands:
                chat.say(command)
                if awaited:
                    chat.until(lambda: awaited in shown(chat), awaited)
                else:
                    chat.watch(0.1)
                    chat.await_idle()
            # While the prompt is not back, Ctrl-C is a signal, which would stop the next command.
            chat.await_idle()
            # A message that was refused is at the prompt again.
            chat.press("ctrl-c")
            chat.say("/no-such-command")
            chat.await_text("There is no command")
        return shown(chat)


def shown(chat: Terminal) -> str:
    """Return the words on the screen, wherever its rows end."""
    return " ".join(chat.screen_text().split())


@pytest.mark.parametrize(
    "name",
    [
        ".",
        "personas",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("personas/chorus", "personas/chorus/system.jsonc", "personas/chorus/sessions", "state")
        ),
    ],
)
def test_no_command_takes_a_refusal_for_a_bug(home: Home, name: str) -> None:
    told = carried_out(home, COMMANDS, name)
    assert "bug" not in told
    assert "silence" not in told


def test_a_refusal_that_no_sentence_expects_has_one(home: Home) -> None:
    told = carried_out(home, ("/purge search word",), ".", "cannot be used")
    assert "cannot be used: Permission denied. Give yourself access with: chmod -R u+rwX" in told
