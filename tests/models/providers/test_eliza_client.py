"""The embedded model streams like any other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from chorus_cli.context.rules.preamble import spoken
from chorus_cli.models.eliza.responder import GREETING, reply
from chorus_cli.models.router import ElizaClient
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest, PromptMessage


class SleepingClock:
    """Notes how long it was asked to wait and waits not at all."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 2, 12, 9, tzinfo=UTC)

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def streamed(*messages: PromptMessage) -> tuple[list[TextDelta], ReplyEnd]:
    events = [
        event async for event in ElizaClient(SleepingClock(), spoken).stream(ModelRequest("chorus/eliza", messages))
    ]
    *deltas, end = events
    assert isinstance(end, ReplyEnd)
    return [delta for delta in deltas if isinstance(delta, TextDelta)], end


async def test_the_words_together_are_the_reply_and_the_end_reports_no_usage() -> None:
    deltas, end = await streamed(PromptMessage("user", "I am unhappy"))
    assert "".join(delta.text for delta in deltas) == reply(["I am unhappy"])
    assert len(deltas) == len(reply(["I am unhappy"]).split())
    assert end == ReplyEnd("stop", {})


async def test_only_the_users_messages_count_in_their_order() -> None:
    deltas, _ = await streamed(
        PromptMessage("system", "my secret"),
        PromptMessage("user", "my kettle leaks"),
        PromptMessage("assistant", "my answer"),
        PromptMessage("tool", "my result", tool_call_id="1"),
        PromptMessage("user", "rain"),
    )
    assert "".join(delta.text for delta in deltas) == reply(["my kettle leaks", "rain"])


async def test_without_a_users_message_it_greets() -> None:
    deltas, _ = await streamed(PromptMessage("system", "Be kind."))
    assert "".join(delta.text for delta in deltas) == GREETING


@pytest.mark.parametrize(
    ("content", "heard"),
    [
        ("[7 h 12 m later: Monday 2 March 2026, 09:00]\n\nI am unhappy", "I am unhappy"),
        ("Active threads:\n  #1: my kettle, step 1, 3 s\n\nI am unhappy", "I am unhappy"),
        ("[2 h later]\nRunning jobs:\n  #1 make (3 s)\nFrom memory:\n#2 TASK: rest\n\nI am unhappy", "I am unhappy"),
        ("Ended jobs:\n  #1 make: done after 3 s. Its output, 2 lines:\n    \n    ok\n\nI am unhappy", "I am unhappy"),
        ("[I am unhappy]", "I am unhappy"),
        ("[I am unhappy]\nand cold", "I am unhappy"),
        ("I am unhappy [sic]\n\nmy kettle", "I am unhappy"),
    ],
)
async def test_a_preamble_is_not_answered(content: str, heard: str) -> None:
    deltas, _ = await streamed(PromptMessage("user", content))
    assert "".join(delta.text for delta in deltas).startswith(reply([heard])[:20])


async def test_between_two_words_it_waits_by_the_clock() -> None:
    clock = SleepingClock()
    request = ModelRequest("chorus/eliza", (PromptMessage("user", "perhaps"),))
    words = [event async for event in ElizaClient(clock, spoken, seconds_per_word=0.5).stream(request)][:-1]
    assert clock.slept == [0.5] * (len(words) - 1)
