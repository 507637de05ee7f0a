"""What hides or misleads in a line that is typed: each sign of it is shown by its number."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given

from chorus_cli.core.text.code_points import join_surrogates
from chorus_cli.core.text.safe_text import may_hide, revealed, safe_text
from tests.core.text.hostile_text import ACUTE, ENGLAND, FLAG, ZWJ, ZWNJ, hostile_texts, tags


@pytest.mark.parametrize(
    ("line", "signs"),
    [
        ("a\u202eb", ["a", "<U+202E>", "b"]),
        ("\u2066x\u2069", ["<U+2066>", "x", "<U+2069>"]),
        ("a\u200bb\u00adc", ["a", "<U+200B>", "b", "<U+00AD>", "c"]),
        (f"x{tags('hi')}", ["x", "<U+E0068>", "<U+E0069>"]),
        (ENGLAND, list(ENGLAND)),
        (f"{FLAG}{tags('g')}x", [FLAG, "<U+E0067>", "x"]),
        (f"a{ZWJ}b", ["a", "<U+200D>", "b"]),
        (f"\U0001f468{ZWJ}\u2764\ufe0f{ZWJ}\U0001f525", [*f"\U0001f468{ZWJ}\u2764\ufe0f{ZWJ}\U0001f525"]),
        (f"\U0001f468{ZWJ}x", ["\U0001f468", "<U+200D>", "x"]),
        (f"\U0001f468{ZWJ}{ZWJ}\U0001f525", ["\U0001f468", ZWJ, "<U+200D>", "\U0001f525"]),
        (f"\u0645\u06cc{ZWNJ}\u062e a{ZWNJ}", [*f"\u0645\u06cc{ZWNJ}\u062e a", "<U+200C>"]),
        ("\u2764\ufe0f\ufe0f", ["\u2764", "\ufe0f", "<U+FE0F>"]),
        ("a\u2028b", ["a", "<U+2028>", "b"]),
        ("\uffff\u200b", ["<U+FFFF>", "<U+200B>"]),
        ("\x1b[2J\x9b\x85\t\udcff\u202e", [*"\x1b[2J\x9b\x85\t\udcff", "<U+202E>"]),
        ("<U+202E>\u202e<U+202E>", [*"<U+202E>", "<U+202E>", *"<U+202E>"]),
        (f"a{ACUTE * 31}\u202eb", ["a", *ACUTE * 30, "<U+0301>", "<U+202E>", "b"]),
    ],
)
def test_what_hides_or_misleads_in_a_line_is_revealed(line: str, signs: list[str]) -> None:
    assert revealed(line) == signs
    assert may_hide(line)


@given(hostile_texts.map(join_surrogates))
def test_what_is_revealed_is_what_is_not_shown_as_it_is(text: str) -> None:
    line = re.sub(r"[\x00-\x1f\x7f-\x9f]", "", text)

    def shown(character: str, sign: str) -> str:
        if sign == character:
            return character
        assert sign == f"<U+{ord(character):04X}>"
        return "" if unicodedata.category(character).startswith("M") else safe_text(character)

    signs = revealed(line)
    assert "".join(map(shown, line, signs)) == safe_text(line)
    assert len(signs) == len(line)
    assert may_hide(line) or signs == list(line) or ACUTE in line
