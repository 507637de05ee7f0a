"""The figures of SECURITY.md, each computed from the program or its benchmarks."""

from __future__ import annotations

import io
import re
import sys
from functools import cache

from benchmarks import endurance
from chorus_cli.core.limits import LIMITS
from chorus_cli.core.text import code_points
from chorus_cli.core.text.redaction import KEY_SHAPES
from chorus_cli.terminal.screen.output import TerminalGuard
from chorus_cli.tools.service import BUILT_IN

_REMOVED = (
    f"[{code_points.CONTROLS}{code_points.C1_CONTROLS}{code_points.BIDI_CONTROLS}{code_points.NONCHARACTERS}"
    f"{code_points.SURROGATES}{code_points.IGNORABLES}{code_points.TAG_CHARACTERS}{code_points.CANCEL_TAG}]"
)


@cache
def trust_table() -> str:
    """Return the figures as a table."""
    every = [chr(point) for point in range(sys.maxunicode + 1)]
    removed = len(re.findall(_REMOVED, "".join(every)))
    rows = [
        ("code points that are shown by a sign or left out", f"{removed:,} of {len(every):,}"),
        ("final letters of the control sequences that pass the second filter", _final_letters()),
        ("kinds of keys that are known by their shape", f"{len(KEY_SHAPES) + 1}"),
        ("tools of a model", ", ".join(f"`{each.tool.name}`" for each in BUILT_IN)),
        ("declared limits", f"{len(LIMITS)}"),
        (f"turn {endurance.TURNS:,} against turn {endurance.EARLY_TURN}, at most", f"{endurance.GOAL} times"),
    ]
    return "\n".join(["| figure | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def _final_letters() -> str:
    """Return the letters that end a sequence such as ESC [ 1 X which a terminal gets."""
    return " ".join(f"`{letter}`" for letter in map(chr, range(0x40, 0x7F)) if _passes(f"\x1b[1{letter}"))


def _passes(sequence: str) -> bool:
    guard = TerminalGuard(io.StringIO())
    guard.write(sequence + "\n")
    guard.flush()
    return not guard.blocked
