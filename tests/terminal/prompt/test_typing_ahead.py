"""Keys typed during a reply make the lines that the prompt would have made, and at signs are known as typed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit import PromptSession
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.input.typeahead import clear_typeahead, store_typeahead
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.output import DummyOutput

from chorus_cli.terminal.prompt.keys import AtSigns, Compose, KeyReader, Line, key_bindings, lines_held_back, presses
from chorus_cli.terminal.prompt.typing_ahead import ReplyKeyboard, TypedLine
from chorus_cli.terminal.screen.output import Screen
from tests.terminal.markdown.markdown_screens import Size
from tests.terminal.screen.terminal_file import XTERM, TerminalFile, seen

Typed = tuple[list[str], str]

BACKSPACE, LAST_WORD, ROW, NEW_LINE, ALT_ENTER, ENTER = "\x7f", "\x17", "\x15", "\n", "\x1b\r", "\r"
EDITOR = "\x18\x05"  # ends the prompts of the test: the line goes to the editor
words = st.text(st.sampled_from("ab /\\ü香"), min_size=1, max_size=6)
pastes = st.text(st.sampled_from("ab /\\\n\r\t香"), max_size=12).map(lambda text: f"\x1b[200~{text}\x1b[201~")
keys = st.lists(
    words | pastes | st.sampled_from([BACKSPACE, LAST_WORD, ROW, NEW_LINE, ALT_ENTER, ENTER]), max_size=14
).map("".join)


def typed(pressed: str) -> Typed:
    line = TypedLine()
    for press in presses(pressed):
        line.press(press)
    return line.waiting, line.text


async def read_by_prompts(source: PipeInput) -> Typed:
    session: PromptSession[str] = PromptSession(
        multiline=True, input=source, output=DummyOutput(), key_bindings=key_bindings(Line())
    )
    lines: list[str] = []
    while True:
        try:
            lines.append(await session.prompt_async())
        except Compose as wanted:
            return lines, wanted.typed


def keyboard(source: PipeInput, on_background: Callable[[], None] = lambda: None) -> ReplyKeyboard:
    screen = Screen(TerminalFile(Size(40)), XTERM)
    return ReplyKeyboard(source, screen, lambda _typed: None, lambda _typed: None, on_background)


@given(keys)
def test_the_lines_are_those_of_the_prompt(pressed: str) -> None:
    async def expected() -> Typed:
        with create_pipe_input() as source:
            clear_typeahead(source)
            source.send_text(pressed + EDITOR)
            return await read_by_prompts(source)

    assert typed(pressed) == asyncio.run(expected())


@given(keys, st.lists(st.integers(0, 100), max_size=6))
def test_nothing_is_lost_whenever_reading_begins_and_ends(pressed: str, cuts: list[int]) -> None:
    data = pressed.encode()
    places = [0, *sorted(cut * len(data) // 100 for cut in cuts), len(data)]

    async def read() -> Typed:
        with create_pipe_input() as source:
            clear_typeahead(source)
            reply = keyboard(source)
            for number, (start, end) in enumerate(pairwise(places)):
                source.send_bytes(data[start:end])
                if number % 2:
                    reply.begin(lambda: None)
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                    reply.end()
            source.send_text(EDITOR)
            return await read_by_prompts(source)

    assert asyncio.run(read()) == typed(pressed)


@pytest.mark.parametrize(
    ("pressed", "waiting", "text"),
    [
        ("one\rtwo", ["one"], "two"),
        ("\r  \r", [], "  "),
        ("a\\\rb\r", ["a\nb"], ""),
        ("one\rtwo\r\x1b[A", ["one"], "two"),
        ("one\rtwo\r\x1b[A!\r", ["one", "two!"], ""),
        ("one\rx\x1b[A", ["one"], "x"),
        ("\x1b[A", [], ""),
        ("a\x01b\x1b[Dc\td\x04\x0c", [], "abcd"),
        ("a\x1bbc", [], "ac"),
        ("a\x1bb\x1b[200~c\x1b[201~", [], "ac"),
    ],
)
def test_up_takes_back_a_line_that_waits_and_other_keys_do_nothing(pressed: str, waiting: list[str], text: str) -> None:
    assert typed(pressed) == (waiting, text)


@pytest.mark.parametrize(
    ("pressed", "rows"),
    [
        ("", []),
        ("half a line", ["❯ half a line"]),
        ("one\x1b\rtwo", ["❯ one two"]),
        ("0123456789" * 6, ["❯ …56789" + "0123456789" * 3]),
        ("香" * 30, ["❯ …" + "香" * 17]),
        ("\x1b[200~evil\x9b31m\x1b[2J\x1b[201~", ["❯ evil<9B>31m␛[2J"]),
        ("one\rtwo\rthree", ["waiting: one", "waiting: two", "❯ three"]),
        ("1\r2\r3\r4\r5\r", ["+2 more", "waiting: 3", "waiting: 4", "waiting: 5"]),
        ("0123456789" * 6 + "\r", ["waiting: 0123456789012345678901234567890"]),
    ],
)
async def test_the_rows_are_safe_and_fit(pressed: str, rows: list[str]) -> None:
    with create_pipe_input() as source:
        reply = keyboard(source)
        changed = asyncio.Event()
        reply.begin(changed.set)
        source.send_text(pressed)
        if pressed:
            await seen(changed.is_set)
        assert [row.plain for row in reply.rows(40)] == rows
        reply.end()
        clear_typeahead(source)


async def test_lines_that_wait_are_kept_at_once_and_the_one_being_typed_soon() -> None:
    with create_pipe_input() as source:
        at_once, soon = list[str](), list[str]()
        reply = ReplyKeyboard(source, Screen(TerminalFile(Size(40)), XTERM), at_once.append, soon.append, lambda: None)
        reply.begin(lambda: None)
        for pressed, kept, said in (
            ("half", soon, "half"),
            (" a line\r", at_once, "half a line"),
            ("an", soon, "half a line\nan"),
        ):
            source.send_text(pressed)
            await seen(partial(any, kept))
            assert kept.pop() == said
        reply.end()
        clear_typeahead(source)
    assert at_once == soon == []


async def test_frames_are_few_however_much_is_typed_and_the_first_comes_at_once() -> None:
    with create_pipe_input() as source:
        reply, keys, frames = keyboard(source), 0, list[int]()
        clock = asyncio.get_running_loop().time
        reply.begin(lambda: frames.append(keys))
        begun = clock()
        while clock() - begun < 0.5:
            source.send_text("x")
            keys += 1
            await asyncio.sleep(0.001)
        reply.end()
        clear_typeahead(source)
    assert frames[0] <= 2
    assert len(frames) <= 9


async def test_ctrl_b_leaves_unless_it_is_pasted_and_escape_alone_changes_no_later_key() -> None:
    with create_pipe_input() as source:
        left = list[str]()
        reply = keyboard(source, lambda: left.append("left"))
        reply.begin(lambda: None)
        source.send_text("\x1b[200~a\x02\x1b[201~b\x02c\x1b")
        await seen(lambda: bool(left))
        await asyncio.sleep(0.6)
        source.send_text("d")
        await seen(lambda: reply.rows(40)[0].plain.endswith("d"))
        assert left == ["left"]
        reply.end()
        source.send_text(EDITOR)
        assert await read_by_prompts(source) == ([], "a\x02bcd")


@pytest.mark.parametrize("terminal", ["xterm", "dumb"])
@pytest.mark.parametrize(("pressed", "text"), [("one\rtwo\r", "one\ntwo"), ("\r", ""), ("half", "half")])
async def test_lines_typed_before_a_stop_are_one_text_at_the_prompt(
    monkeypatch: pytest.MonkeyPatch, terminal: str, pressed: str, text: str
) -> None:
    monkeypatch.setenv("TERM", terminal)
    with create_pipe_input() as source:
        store_typeahead(source, presses(pressed))
        assert lines_held_back(source) == ("\n" in text)
        source.send_text(EDITOR)
        assert await read_by_prompts(source) == ([], text)


UP = "\x1b[A"


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


def test_keys_end_when_the_terminal_can_no_longer_be_read() -> None:
    terminal, program = os.openpty()
    reader = KeyReader(terminal)
    try:
        assert (reader.read(), reader.closed) == ("", False)
        os.write(program, "ä".encode()[:1])
        assert (reader.read(), reader.closed) == ("", False)
        os.write(program, "ä".encode()[1:])
        assert (reader.read(), reader.closed) == ("ä", False)
    finally:
        os.close(program)
    assert (reader.read(), reader.closed) == ("", True)
    os.close(terminal)


def test_a_changed_line_of_the_history_is_kept_below_the_draft() -> None:
    line = Line()
    line.begin("", 1)
    assert line.follow("draft", 5, 1)
    assert not line.follow("old", 3, 0)
    assert line.kept == "draft"
    assert line.follow("old!", 4, 0)
    assert line.kept == "draft\nold!"
