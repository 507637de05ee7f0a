"""Numbers that are written as words, put into digits: ``twenty-four``, ``a couple of``, ``2½``, ``an hour and a half``.

A number word counts only before another word, because alone it has no unit that would tell what it counts.
"""

from __future__ import annotations

import re

_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBER_WORDS = (*_ONES, *_TEENS, *_TENS)

_VALUES = {
    **{word: number for number, word in enumerate((*_ONES, *_TEENS), 1)},
    **{word: 10 * number for number, word in enumerate(_TENS, 2)},
    "couple": 2,
    "few": 3,
}
_DECIMALS = {"¼": ".25", "½": ".5", "¾": ".75"}
_UNITS = r"weeks?|days?|hours?|hrs?|minutes?|mins?"

_FRACTION = re.compile(r"(?<![\d.,])(\d*) ?([¼½¾])(?: an?(?= ))?")
_NUMBER_WORD = re.compile(
    rf"(?<![^\W_])(?:(?P<tens>{'|'.join(_TENS)})[- ](?P<ones>{'|'.join(_ONES)})|(?P<word>{'|'.join(NUMBER_WORDS)})"
    r"|(?:a )?(?:(?P<couple>couple)(?: of)?|(?P<few>few)))(?= [^\W\d_])"
)
_AND_A_HALF = re.compile(r"(?<![\d.,])(\d+) and a half(?= [^\W\d_])")
_UNIT_AND_A_HALF = re.compile(rf"(?<![^\W_])(?:(?P<number>\d+|an?) )?(?P<unit>{_UNITS}) and (?:a )?half(?![^\s,])")


def in_digits(words: str) -> str:
    """Return casefolded, singly spaced words with digits for the numbers among them; a few are three, a couple two."""
    words = _FRACTION.sub(lambda found: f"{found[1] or 0}{_DECIMALS[found[2]]}", words)
    words = _NUMBER_WORD.sub(_value, words)
    words = _AND_A_HALF.sub(r"\1.5", words)
    return _UNIT_AND_A_HALF.sub(_unit_and_a_half, words)


def _value(found: re.Match[str]) -> str:
    return str(sum(_VALUES[word] for word in found.groups() if word))


def _unit_and_a_half(found: re.Match[str]) -> str:
    number = found["number"]
    return f"{number if number and number.isdecimal() else 1}.5 {found['unit']}"
