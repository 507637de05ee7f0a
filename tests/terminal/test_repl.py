"""The loop of the chat, private chats, a lost terminal, and what becomes of a message whose turn ends with an error."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import NoReturn

import pytest
from prompt_toolkit.input import create_pipe_input

from chorus_cli.core import errors
from chorus_cli.core.errors import ChorusError
from chorus_cli.editing.service.unsent import UnsentInput
from chorus_cli.machine.notifier import Notifier
from chorus_cli.models.rules.events import Asking, Notice, ReasoningDelta, TextDelta, TurnEvent
from chorus_cli.terminal.line_handling import Following
from chorus_cli.terminal.prompt.history import InputHistories
from chorus_cli.terminal.repl import Backend, Privacy, Repl
from chorus_cli.terminal.screen.output import Screen
from chorus_cli.terminal.screen.painted_rows import Progress
from chorus_cli.threads.service.running_turn import RunningTurn
from tests.terminal.driver import FIRST_WORD, LONG_MESSAGE, PROMPT, Home
from tests.terminal.screen.terminal_file import TerminalFile, seen
from tests.world import World

PUBLIC, PRIVATE = Privacy(), Privacy(None, "Nothing is kept.")


@pytest.mark.parametrize(
    ("privacy", "wanted", "way"),
    [(PUBLIC, "osc", "osc"), (PRIVATE, "osc", "bell"), (PRIVATE, "bell", "bell"), (PRIVATE, "off", "off")],
)
def test_no_message_of_a_private_chat_goes_to_the_desktop(privacy: Privacy, wanted: str, way: str) -> None:
    assert privacy.notification(wanted) == way


def test_only_a_private_chat_has_a_mark() -> None:
    assert (PUBLIC.mark, PRIVATE.mark) == ((), ("private", "nothing is kept"))


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
    with home.shell_in_terminal() as shell:
        shell.say(f"{sys.executable} {wrapper}")
        shell.await_line(PROMPT)
        assert len(list(runs.iterdir())) == 1
        shell.say(LONG_MESSAGE)
        shell.await_text(FIRST_WORD, times=2)
        shell.press("ctrl-c")
        shell.until(lambda: os.tcgetpgrp(shell.descriptor) == shell.pid, "the shell in the foreground")
        # The chat may have erased the shell's prompt, and cannot undo that Enter sends no line feed. If its own prompt
        # came before the shell took the terminal, it ends at the next key, which the shell gets.
        shell.type("echo my terminal a''gain\n")
        shell.await_text("my terminal again")
        shell.until(lambda: not list(runs.iterdir()), "the end of the chat")
        assert "bug" not in shell.screen_text()
    assert not (home.path / "state" / "chorus.log").exists()
    assert [status for _, status in home.replies()] == ["interrupted"]


def test_a_user_may_be_refused_as_often_as_they_like(home: Home) -> None:
    with home.chat() as chat:
        for number in range(1, 5):
            chat.ask("/xyzzy", "There is no command '/xyzzy'.", times=number)


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
        self._screen = Screen(self.file, {})

    async def follow(self, events: AsyncGenerator[TurnEvent, None]) -> None:
        turn = RunningTurn(self.world.current.target(), TEXT, events, lambda _turn: None)
        with create_pipe_input() as keyboard, pytest.raises(ChorusError):
            await Following(self.world.services, self.unsent, self._screen, keyboard).follow(turn)
        await self.unsent.written()

    async def stop(self, *before: TurnEvent) -> str:
        turn = RunningTurn(self.world.current.target(), TEXT, endless(*before), lambda _turn: None)
        with create_pipe_input() as keyboard:
            following = Following(self.world.services, self.unsent, self._screen, keyboard).follow(turn)
            task = asyncio.create_task(following)
            await seen(lambda: turn.is_followed and len(turn.events) == len(before))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await self.unsent.written()
        return self.file.window.text()[-1]


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
    await chat.follow(failing(instance(error)))
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
