"""The lines that begin a private chat, and those before them that may be kept."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chorus_cli.core.text.command_signs import before_private, begins_private, is_message, typed_line, unescaped_line


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        ("/private", True),
        ("  /private  ", True),
        ("/Private off", True),
        ("/private and a text that does not belong there", True),
        ("/pr", True),
        ("/priv", True),
        ("/p", False),
        ("/persona", False),
        ("/privately", False),
        ("//private", False),
        ("private", False),
        ("", False),
    ],
)
def test_a_line_that_begins_a_private_chat_is_known(line: str, *, begins: bool) -> None:
    assert begins_private(line) is begins


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("one\ntwo", "one\ntwo"),
        ("one\n/private\nsecret", "one\n"),
        ("one\r/private\rsecret", "one\r"),
        ("/private\nsecret", ""),
        ("", ""),
    ],
)
def test_the_lines_after_it_are_not_kept(typed: str, kept: str) -> None:
    assert before_private(typed) == kept


@given(st.text(alphabet="/!a\n ", min_size=1).map(str.strip).filter(bool))
@example("/new idea")
@example("!wow")
@example("//a")
def test_the_line_of_a_message_sends_that_message(message: str) -> None:
    line = typed_line(message)
    assert (is_message(line), unescaped_line(line)) == (True, message)
