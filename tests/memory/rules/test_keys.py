"""Items are called by keys in their first line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.memory.rules.recall import Keys, keys_of, with_keys


@pytest.mark.parametrize(
    ("key", "text", "is_called"),
    [
        ("dragon", "Is there a dragon?", True),
        ("Dragon", "DRAGONS!", True),
        ("dragon", "a dragonfly", False),
        ("art", "start", False),
        ("art", "start with art", True),
        ("white tower", "the White Tower's door", True),
        ("C++", "some C++ code", True),
        ("東京", "明日は東京へ行く", True),
        ("ärger", "Großer ÄRGER", True),
        ("42", "1423", False),
        ("42", "room 42.", True),
        ("", "anything", False),
    ],
)
def test_a_key_is_found_at_the_beginning_of_a_word(key: str, text: str, *, is_called: bool) -> None:
    keys = keys_of(with_keys([key], [], "content"))
    assert bool(keys and keys.call(text.casefold())) is is_called


def test_a_second_list_must_be_met_too() -> None:
    content = with_keys(["wreck", "ship"], ["gold", "silver"], "The Anna.")
    assert content == "Keys: wreck, ship; with: gold, silver\nThe Anna."
    keys = keys_of(content)
    assert keys == Keys(("wreck", "ship"), ("gold", "silver"))
    assert keys is not None
    assert keys.call("the ship had silver aboard")
    assert not keys.call("the ship")
    assert not keys.call("silver")


@pytest.mark.parametrize("content", ["", "Keys", "Keys:", "Keys: \nx", "Keys: , ,\nx", "The keys: a\nb", "x\nKeys: a"])
def test_other_contents_have_no_keys(content: str) -> None:
    assert keys_of(content) is None


@given(st.lists(st.text(), max_size=5), st.lists(st.text(), max_size=3), st.text())
def test_keys_of_any_text_stay_in_the_first_line(keys: list[str], others: list[str], content: str) -> None:
    written = with_keys(keys, others, content)
    assert written.endswith(content)
    assert keys_of(written) is None or written.split("\n", 1)[1:] == [content] or written == content
