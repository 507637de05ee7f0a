"""Texts as a full-text index contains them.

In scripts without blanks (Chinese, Japanese, Thai, …), SQLite takes a whole sentence for one word. An index and search
terms therefore contain each character of such a script as a word, and a run of characters is searched as a phrase. So
any part of a sentence is found. Korean is treated the same way, because particles are attached to its words.
"""

from __future__ import annotations

import re

APART = "\x1f"
"""The separator before and after each character that is a word of its own."""

_WITHOUT_BLANKS = (
    "(["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u1100-\u11ff\uac00-\ud7ff"  # Hangul
    "\u3005-\u3007\u3040-\u318f\u31a0-\u31ff\uff66-\uffdc"  # kana, bopomofo, Hangul jamo, half-width forms
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "])"
)


def set_apart(text: str) -> str:
    """Return a text as the index contains it, with every character of a script without blanks set apart as a word."""
    return text if text.isascii() else re.sub(_WITHOUT_BLANKS, rf"{APART}\1{APART}", text)
