"""An embedder without a model: the vector of a text counts the things that its words stand for."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from chorus_cli.core.errors import MeaningError
from chorus_cli.meaning.embedding import Embedder, Embedding

THINGS = (("dog", "puppy", "hound"), ("ship", "boat", "vessel"), ("home", "house"), ("bread", "loaf"))


@dataclass
class LikeMinded(Embedder, Embedding):
    """Knows THINGS by all their names. ``read`` are the texts that it got, ``asked`` the questions.

    ``before`` is called before each text is read. If it ``is_broken``, it does not start.
    """

    model: str = "things"
    is_there: bool = True
    is_broken: bool = False
    read: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    starts: int = 0
    before: Callable[[], object] = lambda: None

    def is_installed(self) -> bool:
        return self.is_there

    @asynccontextmanager
    async def started(self, *, in_background: bool) -> AsyncIterator[LikeMinded]:
        del in_background
        self.starts += 1
        if self.is_broken:
            raise MeaningError("It is broken.")
        yield self

    async def vector(self, text: str) -> bytes:
        outcome = self.before()
        if hasattr(outcome, "__await__"):
            await outcome
        self.read.append(text)
        return _vector(text)

    async def nearest(self, question: str, vectors: bytes, most: int) -> list[tuple[int, float]]:
        self.asked.append(question)
        wanted, size = _vector(question), len(THINGS) + 1
        likeness = [_likeness(wanted, vectors[place : place + size]) for place in range(0, len(vectors), size)]
        best = sorted(range(len(likeness)), key=lambda place: -likeness[place])[:most]
        return [(place, likeness[place]) for place in best if likeness[place] > 0]


def _vector(text: str) -> bytes:
    words = re.findall(r"\w+", text.lower())
    return bytes([*(sum(word in thing for word in words) for thing in THINGS), 0])


def _likeness(one: bytes, other: bytes) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0
