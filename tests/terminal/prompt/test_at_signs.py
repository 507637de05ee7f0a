"""At signs are known as typed through any change of the line."""

from __future__ import annotations

import pytest

from chorus_cli.terminal.prompt.keys import AtSigns, TypedText, presses
from chorus_cli.terminal.prompt.typing_ahead import TypedLine

BACKSPACE, ENTER, UP, LAST_WORD = "\x7f", "\r", "\x1b[A", "\x17"


def pasted(text: str) -> str:
    return f"\x1b[200~{text}\x1b[201~"


@pytest.mark.parametrize(
    ("line", "cursor", "typed"),
    [
        ("x @a", 2, (2,)),
        ("@a and @b", 9, (0,)),
        ("@b @a", 3, (3,)),
        ("@a @a", 3, (3,)),
        ('@"a b" ', 7, (0,)),
        ("a", 0, ()),
        ("", 0, ()),
        ("@b @a c", 0, ()),
        ("before", 6, ()),
    ],
)
def test_a_typed_at_sign_is_followed(line: str, cursor: int, typed: tuple[int, ...]) -> None:
    at_signs = AtSigns()
    at_signs.follow("@a", 2)
    at_signs.add([0])
    at_signs.follow(line, cursor)
    assert at_signs.typed == typed


def test_a_line_that_comes_back_is_as_it_was_typed_and_another_is_text() -> None:
    at_signs = AtSigns()
    at_signs.follow("see @a and @b", 13)
    at_signs.add([4])
    assert at_signs.escaped("see @a and @b") == r"see @a and \@b"
    at_signs.begin("see @a and @b")
    assert at_signs.escaped("see @a and @b") == r"see @a and \@b"
    at_signs.begin("@a")
    assert at_signs.escaped("@a") == r"\@a"


@pytest.mark.parametrize(
    ("keys", "typed"),
    [
        ("see @a", [(4,)]),
        (pasted("see @a"), []),
        (pasted("see @a") + BACKSPACE + "b", []),
        (pasted("see @a ") + "@b", [(7,)]),
        ("@a" + BACKSPACE * 2 + pasted("@b") + "!", []),
        ("@a " + ENTER + pasted("@b") + ENTER, [(0,)]),
        ("@a " + ENTER + UP + "@b", [(0, 3)]),
        ("a @b" + LAST_WORD + "@c", [(2,)]),
        ("/bg @b", [(3,)]),
    ],
)
def test_an_at_sign_typed_during_a_reply_is_known_to_the_prompt(keys: str, typed: list[tuple[int, ...]]) -> None:
    line = TypedLine()
    for press in presses(keys):
        line.press(press)
    found = [press.at_signs for press in line.presses() if isinstance(press, TypedText)]
    assert [each for each in found if each] == typed
