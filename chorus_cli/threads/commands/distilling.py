"""``/memory distil``: the command that has a model propose facts from a thread or from recent messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, NamedTuple

from chorus_cli.core.text.phrases import counted, dollars
from chorus_cli.framework.arguments import Candidate, Parameter, moment
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Question, Report, Text, data_of
from chorus_cli.log.rules.wording import local
from chorus_cli.memory.commands.items import REVERTS
from chorus_cli.memory.commands.replacing import ANSWERS, facts_table
from chorus_cli.memory.rules.distilling import ANSWER_TOKENS
from chorus_cli.services import Services
from chorus_cli.threads.commands.thread import THREAD
from chorus_cli.turns.service.distilling import Prepared, Stretch, told

GROUP: CommandGroup[Services] = CommandGroup("memory")

_SINCE = re.compile(r"since\s+(.+)", re.IGNORECASE)


class AskedStretch(NamedTuple):
    """The messages to distil: a thread as the user names it, or the messages of all threads since a moment."""

    thread: str = ""
    since: datetime | None = None


def _asked(text: str, now: datetime) -> AskedStretch:
    match = _SINCE.fullmatch(text)
    return AskedStretch(since=moment(match[1], now)) if match else AskedStretch(text)


def _offered(services: Services, text: str) -> Sequence[Candidate]:
    times = (Candidate("since 1 day", "all threads, from then on"), Candidate("since 7d", "all threads, from then on"))
    return [*THREAD.complete(services, text), *times]


STRETCH = Parameter("thread or since T", _asked, "a thread's number or title; since T, such as since 7d", _offered)


@GROUP.command("distil", guesses=("distill", "extract", "learn"))
async def distil(services: Services, stretch: Annotated[AskedStretch | None, STRETCH] = None) -> Question:
    """Have the model propose facts from a conversation.

    You see the price before anything is sent. The facts wait in the inbox, and nothing is remembered before your yes:
    /memory inbox shows them. Without a thread, the messages in context are sent; with since T, those of all threads
    from then on. Messages that were undone, purged or distilled before are not sent. The setting summary_model names
    the model; without it, the model of the conversation is asked.

    Examples:
        /memory distil
        /memory distil #3
        /memory distil since 7d
    """
    prepared = await services.distilling.prepared(services.current.target(), await _stretch(services, stretch))

    async def confirmed() -> Text | Report:
        facts, dropped = await services.distilling.carried_out(prepared)
        data = data_of({"facts": facts, "dropped": dropped, "messages": len(prepared.messages)})
        entries = f"{counted(dropped, 'entry', 'entries')} without a source, or known already"
        left = f" Dropped from the model's answer: {entries}." if dropped else ""
        if not facts:
            read = "/memory distil does not send these messages again."
            return Text(f"The model found no new fact. {read} {REVERTS}{left}", data)
        proposed = f"{counted(len(facts), 'fact')} in the inbox; no request has one before you accept it. {ANSWERS}"
        return Report((facts_table(facts), Text(f"{proposed} {REVERTS}{left}")), data)

    question = f"{told(prepared, _price(prepared))}\nSend them?"
    return Question(question, confirmed, Text("Nothing was sent."), stoppable=True)


async def _stretch(services: Services, asked: AskedStretch | None) -> Stretch:
    target = services.current.target()
    if asked is None:
        return Stretch(f"thread #{target.thread_number}", target.thread_id, in_context=True)
    if asked.since is not None:
        return Stretch(f"all threads since {local(asked.since)}", since=asked.since)
    thread = await services.threads.found(asked.thread)
    return Stretch(f"thread #{thread.number}", thread.id)


def _price(prepared: Prepared) -> str:
    if prepared.cost is None:
        return "its price is not known"
    return f"about {dollars(prepared.cost)} with an answer of {ANSWER_TOKENS:,} tokens"
