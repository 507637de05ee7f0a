"""The results of a search: messages with their neighbours, and titles of threads; and the fusion of rankings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chorus_cli.core.text.phrases import shortened
from chorus_cli.log.rules.messages import Message, words_of
from chorus_cli.log.rules.operations import NO_NUMBERS, Numbers
from chorus_cli.log.rules.threads import TitledThread
from chorus_cli.log.rules.wording import message_as_json

BY_WORDS, BY_MEANING = "words", "meaning"
LONGEST_BESIDE = 160  # characters of a message beside one that was found
_SMOOTHING = 5  # the larger, the less the first places count; this value found most in the dialogues of LoCoMo


def fused(rankings: Iterable[Sequence[int]]) -> list[int]:
    """Join rankings by reciprocal rank fusion (Cormack et al., 2009); best ids first, equal ones newest first."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, 1):
            scores[id_] = scores.get(id_, 0) + 1 / (_SMOOTHING + rank)
    return sorted(scores, key=lambda id_: (scores[id_], id_), reverse=True)


class Match(NamedTuple):
    """A message that was found, and an excerpt with the words marked.

    ``numbers`` has the numbers of the persona's threads and operations. ``is_thought`` says that the excerpt is from
    the thoughts before the message. ``found_by`` says whether the message was found by its words, its meaning, or both.
    ``taken_back`` has the marks of an undone or replaced message. ``before`` and ``after`` are its neighbours in the
    thread.
    """

    message: Message
    excerpt: str
    is_thought: bool = False
    found_by: tuple[str, ...] = (BY_WORDS,)
    taken_back: str = ""
    numbers: Numbers = NO_NUMBERS
    before: Message | None = None
    after: Message | None = None

    @property
    def thread_number(self) -> int:
        """The number of the message's thread."""
        return self.numbers.thread(self.message.thread_id)

    def as_json(self) -> dict[str, object]:
        """Return the message as JSON, with the facts of the search."""
        beside = {"before": self.before, "after": self.after}
        return (
            message_as_json(self.message, self.numbers)
            | {"taken_back": bool(self.taken_back), "excerpt": self.excerpt, "in_thoughts": self.is_thought}
            | {"found_by": self.found_by}
            | {name: _beside(message) if message else None for name, message in beside.items()}
        )


def _beside(message: Message) -> dict[str, object]:
    return {"id": message.id, "role": message.role, "excerpt": shortened(words_of(message), LONGEST_BESIDE)}


class Passage(NamedTuple):
    """Messages of a thread by their ids, and excerpts of those that were found."""

    thread_number: int
    messages: dict[int, Message]
    excerpts: dict[int, str]


def passages(matches: Sequence[Match]) -> list[Passage]:
    """Join the messages that were found and their neighbours into passages, those with the best matches first."""
    found: list[Passage] = []
    for match in matches:
        around = {each.id: each for each in (match.before, match.message, match.after) if each is not None}
        joined = Passage(match.thread_number, around, {match.message.id: match.excerpt})
        met = [each for each in found if not each.messages.keys().isdisjoint(around)]
        place = found.index(met[0]) if met else len(found)
        for each in met:
            joined.messages.update(each.messages)
            joined.excerpts.update(each.excerpts)
        found = [each for each in found if each not in met]
        found.insert(place, joined)
    return found


class Findings(NamedTuple):
    """The best messages and ``threads``; ``more`` messages were left out, perhaps even more if ``more_is_least``."""

    matches: tuple[Match, ...]
    more: int
    more_is_least: bool = False
    threads: tuple[TitledThread, ...] = ()
    more_threads: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether neither a message nor a title was found."""
        return not self.matches and not self.threads

    def as_json(self) -> dict[str, object]:
        """Return the findings as ``--json`` prints them."""
        return {
            "threads": [
                {"persona": each.persona, "thread": each.number, "closed": each.is_closed, "title": each.excerpt}
                for each in self.threads
            ],
            "more_threads": self.more_threads,
            "results": [match.as_json() for match in self.matches],
            "more": self.more,
            "more_is_least": self.more_is_least,
        }
