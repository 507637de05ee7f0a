"""One turn without the chat: the answer to stdout, everything else to stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from chorus_cli.commands.framework.command_line import resolve
from chorus_cli.commands.framework.replies import Question, Reply, plain
from chorus_cli.core.errors import MessageRefusedError, SettingsError
from chorus_cli.terminal.prompt.keyboard import suspendable
from chorus_cli.terminal.reply.stream import show_events
from chorus_cli.terminal.screen.drawing import draw

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from chorus_cli.commands.framework.services import Services
    from chorus_cli.core.models.events import TurnEvent
    from chorus_cli.core.personas.persona import Persona
    from chorus_cli.terminal.screen.output import Screen


async def carry_out(line: str, services: Services, answers: Screen, asides: Screen) -> int:
    """Carry out a command and show what it answers; return the exit code."""
    await services.focus.settle()
    answer = await resolve(services.registry, line, services.machine.clock.now()).run(services)
    if not isinstance(answer, Reply):
        _refuse_unreadable(services.focus.target().persona)
        return await _shown(answer.followed(), answers, asides)
    await services.replies.settle()
    if isinstance(answer, Question):
        # There is no prompt to ask at, so nothing is done.
        asides.error(plain(answer))
        return 1
    draw(answer, answers)
    return 0


async def ask(text: str, services: Services, answers: Screen, asides: Screen) -> int:
    """Have a message answered and show the reply as it comes; return the exit code."""
    target = services.focus.target()
    for warning in target.persona.warnings:
        asides.notice(warning)
    _refuse_unreadable(target.persona)
    return await _shown(services.conversation.answer(target, text), answers, asides)


async def _shown(events: AsyncGenerator[TurnEvent, None], answers: Screen, asides: Screen) -> int:
    with suspendable(answers.take_down):
        done = await show_events(events, answers, asides)
    return 0 if done is not None and done.error is None else 1


def _refuse_unreadable(persona: Persona) -> None:
    """Refuse to send a request without its unreadable prompt: the user would see the warning too late."""
    if persona.unreadable:
        raise SettingsError(
            f"Nothing was sent: settings of {persona.name} cannot be read, so that its prompt may be missing. "
            f"Mend {' and '.join(persona.unreadable)} and ask again."
        )


def standard_input() -> str:
    """Return the piped input; empty if stdin is a terminal or closed.

    Raises:
        MessageRefusedError: it is not UTF-8.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MessageRefusedError(
            f"Standard input is not UTF-8 (byte {error.start + 1} is 0x{data[error.start]:02x}). Nothing was sent; "
            "convert it first, for example with iconv."
        ) from error
