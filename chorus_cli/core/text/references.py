"""Control characters as character references such as ``&#27;``, so that a file can be printed to a terminal.

Text that reads like such a reference gets ``amp;`` after its ampersand, so that all of it can be read back.
"""

from __future__ import annotations

import re

from chorus_cli.core.text.code_points import C1_CONTROLS, CONTROLS

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
