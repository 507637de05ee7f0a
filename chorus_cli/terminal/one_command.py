"""One command without the chat: its answer to stdout, everything else to stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.catalogue import asks_model
from chorus_cli.core.errors import CommandError
from chorus_cli.framework.command_line import resolve
from chorus_cli.framework.replies import PrivateChat, Question, Reply, plain
from chorus_cli.terminal.one_shot import advised, refuse_overspent, shown
from chorus_cli.terminal.screen.drawing import draw

if TYPE_CHECKING:
    from chorus_cli.services import Services
    from chorus_cli.terminal.screen.output import Screen


async def carry_out(line: str, services: Services, answers: Screen, asides: Screen, again: str = "") -> int:
    """Carry out a command and show its answer; return the exit code.

    ``again`` tells the user how to get a reply if the command asks for one and no word of it comes.
    """
    await services.current.settle()
    bound = resolve(services.registry, line, services.clock.now())
    if asks_model(services, bound.command):
        await refuse_overspent(services.costs, services.current.target(), asides)
    answer = await bound.run(services)
    if isinstance(answer, PrivateChat):
        raise CommandError("/private needs the chat (run: chorus). For one question use: chorus ask --private TEXT")
    if not isinstance(answer, Reply):
        at_rest = services.conversation.tool_loop.context.store.at_rest
        return await shown(answer.target, advised(answer.followed(), again), answers, asides, at_rest)
    await services.replies.settle()
    if isinstance(answer, Question):
        # There is no prompt to ask at, so nothing is done.
        asides.error(plain(answer))
        return 1
    draw(answer, answers)
    return 0
