"""Surrogates: halves of characters, which arrive alone where a stream was cut or a byte was not UTF-8."""

from __future__ import annotations

import re

from chorus_cli.core.text.code_points import REPLACEMENT_CHARACTER, SURROGATES

_SURROGATE = re.compile(f"[{SURROGATES}]")


def has_surrogates(text: str) -> bool:
    """Return whether a text contains a surrogate; encoding megabytes takes milliseconds, a search far longer."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def paired(text: str) -> str:
    """Join surrogate pairs, which a JSON stream cut between two chunks leaves apart; leave lone ones alone."""
    if not has_surrogates(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def join_surrogates(text: str) -> str:
    """Return ``text`` with surrogate pairs joined and lone surrogates replaced by U+FFFD, so that it can be encoded."""
    whole = paired(text)
    return _SURROGATE.sub(REPLACEMENT_CHARACTER, whole) if has_surrogates(whole) else whole


def cleaned_input(text: str) -> tuple[str, bool]:
    """Return typed or pasted text in the form in which it is stored, and whether characters had to be replaced.

    Line endings become LF and surrogate pairs are joined, which does not count as a replacement. A lone surrogate (a
    byte that was not UTF-8) becomes U+FFFD and NUL its picture, which does.
    """
    whole = paired(text)
    replaced = "\0" in whole or has_surrogates(whole)
    whole_lines = join_surrogates(whole).replace("\r\n", "\n").replace("\r", "\n")
    return whole_lines.replace("\0", "\u2400"), replaced


class PairJoiner:
    """Joins surrogate pairs, written as two JSON escapes, that are split between two chunks."""

    def __init__(self) -> None:
        self._held = ""

    def join(self, piece: str) -> str:
        """Return the held half and ``piece``, without a high surrogate at the end, which is held."""
        text = self._held + piece
        self._held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return join_surrogates(text[: len(text) - len(self._held)])

    def rest(self) -> str:
        """Return the half that is still held, replaced because the other never came."""
        return join_surrogates(self._held)
