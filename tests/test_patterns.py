"""Regular expressions mean the same in every Python that Chorus runs with."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "chorus_cli"
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{\{?[0-9]+(?:,[0-9]*)?\}\}?)\+")


def test_no_repetition_of_a_group_is_possessive() -> None:
    """Python before 3.11.5, which Debian 12 has, goes on behind an iteration that failed half-way (issue 106052)."""
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if POSSESSIVE_GROUP.search(line)
    ]
    assert found == []
