"""Keys that were typed before the prompt become text."""

from __future__ import annotations

import pytest

from chorus_cli.terminal.prompt.keys import text_of_keys


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("", ""),
        ("half a line", "half a line"),
        ("one\rtwo", "one\ntwo"),
        ("one\ntwo", "one\ntwo"),
        ("typo\x7fe", "type"),
        ("\x7fa", "a"),
        ("a\x1b[D\x1b[Ab", "ab"),
        ("\x1b[200~pasted\nlines\x1b[201~ and more", "pasted\nlines and more"),
        ("\x01\x05\x0c", ""),
        ("香 ü", "香 ü"),
    ],
)
def test_keys_make_the_text_that_a_prompt_would_show(keys: str, text: str) -> None:
    assert text_of_keys(keys) == text
