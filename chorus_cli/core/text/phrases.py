"""Phrases that sentences are made of: numbers of things, references, and texts cut to one line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chorus_cli.core.text.code_points import C1_CONTROLS, CONTROLS

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_LINE = 60
_UNITS = ("kB", "MB", "GB", "TB")
_KILO = 1000


def counted(number: int, thing: str, things: str = "") -> str:
    """Write a number of things: ``1 message``, ``1,200 messages``; ``things`` is an irregular plural."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def shortened(text: str, longest: int = _LONGEST_LINE) -> str:
    """Write the beginning of a text in one line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def enumerated(names: Sequence[str], word: str = "and") -> str:
    """Write a list of names: ``one``, ``one and two``, ``one, two and three``, or with another ``word``."""
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def size_in_words(size_bytes: int) -> str:
    """Write a size with its unit: ``950 bytes``, ``1.2 MB``."""
    if size_bytes < _KILO:
        return counted(size_bytes, "byte")
    unit, size = _UNITS[0], size_bytes / _KILO
    for larger in _UNITS[1:]:
        # Rounded, 999.95 would be written as 1000.0.
        if round(size, 1) < _KILO:
            break
        unit, size = larger, size / _KILO
    return f"{size:.1f} {unit}"


# A carriage return before a line feed is the line break of another system.
_CONTROL = re.compile(rf"[{CONTROLS}{C1_CONTROLS}\x85]|\r(?!\n)")
_LIKE_A_REFERENCE = re.compile(r"&(?=(?:amp;)*#[0-9]{1,3};)")
_REFERENCE = re.compile(r"&(amp;)?((?:amp;)*#([0-9]{1,3});)")


def has_controls(text: str) -> bool:
    """Return whether a text has control characters other than tabs and line breaks."""
    return _CONTROL.search(text) is not None


def with_references(text: str) -> str:
    """Return a text with references in place of its control characters."""
    return _CONTROL.sub(lambda found: f"&#{ord(found[0])};", _LIKE_A_REFERENCE.sub("&amp;", text))


def without_references(text: str) -> str:
    """Return a text that ``with_references`` made as it was."""
    return _REFERENCE.sub(lambda found: f"&{found[2]}" if found[1] else chr(int(found[3])), text)


def dollars(amount: float) -> str:
    """Return an amount in USD with cents, or with three digits where it is less than a cent."""
    return f"${amount:,.2f}" if amount >= 0.01 or not amount else f"${amount:.3g}"  # noqa: PLR2004 - a cent
