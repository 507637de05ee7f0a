"""What a private chat tells the desktop, and its mark in the line at the bottom."""

from __future__ import annotations

import pytest

from chorus_cli.terminal.repl import Privacy

PUBLIC, PRIVATE = Privacy(), Privacy(None, "Nothing is kept.")


@pytest.mark.parametrize(
    ("privacy", "wanted", "way"),
    [
        (PUBLIC, "osc", "osc"),
        (PRIVATE, "osc", "bell"),
        (PRIVATE, "bell", "bell"),
        (PRIVATE, "off", "off"),
    ],
)
def test_no_message_of_a_private_chat_goes_to_the_desktop(privacy: Privacy, wanted: str, way: str) -> None:
    assert privacy.notification(wanted) == way


def test_only_a_private_chat_has_a_mark() -> None:
    assert (PUBLIC.mark, PRIVATE.mark) == ((), ("private", "nothing is kept"))
