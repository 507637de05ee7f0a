"""Turns from before the window that share rare words with a question; the question's preamble repeats them.

Each message is written with its id, so that a purge finds the preambles that repeat the message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from chorus_cli.core.text.phrases import cut_to_characters, shortened
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.messages import Message, words_of
from chorus_cli.log.rules.speakers import Speakers
from chorus_cli.log.rules.stop_words import GREETINGS
from chorus_cli.log.rules.wording import told_by
from chorus_cli.memory.rules.recall import meaningful_words, most_with_a_rare_word

EARLIER_HEADING = "Said earlier:"
MOST_TURNS = 3
_MOST_CHARACTERS, _MOST_BESIDE_CHARACTERS = 800, 400
_MOST_RARE = 1_000
_LINE = re.compile(r"(?m)^#([0-9]+) (.*)$")


def words_that_bring(text: str) -> list[str]:
    """Return the words of a message, as written, that may bring turns from before the window; a greeting has none."""
    words = meaningful_words(text)
    return [] if GREETINGS.issuperset(words) else [*words.values()]


def most_with_a_word_that_brings(messages: int) -> int:
    """Return in how many of ``messages`` a word that brings turns may occur: as many as a rare word, at most 1,000."""
    return min(_MOST_RARE, most_with_a_rare_word(messages))


class EarlierTurn(NamedTuple):
    """The messages of a turn from before the window; ``found`` is the message that the search found."""

    found: Message
    messages: tuple[Message, ...]


def earlier_lines(turns: Iterable[EarlierTurn], names: Speakers) -> str:
    """Return the lines of turns for the preamble of a user message, oldest turn first; empty without turns."""
    in_order = sorted(turns, key=lambda turn: turn.found.id)
    lines = [
        _line(row, names, _MOST_CHARACTERS if row.id == turn.found.id else _MOST_BESIDE_CHARACTERS)
        for turn in in_order
        for row in turn.messages
    ]
    return "\n".join([EARLIER_HEADING, *lines]) if lines else ""


def _line(row: Message, names: Speakers, most_characters: int) -> str:
    words = cut_to_characters(words_of(row), most_characters)
    said = "\n  ".join(words.splitlines())
    return f"#{row.id} ({timestamps.local(row.timestamp):%Y-%m-%d}, {told_by(row.role, names)}): {said}"


def fitting(turns: Iterable[EarlierTurn], names: Speakers, room: int, count: Callable[[str], int]) -> list[EarlierTurn]:
    """Choose at most three turns, in order, whose lines together fit ``room`` tokens; skip a turn that does not fit."""
    chosen: list[EarlierTurn] = []
    for turn in turns:
        if count(earlier_lines([*chosen, turn], names)) <= room:
            chosen.append(turn)
        if len(chosen) == MOST_TURNS:
            break
    return chosen


class EarlierUse(NamedTuple):
    """A message from before the window, the beginning of its text, and the message ``by`` whose preamble repeats it."""

    id: int
    text: str
    by: int

    @property
    def reason(self) -> str:
        """Why the request has the message."""
        return f"its turn shares rare words with message #{self.by}"


def earlier_in(messages: Iterable[Message]) -> list[EarlierUse]:
    """Return the messages from before the window that the preambles of ``messages`` repeat."""
    return [
        EarlierUse(int(line[1]), shortened(line[2]), message.id)
        for message in messages
        for line in _LINE.finditer(_divided(message.preamble)[1])
    ]


def ids_in(preamble: str) -> set[int]:
    """Return the ids of the messages from before the window that a preamble repeats."""
    return {int(line[1]) for line in _LINE.finditer(_divided(preamble)[1])}


def without_earlier(preamble: str) -> str:
    """Return a preamble without its messages from before the window."""
    return _divided(preamble)[0]


def _divided(preamble: str) -> tuple[str, str]:
    """Divide a preamble at the heading; no other part can contain that line, because the parts indent foreign text."""
    before, _, lines = f"\n{preamble}".partition(f"\n{EARLIER_HEADING}\n")
    return before[1:], lines
