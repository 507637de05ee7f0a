"""Notices at the start: drafts that were kept, and replies that broke off in other threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.services.personas.greeting import drafts_notices

FOLDER = Path("/drafts")
EDITS = ("draft-7-ab-x_1-context.md", "draft-settings.jsonc")
MESSAGES = ("draft-7-ab-y-unsent-chorus.md", "draft-7-ab-z-unsent-chorus-2.md")


@pytest.mark.parametrize(
    ("kept", "notices"),
    [
        ((), ()),
        (EDITS[:1], ("An edit that was not used is kept in /drafts/draft-7-ab-x_1-context.md.",)),
        (MESSAGES[:1], ("A message that was not sent is kept in /drafts/draft-7-ab-y-unsent-chorus.md.",)),
        (
            (EDITS[0], *MESSAGES, EDITS[1]),
            (
                "2 edits that were not used are kept in /drafts; the newest is draft-settings.jsonc.",
                "2 messages that were not sent are kept in /drafts; the newest is draft-7-ab-z-unsent-chorus-2.md.",
            ),
        ),
    ],
)
def test_unsent_messages_are_not_called_edits(kept: tuple[str, ...], notices: tuple[str, ...]) -> None:
    assert drafts_notices([FOLDER / name for name in kept]) == notices
