"""Notices at the start: drafts that were kept, and replies that broke off in other threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.context.service.focus import drafts_notices

FOLDER = Path("/drafts")
EDITS = ("draft-7-ab-x_1-context.md", "draft-settings.jsonc")
MESSAGES = ("draft-7-ab-y-unsent-chorus.md", "draft-7-ab-z-unsent-chorus-2.md")

ONE = "for 7 days; delete the file if you do not want it."
IN = "kept in /drafts for 7 days; the newest is"
MORE = "Delete the files that you do not want."


@pytest.mark.parametrize(
    ("kept", "notices"),
    [
        ((), ()),
        (EDITS[:1], (f"An edit that was not used is kept in /drafts/draft-7-ab-x_1-context.md {ONE}",)),
        (MESSAGES[:1], (f"A message that was not sent is kept in /drafts/draft-7-ab-y-unsent-chorus.md {ONE}",)),
        (
            (EDITS[0], *MESSAGES, EDITS[1]),
            (
                f"2 edits that were not used are {IN} draft-settings.jsonc. {MORE}",
                f"2 messages that were not sent are {IN} draft-7-ab-z-unsent-chorus-2.md. {MORE}",
            ),
        ),
    ],
)
def test_unsent_messages_are_not_called_edits(kept: tuple[str, ...], notices: tuple[str, ...]) -> None:
    assert drafts_notices([FOLDER / name for name in kept]) == notices
