"""The benchmarks of the prompt: what a provider's cache has of it, and what it takes to assemble."""

from __future__ import annotations

from itertools import pairwise

import pytest

from benchmarks import assembly, cache
from benchmarks.cache import Charge, charges, repeated_tokens
from benchmarks.played_talk import Sent, Talk, play
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE
from chorus_cli.models.rules.request import PromptMessage

SYSTEM = PromptMessage("system", "Short")
HELLO = PromptMessage("user", "Hello")
HELP = PromptMessage("user", "Help")
REPLY = PromptMessage("assistant", "Hello")
WHOLE = 5 + TOKENS_PER_MESSAGE


@pytest.mark.parametrize(
    ("before", "after", "repeated"),
    [
        ((), (SYSTEM, HELLO), 0),
        ((SYSTEM, HELLO), (SYSTEM, HELLO, REPLY, HELP), 2 * WHOLE),
        ((SYSTEM, HELLO, REPLY), (SYSTEM, HELP, REPLY), WHOLE + len("Hel")),
        ((SYSTEM, HELLO, HELP), (SYSTEM, REPLY, HELP), WHOLE),
        ((SYSTEM, HELLO), (HELLO, SYSTEM), 0),
    ],
)
def test_what_repeats_ends_with_the_first_letter_that_differs(
    before: tuple[PromptMessage, ...], after: tuple[PromptMessage, ...], repeated: int
) -> None:
    assert repeated_tokens(before, after, len) == repeated


def test_a_request_is_compared_unless_it_is_the_first_or_follows_a_fold() -> None:
    first, second, for_summary = Sent((SYSTEM,)), Sent((SYSTEM, HELLO)), Sent((HELP,), is_for_summary=True)
    talk = [first, second, for_summary, second, second]
    assert list(charges(talk, len)) == [
        Charge(WHOLE, 0, is_compared=False),
        Charge(2 * WHOLE, WHOLE, is_compared=True),
        Charge(len("Help") + TOKENS_PER_MESSAGE, 0, is_compared=False),
        Charge(2 * WHOLE, 2 * WHOLE, is_compared=False),
        Charge(2 * WHOLE, 2 * WHOLE, is_compared=True),
    ]


def test_what_is_in_the_cache_costs_a_tenth() -> None:
    assert Charge(110, 100, is_compared=True).price == pytest.approx(20)


async def test_turns_that_grow_too_old_leave_the_beginning_of_the_next_requests_as_it_is() -> None:
    sent = await play(Talk(hours=1, limit_tokens=100_000, minutes_between_old_turns=1, turns=4))
    assert len(sent) == 4
    assert all(after.messages[: len(before.messages)] == before.messages for before, after in pairwise(sent))


async def test_a_talk_with_memory_remembers_captures_and_calls_a_tool() -> None:
    talk = Talk(hours=8, limit_tokens=100_000, minutes_between_old_turns=60, turns=10, has_memory=True)
    sent = await play(talk)
    last = sent[-1].messages
    assert "Memory:\n#1 TASK: " in last[0].content
    assert any(message.content.startswith("From memory:\n#") for message in last if message.role == "user")
    assert any(message.tool_calls for message in last)
    assert all(after.messages[: len(before.messages)] == before.messages for before, after in pairwise(sent))


def test_a_talk_that_is_folded_is_measured_against_one_that_is_not() -> None:
    found = list(cache.compare(Talk(hours=1, limit_tokens=2_000, minutes_between_old_turns=20, turns=8)))
    window = "1 h window, 8 turns"
    assert [shown.name for shown in found] == [
        f"{window}: not in the request before",
        f"{window}, never folded: not in the request before",
        f"{window}, summariser down: not in the request before",
        f"{window}, memory and tools: not in the request before",
        f"{window}, memory, tools, thoughts sent again within the turn: not in the request before",
        f"{window}, memory, tools, thoughts sent again for ever: not in the request before",
        f"{window}: summariser's calls",
        f"{window}: price of a turn",
        f"{window}: price of a turn",
    ]
    assert all(shown.value > 0 for shown in found)
    new, *_, uncached, cached = found
    assert new.ratio < 1
    assert uncached.reference_value > cached.reference_value


def test_assembling_a_prompt_is_measured_against_counting_it() -> None:
    (found,) = assembly.compare(assembly.Sizes(tokens=300, words=[((5, 10), (10, 20))], rounds=1))
    assert found.name.startswith("assembling 300 tokens in ")
    assert found.ratio > 0
