"""Carries out one command without the chat: the answer goes to stdout, everything else to stderr."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from chorus_cli.catalogue import asked_model, asks_model
from chorus_cli.core.errors import CommandError
from chorus_cli.framework.registry import Bound
from chorus_cli.framework.replies import Inquiry, PrivateChat, Question, Reply, Text, as_json, plain
from chorus_cli.services import Services
from chorus_cli.terminal.drawing import draw
from chorus_cli.terminal.one_shot import advised, refuse_overspent, shown
from chorus_cli.terminal.screen.output import Screen, agreed, can_ask, declined, typed_answer


class Manner(NamedTuple):
    """``yes`` agrees to the first question. Without ``may_ask`` a question is refused. ``again`` says how to retry."""

    as_json: bool = False
    yes: bool = False
    may_ask: bool = False
    again: Callable[[str, int], str] = lambda _command, _thread: ""


async def carry_out(bound: Bound[Services], services: Services, answers: Screen, asides: Screen, manner: Manner) -> int:
    """Carry out a command and show its answer; return the exit code."""
    if asks_model(services, bound.command):
        target = services.current.target()
        await refuse_overspent(services.costs, target.persona, asked_model(bound, target), asides)
    answer = await bound.run(services)
    if isinstance(answer, PrivateChat):
        raise CommandError("/private needs the chat (run: chorus). For one question use: chorus ask --private TEXT")
    if not isinstance(answer, Reply):
        events = advised(answer.target, answer.followed(), partial(manner.again, answer.again))
        return await shown(answer.target, events, services.conversation, answers, asides, as_json=manner.as_json)
    await services.replies.settle()
    if isinstance(answer, Inquiry):
        answer = await _inquired(answer, asides, manner)
    if isinstance(answer, Question) and not manner.may_ask:
        # The caller allows no question, so nothing is done.
        asides.error(plain(answer))
        return 1
    reply = await _decided(answer, answers, asides, manner)
    if reply is None:
        return 1
    is_failure = isinstance(reply, Text) and reply.is_failure
    if manner.as_json:
        answers.write(json.dumps(await as_json(reply), indent=2) + "\n")
    elif is_failure:
        asides.notice(plain(reply))
    else:
        draw(reply, answers)
    return 1 if is_failure else 0


async def _inquired(inquiry: Inquiry, asides: Screen, manner: Manner) -> Reply:
    """Ask for a line and return the reply to it; Ctrl-D and a run that cannot ask have replies of their own."""
    if not manner.may_ask or manner.yes or not can_ask():
        return await inquiry.unasked()
    line = await typed_answer(inquiry.text, asides)
    return inquiry.declined if line is None else await inquiry.answered(line)


async def _decided(answer: Reply, answers: Screen, asides: Screen, manner: Manner) -> Reply | None:
    """Ask each question of a command, and return its final reply; ``None`` if the user declines the first question."""
    is_first = True
    while isinstance(answer, Question):
        told, _, question = answer.text.rpartition("\n")
        is_asked = not manner.yes and (is_first or not manner.as_json)
        if told and (is_asked or not manner.as_json):
            # Before a later question, ``told`` reports an action already done, so it belongs to the answer.
            asides.error(told) if is_first else answers.paragraph(told)
        is_agreed = await agreed(question, asides) if is_asked else is_first
        if not is_agreed and is_first:
            asides.notice(declined(answer.declined.text))
            return None
        answer = await answer.confirmed() if is_agreed else answer.declined
        is_first = False
    return answer
