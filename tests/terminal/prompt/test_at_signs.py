"""At signs are known as typed through any change of the line."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.output import DummyOutput

from chorus_cli.terminal.prompt.keys import AtSigns, Compose, Line, key_bindings, presses
from chorus_cli.terminal.prompt.typing_ahead import TypedLine

if TYPE_CHECKING:
    from prompt_toolkit.key_binding.key_processor import KeyPress

BACKSPACE, ENTER, UP, LAST_WORD, EDITOR = "\x7f", "\r", "\x1b[A", "\x17", "\x18\x05"


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
    assert at_signs._typed == {*typed}


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
        ("/bg @b", [(4,)]),
    ],
)
async def test_an_at_sign_typed_during_a_reply_is_known_to_the_prompt(keys: str, typed: list[tuple[int, ...]]) -> None:
    typed_ahead = TypedLine()
    for press in presses(keys):
        typed_ahead.press(press)
    assert [each for each in await at_signs_at_prompts(typed_ahead.presses()) if each] == typed


async def at_signs_at_prompts(pressed: list[KeyPress]) -> list[tuple[int, ...]]:
    line, found = Line(), list[tuple[int, ...]]()
    with create_pipe_input() as source:
        session: PromptSession[str] = PromptSession(
            multiline=True, input=source, output=DummyOutput(), key_bindings=key_bindings(line)
        )
        session.default_buffer.on_text_changed += lambda buffer: line.at_signs.follow(
            buffer.text, buffer.cursor_position
        )
        store_typeahead(source, [*pressed, *presses(EDITOR)])
        with suppress(Compose):
            while True:
                line.at_signs.begin("")
                await session.prompt_async()
                found.append(tuple(sorted(line.at_signs._typed)))
    return [*found, tuple(sorted(line.at_signs._typed))]
