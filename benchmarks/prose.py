"""Texts that are to a tokenizer what people and models say, always the same for the same chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

_WORDS = (
    "the of and to a in that it is was for on as with they be at one have this from by we not but what all were when "
    "your can said there use an each which she do how their if will up other about out many then them these so some "
    "her would make like him into time has look two more write go see number no way could people my than first water "
    "been call who oil its now find long down day did get come made may part bridge journey council northern harbour "
    "decided afterwards nevertheless miller's provisions account weather evening's reckoning carefully thirteen "
    "yesterday's argument remembered impossible ferryman"
)
_SENTENCE_WORDS = 12


def prose(chance: Random, words: int) -> str:
    """Return so many words in sentences."""
    drawn = chance.choices(_WORDS.split(), k=words)
    starts = range(0, words, _SENTENCE_WORDS)
    return " ".join(" ".join(drawn[start : start + _SENTENCE_WORDS]).capitalize() + "." for start in starts)
