r"""Classes of code points for the regular expressions that make text safe to show, and the cleaning of typed input.

A public constant without ``_PATTERN`` in its name is the inside of a character class, so that several can be joined.
The strings have ``\u`` escapes, because many of these characters would be invisible, or worse, in an editor.
"""

from __future__ import annotations

import re

ZERO_WIDTH_NON_JOINER = "\u200c"
ZERO_WIDTH_JOINER = "\u200d"
BLACK_FLAG = "\U0001f3f4"
REPLACEMENT_CHARACTER = "\ufffd"

CONTROLS = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
"""C0 and DEL, except tab, line feed and carriage return."""

C1_CONTROLS = r"\x80-\x84\x86-\x9f"
"""C1 except U+0085, which is a line break. A terminal may obey U+009B as it obeys ``ESC [``."""

UNICODE_LINE_BREAKS = r"\x85\u2028\u2029"

SURROGATES = r"\ud800-\udfff"
HIGH_SURROGATES = r"\ud800-\udbff"

BIDI_CONTROLS = r"\u202a-\u202e\u2066-\u2069"
"""Embeddings, overrides and isolates: they change the order in which text reads."""

NONCHARACTERS = r"\ufdd0-\ufdef\ufff9-\ufffb" + "".join(rf"\U{plane:04x}fffe\U{plane:04x}ffff" for plane in range(17))
"""Code points that are never text, and the marks of interlinear annotations."""

EMOJI_SELECTORS = r"\ufe0e\ufe0f"
"""The two variation selectors that choose between the text and the emoji form of a character."""

TAG_CHARACTERS = r"\U000e0020-\U000e007e"
CANCEL_TAG = r"\U000e007f"

IGNORABLES = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2060-\u2065\u206a-\u206f\u3164"
    r"\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e001f\U000e0080-\U000e0fff"
)
"""Unicode's ``Default_Ignorable_Code_Point``, except the joiners, bidi controls, tags and emoji selectors above."""

JOINING = (
    r"\u0600-\u0dff\u1000-\u109f\u1780-\u18af\u1cd0-\u1cff\ua8e0-\ua8ff\ufb50-\ufdff\ufe70-\ufefc"
    r"\U00011000-\U00011fff"
    r"\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    r"\U0001f000-\U0001faff\U0001fc00-\U0001fffd"
)
"""Characters that a joiner may join: the blocks of Arabic and Indic letters, then the blocks of pictographs."""

PLAIN = (
    r"\n\t -~\xa0-\xac\xae-\u02ff\u0370-\u0482\u048a-\u058f\u05d0-\u05f4\u0620-\u064a\u0660-\u066f\u0671-\u06d5"
    r"\u0904-\u0939\u0e01-\u0e30\u0e3f-\u0e46\u10a0-\u115e\u1161-\u135c\u1e00-\u200a\u2010-\u2027\u202f-\u205f"
    r"\u2070-\u20cf\u2100-\u2cee\u2e80-\u3029\u3030-\u3098\u309b-\u3163\u3165-\ua66e\uac00-\ud7ff\ue000-\ufb06"
    r"\uff01-\uff9f\uffa1-\uffef"
    r"\U0001f000-\U0001f3f3\U0001f3f5-\U0001fbff\U00020000-\U0002fffd\U00030000-\U0003fffd"
)
"""Characters that are shown as they are. For a character in no class, the category is looked up, which is slower."""

FLAG_PATTERN = rf"{BLACK_FLAG}[{TAG_CHARACTERS}]{{2,6}}{CANCEL_TAG}"
"""The flag of a part of a country: a black flag whose code is spelt in tags (Unicode TR51, 1.4.6)."""

UNFINISHED_FLAG_PATTERN = rf"{BLACK_FLAG}[{TAG_CHARACTERS}]{{0,6}}"
_SURROGATE = f"[{SURROGATES}]"


def has_surrogates(text: str) -> bool:
    """Return whether a text contains a surrogate; encoding the text is far faster than searching it."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def paired(text: str) -> str:
    """Join surrogate pairs, whose halves a JSON stream may deliver in two chunks; lone surrogates stay."""
    if not has_surrogates(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def join_surrogates(text: str) -> str:
    """Return ``text`` with surrogate pairs joined and lone surrogates replaced by U+FFFD, so that it can be encoded."""
    return re.sub(_SURROGATE, REPLACEMENT_CHARACTER, paired(text)) if has_surrogates(text) else text


def cleaned_input(text: str) -> tuple[str, bool]:
    """Return typed text as it is stored, and whether a lone surrogate (now U+FFFD) or NUL was replaced."""
    replaced = "\0" in text
    if has_surrogates(text):
        text, alone = re.subn(_SURROGATE, REPLACEMENT_CHARACTER, paired(text))
        replaced = replaced or alone > 0
    return without_nul(text.replace("\r\n", "\n").replace("\r", "\n")), replaced


def without_nul(text: str) -> str:
    """Return a text with the symbol for NUL in place of each NUL, which a database may refuse."""
    return text.replace("\0", "\u2400")


class PairJoiner:
    """Joins surrogate pairs whose halves, written as two JSON escapes, arrive in two chunks."""

    def __init__(self) -> None:
        self._held = ""

    def join(self, piece: str) -> str:
        """Return the half held so far and ``piece``; a high surrogate at the end is held for the next piece."""
        text = self._held + piece
        self._held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return join_surrogates(text[: len(text) - len(self._held)])

    def rest(self) -> str:
        """Return U+FFFD for a half whose other half never came; empty if none is held."""
        return join_surrogates(self._held)
