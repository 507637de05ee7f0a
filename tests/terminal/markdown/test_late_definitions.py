"""No address is lost: a definition that comes after what refers to it has been settled stands as text where it is."""

from __future__ import annotations

import pytest

from tests.terminal.markdown.markdown_screens import Size, cut, streamed

pytestmark = pytest.mark.usefixtures("true_colours")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (
            "Sky [1]…\n\n[1]: https://example.com/sky",
            ["Sky [1]…", "[1]: https://example.com/sky"],
        ),
        (
            "See [a], [text][B c] and ![d][].\n\n[a]: /a\n[b  C]: </b>\n  'over\n  lines'\n[D]: /d\n\nend",
            ["See [a], [text][B c] and ![d][].", "[a]: /a", "[b C]: </b> 'over lines'", "[D]: /d", "end"],
        ),
        ("# [a]\n\n> [a]: /a\n> b\n\n- [a]\n", ["[a]", "▌ b", "[a]: /a", "• a (/a)"]),
        ("[a]\n\n- [a]: /a\n\nend", ["[a]", "[a]: /a", "end"]),
        ("[a\\]b]\n\n[a\\]b]: /a\n", ["[a]b]", "[a\\]b]: /a"]),
        ("[a]\n\n[a]: /1\n\n[a]: /2\n\n[a]\n", ["[a]", "[a]: /1", "a (/1)"]),
        ("\\[a\\] [b]\n\n[a]: /a\n[c]: /c\n\nend", ["[a] [b]", "end"]),
        ("[a]: /a\n\n[a]\n\n[a]: /b\n\nend", ["a (/a)", "end"]),
        ("[a]\n\n[a]: /a?b&amp;c=%1B\n\nend", ["[a]", "[a]: /a?b&amp;c=%1B", "end"]),
    ],
)
@pytest.mark.parametrize("length", [1, 3])
def test_a_definition_that_comes_too_late_stands_where_it_is(text: str, seen: list[str], length: int) -> None:
    assert [row.strip() for row in streamed(cut(text, length), Size()).text() if row] == seen


def test_it_stands_above_a_tall_fence_that_follows() -> None:
    code = [f"x = {number}" for number in range(100)]
    text = "[a]\n\n[a]: /a\n\n```python\n" + "\n".join(code) + "\n```\nend\n"
    rows = [row.strip() for row in streamed(cut(text, 5), Size(40, 10)).text() if row]
    assert rows == ["[a]", "[a]: /a", *code, "end"]


def test_what_is_defined_in_time_stands_as_if_no_definition_were_there() -> None:
    text = "[a]: /a\n\nsee [a] and [b]\n\nmore [c]\n"
    later = text + "\n[d]: /d\n"
    assert streamed(cut(text, 3), Size()).rows() == streamed(cut(later, 3), Size()).rows()
