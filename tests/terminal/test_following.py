"""What becomes of a message whose turn ends with an error before it is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prompt_toolkit.input import create_pipe_input

from chorus_cli.core import errors
from chorus_cli.core.errors import ChorusError
from chorus_cli.editing.service.unsent import UnsentInput
from chorus_cli.models.rules.events import Notice
from chorus_cli.terminal.following import Following
from chorus_cli.terminal.screen.output import Screen
from chorus_cli.threads.service.running_turn import RunningTurn
from tests.terminal.screen.terminal_file import TerminalFile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from chorus_cli.models.rules.events import TurnEvent
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
        self._screen = Screen(TerminalFile(), {})

    async def follow(self, events: AsyncGenerator[TurnEvent, None]) -> None:
        """Follow a turn to the end that an error makes, and have the text back that the chat puts at the prompt."""
        turn = RunningTurn(self.world.current.target(), TEXT, events, lambda _turn: None)
        with create_pipe_input() as keyboard, pytest.raises(ChorusError):
            await Following(self.world.services, self.unsent, self._screen, keyboard).follow(turn)
        await self.unsent.written()


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
