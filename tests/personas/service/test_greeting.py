"""Notices at the start: edits and messages that were kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.context.service.focus import unused_notices

FOLDER = Path("/drafts")
EDITS = ("draft-7-ab-x_1-context.md", "draft-settings.jsonc")

ONE = "for 7 days; delete the file if you do not want it."
SEVERAL = "for 7 days; the newest is draft-settings.jsonc. Delete the files that you do not want."


@pytest.mark.parametrize(
    ("kept", "unsent", "notices"),
    [
        ((), 0, ()),
        (EDITS[:1], 0, (f"An edit that was not used is kept in /drafts/draft-7-ab-x_1-context.md {ONE}",)),
        ((), 1, ("A message that was not sent is kept for 7 days; /rescue shows it.",)),
        (
            EDITS,
            2,
            (
                f"2 edits that were not used are kept in /drafts {SEVERAL}",
                "2 messages that were not sent are kept for 7 days; /rescue shows them.",
            ),
        ),
    ],
)
def test_unsent_messages_are_not_called_edits(kept: tuple[str, ...], unsent: int, notices: tuple[str, ...]) -> None:
    assert unused_notices([FOLDER / name for name in kept], unsent) == notices
