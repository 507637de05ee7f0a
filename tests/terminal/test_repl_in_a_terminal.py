"""The chat as its user has it, its loop, and how it goes on with a damaged text, a closed folder or an error."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import signal
import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest
from prompt_toolkit.input import create_pipe_input

from chorus_cli.core import errors
from chorus_cli.core.errors import ChorusError
from chorus_cli.editing.service.unsent import UnsentInput
from chorus_cli.machine.notifier import Notifier
from chorus_cli.models.rules.events import Asking, Notice, PermissionAsked, ReasoningDelta, TextDelta, TurnEvent
from chorus_cli.terminal.backend import Backend, Privacy
from chorus_cli.terminal.line_handling import Following
from chorus_cli.terminal.prompt.history import InputHistories
from chorus_cli.terminal.repl import Repl
from chorus_cli.terminal.screen.output import Screen
from chorus_cli.terminal.screen.painted_rows import Progress
from chorus_cli.threads.service.running_turn import RunningTurn, Unsent
from tests.loopback_providers import slow
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.ordinary_user import ordinary_program, refused
from tests.terminal.screen.terminal_file import TerminalFile, seen
from tests.world import World

UNHAPPY = ("I am unhappy", "That sounds hard. What has made you unhappy?")
TIRED = ("I am tired", "That sounds hard. What has made you tired?")
HELD = """
import ctypes, os, re, signal, threading, time
from chorus_cli.cli import main
def is_left_to_the_system():
    action = (ctypes.c_int * 64)()
    ctypes.CDLL(None).sigaction({number}, None, action)
    return action[34] & 0x80000000  # sa_flags has SA_RESETHAND
def hold():
    while not is_left_to_the_system():
        time.sleep(0.05)
    open({file!r}, "w").close()
    re.match("(a+)+$", "a" * 64 + "b")
threading.Thread(target=hold, daemon=True).start()
raise SystemExit(main([], os.environ))
"""
"""The program with a thread that makes a file and then holds the interpreter, as C code may."""


def test_what_was_said_and_done_outlives_the_program(home: Home) -> None:
    with home.chat() as chat:
        chat.await_text("so ELIZA (1966) is answering")
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


@pytest.mark.parametrize("number", [signal.SIGTERM, None])
def test_a_signal_or_a_closed_window_keeps_what_has_arrived(home: Home, number: int | None) -> None:
    with slow() as provider, home.chat(**provider.variables) as chat:
        chat.say("mountains")
        chat.await_text("About mountains")
        if number is None:
            assert chat.hang_up(seconds=2) == 128 + signal.SIGHUP
        else:
            chat.kill(number, seconds=2)
            assert chat.echoes
    assert home.replies() == [("About mountains", "interrupted")]
    assert not (home.path / "state" / "chorus.log").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGQUIT, marks=pytest.mark.slow)])
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "sysv_signal"), reason="only glibc can leave it to the system")
def test_the_second_signal_ends_a_chat_that_c_code_holds(home: Home, tmp_path: Path, number: signal.Signals) -> None:
    held = tmp_path / "held"
    command = [sys.executable, "-c", HELD.format(file=str(held), number=int(number))]
    with closing(Terminal(home.environment, command=command)) as chat:
        chat.until(held.exists, "what holds the interpreter")
        chat.watch(0.5)
        os.kill(chat.pid, number)
        # A second signal that comes before the first is delivered is lost.
        chat.until(lambda: not is_caught(chat.pid, number), "the delivery of the first signal")
        chat.watch(0.2)
        assert "zombie" not in Path(f"/proc/{chat.pid}/status").read_text()
        os.kill(chat.pid, number)
        assert chat.await_end(seconds=2) == -number


def is_caught(process_id: int, number: signal.Signals) -> bool:
    """Return whether a process has a handler for a signal."""
    [caught] = re.findall(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{process_id}/status").read_text(), re.MULTILINE)
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_bytes_that_are_no_utf8_are_told_and_never_end_the_chat(home: Home) -> None:
    with home.chat() as chat:
        chat.ask(b"I am a caf\xe9", "Chorus replaced some characters of your message")
        assert "Traceback" not in chat.screen_text()
    assert home.said() == ["I am a caf�"]


def test_a_locale_without_utf8_gets_a_plain_prompt(home: Home) -> None:
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    with closing(Terminal({**home.environment, **plain})) as chat:
        chat.await_line(">")
        chat.say(UNHAPPY[0])
        chat.await_text(UNHAPPY[1])


MESSAGES = "UPDATE messages SET content = CAST(x'f0ff' AS TEXT)"
INPUTS = "UPDATE input_history SET content = CAST(x'f0ff' AS TEXT)"
TITLES = "UPDATE threads SET title = CAST(x'f0ff' AS TEXT)"


@pytest.mark.parametrize(
    "statements",
    [
        ("UPDATE messages SET model = CAST(x'f0ff' AS TEXT)",),
        (MESSAGES, "UPDATE messages SET status = 'streaming' WHERE role = 'assistant'"),
        (MESSAGES, INPUTS, TITLES),
    ],
    ids=["model", "killed", "all"],
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


A_PROMPT = re.compile(f"^{PROMPT}", re.MULTILINE)
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
        assert home.run("ask", "-c", words).code == 0
    return home


def carried_out(home: Home, name: str) -> str:
    """Take a file or folder away while a chat is open, type the commands, and return all that is on the screen then."""
    with closing(Terminal(home.environment, command=ordinary_program())) as chat:
        chat.await_line(PROMPT)
        with refused(home.path / name):
            for number, command in enumerate(COMMANDS, 2):
                chat.say(command)
                chat.until(lambda: len(A_PROMPT.findall(chat.screen_text())) == number, "the prompt")  # noqa: B023
            # While the prompt is not back, Ctrl-C is a signal, which would stop the next command.
            chat.await_idle()
            # A message that was refused is back at the prompt.
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
    told = carried_out(used, name)
    assert "bug" not in told
    assert "silence" not in told
    general = "cannot be used: Permission denied. Give yourself access with: chmod -R u+rwX"
    assert name != "." or general in told


PUBLIC, PRIVATE = Privacy(), Privacy(None, "Nothing is kept.")


@pytest.mark.parametrize(
    ("privacy", "wanted", "way"),
    [(PUBLIC, "osc", "osc"), (PRIVATE, "osc", "bell"), (PRIVATE, "bell", "bell"), (PRIVATE, "off", "off")],
)
def test_no_message_of_a_private_chat_goes_to_the_desktop(privacy: Privacy, wanted: str, way: str) -> None:
    assert privacy.notification(wanted) == way


# It waits for the chat, dies of Ctrl-C, and the shell takes the terminal back.
WRAPPER = """
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
subprocess.Popen([sys.executable, "-m", "chorus_cli"]).wait()
"""


def test_a_chat_whose_shell_has_taken_the_terminal_back_ends(home: Home, tmp_path: Path) -> None:
    wrapper = tmp_path / "wrapper.py"
    wrapper.write_text(WRAPPER)
    runs = home.path / "state" / "run"

    def is_over() -> bool:
        # A shell that waits for a line takes every key before the chat sees it.
        shell.type("sleep 1\n\n")
        return not list(runs.iterdir())

    def answers() -> bool:
        shell.type("echo my terminal a''gain\n")
        return "my terminal again" in shell.screen_text()

    with slow() as provider, home.shell_in_terminal(**provider.variables) as shell:
        shell.say(f"{sys.executable} {wrapper}")
        shell.await_line(PROMPT)
        assert len(list(runs.iterdir())) == 1
        shell.say("mountains")
        shell.await_text("About mountains")
        shell.press("ctrl-c")
        shell.until(lambda: os.tcgetpgrp(shell.descriptor) == shell.pid, "the shell in the foreground")
        # The chat may have erased the shell's prompt, and cannot undo that Enter sends no line feed. If its own prompt
        # came before the shell took the terminal, it ends at a key, of which the shell may get the first ones unseen,
        # or after the terminal's answer to a question of the chat.
        shell.until(answers, "the shell's answer")
        shell.until(is_over, "the end of the chat")
        assert "bug" not in shell.screen_text()
    assert not (home.path / "state" / "chorus.log").exists()
    assert home.replies() == [("About mountains", "interrupted")]


class BrokenHistories(InputHistories):
    """Input histories with a bug."""

    def of(self, slug: str) -> NoReturn:
        raise KeyError(slug)


async def test_a_chat_that_meets_the_same_bug_again_and_again_ends(world: World) -> None:
    bugs: list[Exception] = []

    def report_bug(bug: Exception) -> str:
        bugs.append(bug)
        return "That is a bug."

    screen = Screen(TerminalFile(), {})
    unsent = UnsentInput(world.store, "run", world.clock, lambda _run: False, lambda _record: None)
    histories = BrokenHistories(never, never, never)
    backend = Backend(world.current, unsent, histories, Notifier(), report_bug, lambda: world.services)
    with pytest.raises(KeyError):
        await Repl(backend, screen, lambda: Progress(screen)).run(lambda: None)
    assert len(bugs) == 2


async def never(*_: str) -> NoReturn:
    raise AssertionError


TEXT = "Precious words"

# The services give these a file that the sentence names, or the message is in the log.
ERRORS = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, ChorusError)]

KEPT = (errors.StorageError, errors.ModelError, errors.CommandError)
AT_THE_PROMPT = (errors.DatabaseReadOnlyError, errors.MessageNotStoredError)
REFUSED = (errors.MessageRefusedError,)


def instance(error: type[ChorusError]) -> ChorusError:
    """Return an error of a class, without what its own constructor asks for."""
    made = error.__new__(error)
    Exception.__init__(made, "It could not be done.")
    return made


class Chat:
    """A chat in which ``TEXT`` has left the prompt."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.unsent = UnsentInput(world.store, "run", world.clock, lambda _run: False, lambda _record: None)
        self.unsent.send("chorus", TEXT, "")
        self.file = TerminalFile()
        self.screen = Screen(self.file, {})

    async def follow(self, events: AsyncGenerator[TurnEvent, None]) -> str:
        turn = RunningTurn(Unsent(self.world.current.target(), TEXT), events, lambda _turn: None)
        with create_pipe_input() as keyboard, pytest.raises(ChorusError) as told:
            await Following(self.world.services, self.unsent, self.screen, keyboard).follow(turn)
        await self.unsent.written()
        return str(told.value)

    async def stop(self, *before: TurnEvent) -> str:
        turn = RunningTurn(Unsent(self.world.current.target(), TEXT), endless(*before), lambda _turn: None)
        with create_pipe_input() as keyboard:
            following = Following(self.world.services, self.unsent, self.screen, keyboard).follow(turn)
            task = asyncio.create_task(following)
            await seen(lambda: turn.is_followed and len(turn.events) == len(before))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await self.unsent.written()
        return self.file.window.text()[-1]


async def test_a_stop_at_a_question_brings_back_the_message_that_waits(world: World) -> None:
    chat, replies, target = Chat(world), world.services.replies, world.current.target()
    asked = asyncio.Event()

    async def never_answered(_question: PermissionAsked) -> None:
        asked.set()
        await asyncio.Event().wait()

    question = PermissionAsked("Run it?", lambda *_: None, lambda: True, lambda: False)
    turn = replies._begun(Unsent(target, TEXT), endless(question))
    await replies.send(target, "Then this")
    with create_pipe_input() as keyboard:
        following = Following(world.services, chat.unsent, chat.screen, keyboard, never_answered)
        task = asyncio.create_task(following.follow(turn))
        await asked.wait()
        task.cancel()
        await asyncio.wait({task})
    assert (replies.running, chat.unsent.text) == ((), "Then this")


async def endless(*events: TurnEvent) -> AsyncGenerator[TurnEvent, None]:
    for event in events:
        yield event
    await asyncio.Event().wait()


async def failing(error: ChorusError, *before: TurnEvent) -> AsyncGenerator[TurnEvent, None]:
    for event in before:
        yield event
    raise error


@pytest.mark.parametrize("error", ERRORS)
async def test_it_is_at_the_prompt_unless_it_is_refused_or_kept(world: World, error: type[ChorusError]) -> None:
    chat = Chat(world)
    told = await chat.follow(failing(instance(error)))
    assert told.endswith(("is back at the prompt.", "start it again.")) == issubclass(error, AT_THE_PROMPT)
    if not issubclass(error, REFUSED):
        chat.unsent.give_back()
    is_kept = issubclass(error, KEPT) and not issubclass(error, AT_THE_PROMPT)
    assert chat.unsent.text == ("" if is_kept or issubclass(error, REFUSED) else TEXT)


async def test_once_it_is_stored_no_error_brings_it_back(world: World) -> None:
    chat = Chat(world)
    await chat.follow(failing(errors.JobError("It could not be done."), Notice("Stored.")))
    chat.unsent.give_back()
    assert chat.unsent.text == ""


@pytest.mark.parametrize(
    ("events", "has_words"),
    [
        ([], False),
        ([Asking("x"), Notice("Trying again in 1 s.")], False),
        ([Asking("x"), ReasoningDelta("hm")], False),
        ([Asking("x"), TextDelta(" \n"), TextDelta("")], False),
        ([Asking("x"), TextDelta("\n"), TextDelta("Tea"), TextDelta("\n"), ReasoningDelta("hm")], True),
    ],
    ids=["nothing", "a notice", "a thought", "blanks", "words"],
)
async def test_only_words_of_the_reply_have_arrived(world: World, events: list[TurnEvent], *, has_words: bool) -> None:
    told = await Chat(world).stop(*events)
    assert told.startswith("Stopped. The part that arrived is kept") == has_words
    assert told.startswith("Stopped before the reply began") != has_words
