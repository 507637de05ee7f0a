"""The cached part of each request, and the effect of caching and folds on the price of a talk.

Played are turns of a talk that is older than its window; jobs have no part in it yet. Each talk is played with a model
that it outgrows, so that it is folded, with the same while nothing can be summarised, with one that takes all of its
window, and with memory items that are remembered, captured, recalled and asked for by a tool; then with thoughts too.
"""

from __future__ import annotations

import asyncio
import functools
import os.path
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import TYPE_CHECKING

from benchmarks.figures import Figure
from benchmarks.played_talk import Sent, Talk, play
from chorus_cli.models.providers.token_counter import VocabularyCounter
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE
from chorus_cli.models.rules.request import PromptMessage, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


NEW_GOAL = 0.1
CALLS_GOAL = 0.1
UNCACHED_GOAL = 0.25
CACHED_GOAL = 1
_CACHED_PRICE = 0.1
_ENDLESS_TOKENS = 1_000_000
_TALKS = (Talk(8, 44_000, 5), Talk(1, 16_000, 2))


@dataclass(frozen=True, slots=True)
class Charge:
    """The tokens of a request, and how many of them began the request of the talk before it.

    ``is_compared`` if nothing but the next turn came between the two: no fold.
    """

    tokens: int
    repeated_tokens: int
    is_compared: bool

    @property
    def new_share(self) -> float:
        """The part that cannot be cached."""
        return 1 - self.repeated_tokens / self.tokens

    @property
    def price(self) -> float:
        """Its price, in prices of an uncached token."""
        return self.tokens - self.repeated_tokens * (1 - _CACHED_PRICE)


def measure(*, quick: bool) -> Iterator[Figure]:
    """Play talks with a window of eight hours and of one; the first alone says most of it."""
    for talk in _TALKS[:1] if quick else _TALKS:
        yield from compare(talk)


def compare(talk: Talk) -> Iterator[Figure]:
    """Yield the new part of a request, with and without folds, and the cost and savings of the folds."""
    count = functools.cache(VocabularyCounter().count)
    sent = asyncio.run(play(talk))
    folded = list(charges(sent, count))
    whole = list(charges(asyncio.run(play(replace(talk, limit_tokens=_ENDLESS_TOKENS))), count))
    unfolded = list(charges(asyncio.run(play(replace(talk, is_summarised=False))), count))
    remembering = list(charges(asyncio.run(play(replace(talk, has_memory=True))), count))
    thinking = {
        span: list(charges(asyncio.run(play(replace(talk, has_memory=True, thoughts=span))), count))
        for span in (Span.TURN, Span.EVER)
    }
    window = f"{talk.hours} h window, {talk.turns} turns"
    yield _new(f"{window}: not in the request before", folded)
    yield _new(f"{window}, never folded: not in the request before", whole)
    yield _new(f"{window}, summariser down: not in the request before", unfolded)
    yield _new(f"{window}, memory and tools: not in the request before", remembering)
    for span, found in thinking.items():
        yield _new(f"{window}, memory, tools, thoughts sent again {span.value}: not in the request before", found)
    calls = sum(each.is_for_summary for each in sent)
    yield _single(f"{window}: summariser's calls", "one a turn", (calls, talk.turns), "calls", CALLS_GOAL)
    price, uncached, cached = (
        total / talk.turns for total in (_price(folded), sum(each.tokens for each in whole), _price(whole))
    )
    yield _single(f"{window}: price of a turn", "never folded or cached", (price, uncached), "tokens", UNCACHED_GOAL)
    yield _single(f"{window}: price of a turn", "never folded, but cached", (price, cached), "tokens", CACHED_GOAL)


def charges(sent: Iterable[Sent], count: Callable[[str], int]) -> Iterator[Charge]:
    """Yield the charge of each request; the first and those for a summary repeat nothing."""
    before: Sequence[PromptMessage] = ()
    is_compared = False
    for each in sent:
        tokens = sum(_tokens(message, count) for message in each.messages)
        if each.is_for_summary:
            yield Charge(tokens, 0, is_compared=False)
        else:
            yield Charge(tokens, repeated_tokens(before, each.messages, count), is_compared)
            before = each.messages
        is_compared = not each.is_for_summary


def repeated_tokens(
    before: Sequence[PromptMessage], after: Sequence[PromptMessage], count: Callable[[str], int]
) -> int:
    """Return how many tokens at the beginning of a request are those of the one before, as a provider reads them."""
    repeated = 0
    for known, message in zip(before, after, strict=False):
        if known == message:
            repeated += _tokens(message, count)
            continue
        if known.role == message.role and known.thoughts == message.thoughts:
            repeated += count(os.path.commonprefix([known.content, message.content]))  # noqa: RUF071 - texts, no paths
        break
    return repeated


def _tokens(message: PromptMessage, count: Callable[[str], int]) -> int:
    thoughts = message.thoughts.text if message.thoughts else ""
    return count(message.content) + count(message.tool_calls or "") + count(thoughts) + TOKENS_PER_MESSAGE


def _price(found: Iterable[Charge]) -> float:
    return sum(charge.price for charge in found)


def _new(name: str, found: Iterable[Charge]) -> Figure:
    """Return the new part of a request that follows no fold."""
    compared = [charge for charge in found if charge.is_compared]
    return Figure(
        name=name,
        value=fmean(charge.tokens - charge.repeated_tokens for charge in compared),
        reference="the whole request",
        reference_value=fmean(charge.tokens for charge in compared),
        unit="tokens",
        pair_ratio=median(charge.new_share for charge in compared),
        goal=NEW_GOAL,
    )


def _single(name: str, reference: str, pair: tuple[float, float], unit: str, goal: float) -> Figure:
    value, reference_value = pair
    return Figure(name, value, reference, reference_value, unit, value / reference_value, goal)
