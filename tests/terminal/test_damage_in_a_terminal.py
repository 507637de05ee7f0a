"""A text in the log that is not UTF-8, or a folder that is closed to the user: a sentence, and the chat goes on."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.ordinary_user import ordinary_program, refused

MESSAGES = "UPDATE messages SET content = CAST(x'f0ff' AS TEXT)"
INPUTS = "UPDATE input_history SET content = CAST(x'f0ff' AS TEXT)"
TITLES = "UPDATE threads SET title = CAST(x'f0ff' AS TEXT)"


@pytest.mark.parametrize(
    "statements",
    [
        ("UPDATE messages SET model = CAST(x'f0ff' AS TEXT)",),
        (MESSAGES, "UPDATE messages SET status = 'interrupted' WHERE role = 'assistant'"),
        (MESSAGES, "UPDATE messages SET status = 'streaming' WHERE role = 'assistant'"),
        (MESSAGES, INPUTS, TITLES),
    ],
    ids=["model", "interrupted", "killed", "all"],
)
def test_a_text_that_is_not_utf_8_is_told_once_when_the_chat_opens(home: Home, statements: tuple[str, ...]) -> None:
    with home.chat() as chat:
        chat.ask("hello", "Hello")
    for statement in statements:
        home.sql(statement)
    with home.chat() as chat:
        chat.await_text("chorus doctor", 10)
        chat.ask("/help undo", "/undo")
        assert chat.words().count("a text in it is not UTF-8") == 1


A_PROMPT = re.compile("^(?:Chorus|Frodo) ❯", re.MULTILINE)
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
def used(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    for words in ("hello", "/context save"):
        assert home.run("ask", words).code == 0
    return home


def carried_out(home: Home, commands: tuple[str, ...], name: str) -> str:
    """Take a file or folder away while a chat is open, type commands, and return all that is on the screen then."""
    with closing(Terminal(home.environment, command=ordinary_program())) as chat:
        chat.await_line(PROMPT)
        with refused(home.path / name):
            for number, command in enumerate(commands, 2):
                chat.say(command)
                chat.until(lambda: len(A_PROMPT.findall(chat.screen_text())) == number, "the prompt")  # noqa: B023
            # While the prompt is not back, Ctrl-C is a signal, which would stop the next command.
            chat.await_idle()
            # A message that was refused is at the prompt again.
            chat.press("ctrl-c")
            chat.say("/no-such-command")
            chat.await_text("There is no command")
        return chat.words()


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
def test_no_command_takes_a_refusal_for_a_bug(used: Home, name: str) -> None:
    told = carried_out(used, COMMANDS, name)
    assert "bug" not in told
    assert "silence" not in told


def test_a_refusal_that_no_sentence_expects_has_one(used: Home) -> None:
    told = carried_out(used, ("/purge search word",), ".")
    assert "cannot be used: Permission denied. Give yourself access with: chmod -R u+rwX" in told
