"""The chat as its user has it, and how it goes on with a damaged text or a folder that is closed to the user."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.terminal.driver import FIRST_WORD, LONG_MESSAGE, NEW_INTERPRETER, PROMPT, Home, Terminal
from tests.terminal.ordinary_user import ordinary_program, refused

UNHAPPY = ("I am unhappy", "That sounds hard. What has made you unhappy?")
TIRED = ("I am tired", "That sounds hard. What has made you tired?")
HELD = """
import os, re, threading, time
from chorus_cli.cli import main
def hold():
    while not os.path.exists({file!r}):
        time.sleep(0.05)
    re.match("(a+)+$", "a" * 64 + "b")
threading.Thread(target=hold, daemon=True).start()
raise SystemExit(main([], os.environ))
"""
"""The program with a thread that holds the interpreter, as C code may, once there is a file."""


def test_what_was_said_and_done_outlives_the_program(home: Home) -> None:
    with home.chat() as chat:
        chat.await_text("chorus/eliza answers (embedded")
        chat.await_text("OPENAI_API_KEY")
        chat.await_text("start Ollama")
        for line, answer in (
            UNHAPPY,
            ("/context 2d", "Context window set to 48h"),
            ("/new", "--- New conversation ---"),
            TIRED,
        ):
            chat.ask(line, answer)
        chat.leave()
        assert chat.echoes
    assert home.seen() == [*TIRED]

    with home.chat() as chat:
        chat.ask("/context", "Context window: 48h (default: 8h)")
        chat.ask("/context undo", "Undone: new conversation")
        chat.say("/quit")
        assert chat.await_end() == 0
    assert home.seen() == [*UNHAPPY, *TIRED]


def test_a_line_that_was_typed_stands_in_no_file_but_the_database(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("/search kingfisher", "Nothing was found.")
        chat.leave()
    assert home.sql("SELECT content FROM input_history") == ["/search kingfisher"]
    files = [path for path in home.path.rglob("*") if path.is_file()]
    assert [path.name for path in files if b"kingfisher" in path.read_bytes()] == ["chorus.db"]


def test_a_locked_database_does_not_freeze_the_keyboard(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("/search kingfisher", "Nothing was found.")
        with closing(sqlite3.connect(home.path / "chorus.db", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            chat.type(TIRED[0])
            chat.await_line(f"{PROMPT} {TIRED[0]}")
            chat.press("enter")
            chat.type("/new")
            chat.await_text("preparing the request … 2 s")
            assert TIRED[1] not in chat.screen_text()
            other.execute("ROLLBACK")
            chat.await_text(TIRED[1])
            chat.await_line(f"{PROMPT} /new")
            other.execute("BEGIN EXCLUSIVE")
            chat.press("enter")
            chat.await_text("/context clear … 1 s")
            other.execute("ROLLBACK")
        chat.await_text(f"{TIRED[1]}\n\n{PROMPT} /new\n--- New conversation ---")
        chat.await_line(PROMPT)
    assert home.said() == [TIRED[0]]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, None])
def test_a_signal_or_a_closed_window_keeps_what_has_arrived(home: Home, number: int | None) -> None:
    with home.chat() as chat:
        chat.say(LONG_MESSAGE)
        chat.await_text(FIRST_WORD, times=2)
        if number is None:
            assert chat.hang_up(seconds=2) == 128 + signal.SIGHUP
        else:
            chat.kill(number, seconds=2)
            assert chat.echoes
    [(content, status)] = home.replies()
    assert (status, FIRST_WORD in content) == ("interrupted", True)
    assert not (home.path / "state" / "chorus.log").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGQUIT, marks=pytest.mark.slow)])
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "sysv_signal"), reason="only glibc can leave it to the system")
def test_the_second_signal_ends_a_chat_that_c_code_holds(home: Home, tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", HELD.format(file=str(tmp_path / "held"))]
    with closing(Terminal(home.environment, command=command)) as chat:
        chat.await_line(PROMPT)
        maps = Path(f"/proc/{chat.pid}/maps")
        chat.until(lambda: "_ctypes" in maps.read_text(), "the way out")
        chat.watch(0.5)
        (tmp_path / "held").touch()
        chat.watch(0.5)
        os.kill(chat.pid, number)
        chat.watch(0.5)
        assert "zombie" not in Path(f"/proc/{chat.pid}/status").read_text()
        os.kill(chat.pid, number)
        assert chat.await_end(seconds=2) == -number


def test_a_signal_while_litellm_is_being_imported_leaves_no_bug_behind(home: Home) -> None:
    provider = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "CHORUS_MODEL": "openai/x"}
    # The test runner may have imported it.
    with home.chat(**provider, **NEW_INTERPRETER, CHORUS_WIRE="off") as chat:
        chat.say("hello")
        chat.await_text("waiting for openai/x")
        chat.kill(signal.SIGTERM)
    assert home.replies() == [("", "interrupted")]
    assert not (home.path / "state" / "chorus.log").exists()


def test_bytes_that_are_no_utf8_are_told_and_never_end_the_chat(home: Home) -> None:
    with home.chat() as chat:
        chat.ask(b"I am a caf\xe9", "not valid text and were replaced")
        assert "Traceback" not in chat.screen_text()
    assert home.said() == ["I am a caf�"]


def test_a_locale_without_utf8_gets_a_plain_prompt(home: Home) -> None:
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    with closing(Terminal({**home.environment, **plain})) as chat:
        chat.await_line("Chorus >")
        chat.say(UNHAPPY[0])
        chat.await_text(UNHAPPY[1])


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
