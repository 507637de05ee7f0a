"""What becomes of a message whose turn ends with an error before it is stored, and what a stopped one is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from prompt_toolkit.input import create_pipe_input

from chorus_cli.core import errors
from chorus_cli.core.errors import ChorusError
from chorus_cli.editing.service.unsent import UnsentInput
from chorus_cli.models.rules.events import Asking, Notice, ReasoningDelta, TextDelta, TurnEvent
from chorus_cli.terminal.line_handling import Following
from chorus_cli.terminal.screen.output import Screen
from chorus_cli.threads.service.running_turn import RunningTurn
from tests.terminal.screen.terminal_file import TerminalFile, seen
from tests.world import World

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
