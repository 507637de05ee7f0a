"""Pieces of malicious or only unusual texts, with their safe forms."""

from __future__ import annotations

from hypothesis import strategies as st

from chorus_cli.core.text.safe_text import SafeTextStream

ESCAPE = "\x1b"
ZWJ = "\u200d"
ZWNJ = "\u200c"
FLAG = "\U0001f3f4"
CANCEL = "\U000e007f"
ACUTE = "\u0301"


def tags(text: str) -> str:
    return "".join(chr(0xE0000 + ord(character)) for character in text)


ENGLAND = FLAG + tags("gbeng") + CANCEL

SPECIAL_PIECES = [
    *"\r\n\t\x00\x07\x1b\x7f\x85\x9b\u2028\u202e\u2066\ufdd0\ufffb\uffff",
    *"\ud83d\ude00\udb40\udc67\udc7f\ud83c\udff4",
    *"\u200b\u200e\u00ad\u2060\u3164\ufeff\U000e0001\U000e0100\ufe00\ufe0e\ufe0f",
    *f"{ZWJ}{ZWNJ}{FLAG}{CANCEL}{ACUTE}",
    *"\U0001f468\u2764\U0001f525\u0628\u06cc\u064e\u0915\u094d\u0937 a\u00e9[",
    tags("g"),
    tags("gbeng"),
    ENGLAND,
    ACUTE * 29,
    ACUTE * 31,
    "\x1b[31m",
    "\r\n",
]
any_character = st.characters(exclude_categories=())
hostile_texts = st.lists(st.one_of(st.sampled_from(SPECIAL_PIECES), any_character), max_size=40).map("".join)


def fed(chunks: list[str]) -> tuple[str, SafeTextStream]:
    stream = SafeTextStream()
    shown = "".join([stream.feed(chunk) for chunk in chunks])
    return shown + stream.close(), stream


def hidden_in(text: str) -> int:
    return fed([text])[1].hidden_count
