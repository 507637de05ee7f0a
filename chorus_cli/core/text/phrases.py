"""Parts of sentences: numbers of things, lists, sizes, prices, and texts that are shortened, quoted or fenced."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from chorus_cli.core.text.code_points import C1_CONTROLS, CONTROLS

_LONGEST_LINE = 60
_UNITS = ("kB", "MB", "GB", "TB")
_KILO = 1000
_CENT = 0.01


def counted(number: int, thing: str, things: str = "") -> str:
    """Write a number of things: ``1 message``, ``1,200 messages``; ``things`` is an irregular plural."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def shortened(text: str, longest: int = _LONGEST_LINE) -> str:
    """Write the beginning of a text in one line of at most ``longest`` characters; ``…`` ends a text that was cut."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def enumerated(names: Sequence[str], word: str = "and") -> str:
    """Write a list of names: ``one``, ``one and two``, ``one, two and three``, or with another ``word``."""
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def first_few(names: Sequence[object], most: int = 5) -> str:
    """Write the first ``most`` names, or paths, of a list, and how many more there are."""
    more = [f"{len(names) - most:,} more"] if len(names) > most else []
    return enumerated([*map(str, names[:most]), *more])


def size_in_words(size_bytes: int) -> str:
    """Write a size with its unit: ``950 bytes``, ``1.2 MB``."""
    if size_bytes < _KILO:
        return counted(size_bytes, "byte")
    unit, size = _UNITS[0], size_bytes / _KILO
    for larger in _UNITS[1:]:
        # Without rounding here, 999.95 would be written as 1000.0.
        if round(size, 1) < _KILO:
            break
        unit, size = larger, size / _KILO
    return f"{size:.1f} {unit}"


# A carriage return before a line feed is a line break, as Windows writes it.
_CONTROL = rf"[{CONTROLS}{C1_CONTROLS}\x85]|\r(?!\n)"
_LIKE_A_REFERENCE = r"&(?=(?:amp;)*#[0-9]{1,3};)"
_REFERENCE = r"&(amp;)?((?:amp;)*#([0-9]{1,3});)"


def has_controls(text: str) -> bool:
    """Return whether a text has control characters other than tab, LF and CR LF."""
    return re.search(_CONTROL, text) is not None


def with_references(text: str) -> str:
    """Return a text with a reference such as ``&#27;`` in place of each control character."""
    return re.sub(_CONTROL, lambda found: f"&#{ord(found[0])};", re.sub(_LIKE_A_REFERENCE, "&amp;", text))


def without_references(text: str) -> str:
    """Undo `with_references`."""
    return re.sub(_REFERENCE, lambda found: f"&{found[2]}" if found[1] else chr(int(found[3])), text)


def dollars(amount: float) -> str:
    """Return an amount of USD with cents, or with three significant digits if it is less than a cent."""
    return f"${amount:,.2f}" if amount >= _CENT or not amount else f"${amount:.3g}"


_SHRINKING = 0.9
_LONGEST_QUOTATION = 40


def cut_in_the_middle(text: str, text_tokens: int, allowed_tokens: int, count: Callable[[str], int]) -> str:
    """Cut the middle out of a text, so that about ``allowed_tokens`` stay, and write there how many tokens are gone."""
    if text_tokens <= allowed_tokens:
        return text
    kept = len(text) * allowed_tokens // max(1, text_tokens)
    while True:
        head, tail = text[: (kept + 1) // 2], text[len(text) - kept // 2 :]
        left_out = max(1, text_tokens - count(head) - count(tail))
        shortened = f"{head}\n[… {left_out:,} tokens left out here …]\n{tail}"
        if not kept or count(shortened) <= allowed_tokens:
            return shortened
        kept = int(kept * _SHRINKING)


def cut_to_characters(text: str, most: int) -> str:
    """Cut the middle out of a text, so that ``most`` characters stay, and write there how many were left out."""
    if len(text) <= most:
        return text
    head, tail = text[: (most + 1) // 2], text[len(text) - most // 2 :]
    return f"{head}\n[… {len(text) - most:,} characters left out here …]\n{tail}"


def quoted(text: str) -> str:
    """Return typed text in quotes, for a sentence: cut to about forty characters, with unprintable ones escaped."""
    quotation = repr(text)
    return quotation if len(quotation) <= _LONGEST_QUOTATION else f"{quotation[:_LONGEST_QUOTATION]}…{quotation[0]}"


_SHORTEST_FENCE = 3
_TICKS = "`+"


def fenced(text: str, language: str = "") -> str:
    """Return a Markdown code block, with a fence that is longer than any run of backticks in the text."""
    longest = max(map(len, re.findall(_TICKS, text)), default=0)
    fence = "`" * max(_SHORTEST_FENCE, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


# A line such as ```code``` has no block: after a fence of backticks, there is no other backtick.
_FENCE = re.compile(r"^ {0,3}(`{3,}(?=[^`\n]*$)|~{3,})(.*)$", re.MULTILINE)


def open_fence(text: str) -> str:
    """Return the line that begins the block of code in which a text ends; empty if it ends in none."""
    fence = language = ""
    for signs, rest in _FENCE.findall(text):
        if not fence:
            fence, language = signs, rest
        elif signs.startswith(fence) and not rest.strip():
            fence = language = ""
    return f"{fence}{language}"


def quotation(text: str) -> str:
    """Return a text as a quotation in Markdown; an empty line becomes ``>``, because it would end the quotation."""
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def without_quotation(block: str) -> str:
    """Undo `quotation`."""
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in block.split("\n"))
