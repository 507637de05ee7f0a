"""Replies that are made to hold up a terminal: signs it obeys, nesting without end, and the worst of each construct."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

_REPEATED = dict(
    [
        *(("quotes", ">"), ("quotes with blanks", "> "), ("lines of quotes", "> > > q\n")),
        *(("items in a row", "- "), ("items", "- a\n"), ("numbers", "1. a\n"), ("loose items", "- a\n\n")),
        *(("deep items", "- - - - - a\n"), ("quotes in items", "> - > 1. "), ("brackets", "[")),
        *(("parentheses", "("), ("begun links", "[a]("), ("begun images", "!["), ("closed brackets", "[]")),
        *(("links in links", "[a[b"), ("links", "[a](b) "), ("titles without an end", '[a](b "')),
        *(("emphasis", "*_"), ("stars", "*"), ("stars in words", "a**b"), ("strikes", "a~~b~")),
        *(("backticks", "` "), ("fences", "```\n"), ("closed fences", "```\na\n```\n"), ("entities", "&amp;")),
        *(("entities of signs", "&#x202e;"), ("ampersands", "&"), ("tags", "<b>"), ("begun tags", "<a ")),
        *(("begun attributes", '<a b="c" '), ("begun comments", "<!--"), ("cdata", "<![CDATA[")),
        *(("divisions", "<div>\n"), ("addresses", "<http://a/"), ("bars", "|"), ("rows", "|a|b|\n|-|-|\n")),
        *(("definitions", "[a]: /b\n"), ("uses", "[a] "), ("headings", "# a\n"), ("underlined headings", "a\n=\n")),
        *(("rules", "---\n"), ("paragraphs", "a\n\n"), ("broken lines", "a  \n"), ("indented code", "    x\n")),
        *(("backslashes", "\\*"), ("blanks", " "), ("empty lines", "\n"), ("tabs", "\t")),
        *(("carriage returns", "a\r"), ("marks", "a\u0301\u0302"), ("marks alone", "\u0301")),
        *(("families", "\U0001f469\u200d\U0001f469\u200d\U0001f467 "), ("joiners", "\U0001f469\u200d")),
        *(("selectors", "\u2764\ufe0f"), ("flags", "\U0001f3f4\U000e0067\U000e0062\U000e007f")),
        *(("hidden letters", "a\U000e0041"), ("nothing", "a\u200b"), ("overrides", "\u202e")),
        *(("colours", "\x1b[31m"), ("clipboard", "\x1b]52;c;AAAA\x07"), ("requests", "\x1bP1$r\x1b\\")),
        ("all controls", "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))),
        *(("halves", "\udc00\ud800"), ("wide letters", "\u65e5"), ("a line", "x"), ("words", "word ")),
        ("lines", "line\n"),
    ]
)
_BEGUN = {
    "a fence of empty lines": ("```c\n", "\n"),
    "a fence of blanks": ("```cpp\na", " "),
    "a fence of perl": ("```perl\n", "s{{\n"),
    "a fence of python": ("```python\n", 'def f(x):\n    return {"a": x}  # c\n'),
    "a fence of json": ("```json\n", '{"a": [1, true]},\n'),
    "a fence of a line": ("```\n", "x"),
    "a quote that goes on": ("> ", "a\n"),
    "an item that goes on": ("- ", "a\n"),
    "a title that goes on": ('[a]: /u "', "x\n"),
    "a label that goes on": ("[", "x\n"),
    "a comment that goes on": ("<!--\n", "x\n\n"),
    "a table": ("|" + "a|" * 20 + "\n|" + "-|" * 20 + "\n", "|" + "b|" * 20 + "\n"),
    "a table of a thousand columns": ("|" + "a|" * 1000 + "\n|" + "-|" * 1000 + "\n", "|" + "b|" * 1000 + "\n"),
    "a table of empty rows": ("|a|b|\n|-|-|\n", "|\n"),
    "a table of wide letters": ("|a|b|\n|-|-|\n", "|" + "\u65e5" * 50 + "|b|\n"),
    "a long cell": ("|a|b|\n|-|-|\n|", "x y "),
}
_COUNTED: Mapping[str, Callable[[int], str]] = {
    "nested items": lambda number: " " * (2 * number) + "- a\n",
    "growing backticks": lambda number: "`" * number + " ",
    "growing quotes": lambda number: ">" * number + " a\n",
    "growing stars": lambda number: "*" * number + "a",
    "definitions of many": lambda number: f"[r{number}]: /u{number}\n",
    "uses of many": lambda number: f"[r{number}] ",
    "uses before definitions": lambda number: f"[r{number}]\n\n[r{number}]: /u{number}\n\n",
}


def hostile_replies(length: int) -> dict[str, str]:
    """Return replies of so many characters, by their names."""
    repeated = {name: _filled(piece, length) for name, piece in _REPEATED.items()}
    begun = {name: begin + _filled(piece, length) for name, (begin, piece) in _BEGUN.items()}
    return {**repeated, **begun, **{name: _counted(piece, length) for name, piece in _COUNTED.items()}}


def _filled(piece: str, length: int) -> str:
    return (piece * (length // len(piece) + 1))[:length]


def _counted(piece: Callable[[int], str], length: int) -> str:
    text: list[str] = []
    so_far = 0
    for number in count(1):
        text.append(piece(number))
        so_far += len(text[-1])
        if so_far >= length:
            break
    return "".join(text)[:length]
