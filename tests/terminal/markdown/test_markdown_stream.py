"""In the end the screen shows the text that rich would have printed at once, but for mends, however it came.

The examples of the CommonMark specification are by John MacFarlane, CC BY-SA 4.0; see ``_about`` in
``commonmark_examples.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chorus_cli.core.text.safe_text import safe_text
from tests.amount import examples
from tests.terminal.markdown.markdown_screens import (
    DOCUMENTS,
    Size,
    StreamHere,
    Window,
    assert_same,
    cut,
    randomly_cut,
    streamed,
)

LONG_CODE = """def number_{0}(x: int) -> str:
    '''Return {0}.'''

    return f'{{x}}' + "{0}"  # {0}


"""
LINES = [
    *("# h", "Title", "=====", "---", "***", "- a", "  - b", "    - c", "* x", "1. one", "2. two", "   1. deep"),
    *("10) ten", "> q", ">> qq", "> - ql", "> ```", "lazy", "```", "```python", "~~~", "def f(): return 'x'"),
    *("    indented", "\tcode", "| a | b |", "|---|:-:|", "a | b", "-|-", "<div>", "</div>", "<!-- c", "-->"),
    *("hard  ", "break\\", "[foo]", "[x](http://a.b/c 't') ![i](j.png)", "*em", "em*", "", "", "", "-", "  "),
    *("at <http://a.b/c> [![alt](i.png)](/to) <me@b.c>", "日本語 é", "*   *", "      six"),
    "**bold** `code` and a rather long line that must be broken somewhere between its words",
]
HEADS = st.sampled_from(["", "[foo]: /url\n\n", "[foo]: <http://x.y> 'and\nso on'\n\n"])

pytestmark = pytest.mark.usefixtures("true_colours")


def fed(text: str, *, colour: bool = True) -> tuple[list[str], StreamHere]:
    """Return a stream that was given a text, and what it writes."""
    written: list[str] = []
    stream = StreamHere(written.append, has_colour=colour)
    stream.feed(text)
    return written, stream


@pytest.mark.parametrize("size", [Size(80, 60), Size(20, 120)], ids=["wide", "narrow"])
@pytest.mark.parametrize("length", [pytest.param(1, marks=pytest.mark.slow), 7, 10_000])
@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS)
def test_every_construct_stands_as_if_it_had_come_at_once(text: str, length: int, size: Size) -> None:
    assert_same(text, cut(text, length), size)


@examples(150)
@given(
    head=HEADS,
    lines=st.lists(st.sampled_from(LINES), max_size=14),
    random=st.randoms(use_true_random=False),
    columns=st.sampled_from([80, 33, 20]),
    is_spoken=st.booleans(),
)
def test_any_document_cut_anywhere_stands_as_at_once(
    *, head: str, lines: list[str], random: Random, columns: int, is_spoken: bool
) -> None:
    text = head + "\n".join(lines)
    pieces, frames_every = randomly_cut(text, random), random.randint(1, 5)
    assert_same(text, pieces, Size(columns, 150), frames_every=frames_every, is_spoken=is_spoken)


def test_line_breaks_are_shown_in_the_reply_of_a_character_alone() -> None:
    pieces = cut("Roses are\nred,\n\n\\*nods\\*\nso", 3)
    assert streamed(pieces, Size(40, 20), is_spoken=True).text() == ["Roses are", "red,", "", "*nods*", "so"]
    assert streamed(pieces, Size(40, 20)).text() == ["Roses are red,", "", "*nods* so"]


LOOKS = [
    ("a\n\n```python\nx = 1\n```\n\nb", ["a", "", "── python ──────────", "x = 1", "─" * 20, "", "b"]),
    ("``` python\tx\nx = 1\n```", ["── python ──────────", "x = 1", "─" * 20]),
    ("```\n  x\n```\n- b", ["─" * 20, "  x", "─" * 20, "", " • b"]),
    ("a\n\n    code\n", ["a", "", "─" * 20, "code", "─" * 20]),
    ("```" + "n" * 30 + "\nx\n```", ["── " + "n" * 17, "x", "─" * 20]),
    ("a\n\n1. b\n2. c\n\nd", ["a", "", "1. b", "2. c", "", "d"]),
    ("9. b\n10. c\n    - d", ["", " 9. b", "10. c", "     • d"]),
    ("a\n\n| b | c |\n|---|---|\n| 1 | 2 |\n\nd", ["a", "", "b  c", "────", "1  2", "", "d"]),
]


@pytest.mark.parametrize(("text", "seen"), LOOKS)
def test_code_stands_between_rules_numbers_have_dots_and_blocks_one_empty_line(text: str, seen: list[str]) -> None:
    assert streamed(cut(text, 3), Size(40, 20)).text() == seen


def test_a_break_in_the_words_of_a_character_is_no_line_of_hyphens() -> None:
    text = "a\n\n* * *\n\nb"
    assert streamed(cut(text, 3), Size(40, 20)).text() == ["a", "", "-" * 40, "", "b"]
    assert streamed(cut(text, 3), Size(40, 20), is_spoken=True).text() == ["a", "", " " * 17 + "* * *", "", "b"]


SPOKEN = 'She *nods*. "Where *is* it?" he “asks”, and "never\n\n- „So“ «so» `"x"`\n\n> 5" »and« 6"\n\n    "code"\n'


@pytest.mark.parametrize("length", [1, 7, 100])
def test_spoken_words_are_tinted_in_a_persona_s_reply_however_it_came(length: int) -> None:
    assert_same(SPOKEN, cut(SPOKEN, length), Size(40, 30), is_spoken=True)
    rows = streamed([SPOKEN], Size(), is_spoken=True).rows()
    assert (
        "".join(cell.data for row in rows for cell in row if cell.fg == "blue")
        == '"Where is it?"“asks”„So“«so»"x"" »and« 6"'
    )
    assert "blue" not in {cell.fg for row in streamed([SPOKEN], Size()).rows() for cell in row}


TALL = {
    "a fence": "before\n\n```python\n" + "".join(LONG_CODE.format(number) for number in range(30)) + "```\n\nafter",
    "a fence without an end": "```js\n" + "\n".join(f"let x{number} = `${{number}}`;\n" for number in range(60)),
    "a fence whose lexer keeps no states": "```json\n[\n" + '{"a": [1, true]},\n' * 90 + "]\n```\n",
    "an unknown fence": "~~~nosuch\n" + "foo\n\n" * 60 + "~~~\nend",
    "a fence with empty lines at its end": "```c\n" + "int x; /* y */\n" * 50 + "\n" * 30 + "```\ntext",
    "bullets": "".join(
        f"- item {number} is **long** enough to be wrapped in a narrow terminal\n\n" for number in range(40)
    ),
    "nested bullets": "".join(f"- item {number}\n  - a\n  - b\n\n    c\n" for number in range(25)) + "\nend",
    "an item with a fence": "- item\n\n  ```python\n" + "  x = 1\n" * 60 + "  ```\n- last\n",
    "headings": "".join(f"# heading {number}\n" for number in range(60)),
    "indented code": "".join(f"    line {number}\n" for number in range(80)),
    "a paragraph": " ".join(f"word{number} *and*" for number in range(500)) + "\n\nend",
    "a quote": "> quoted\n>\n" * 30 + "lazy\n\nend",
    "a table": "| a | b |\n|---|--:|\n" + "".join(f"| {number} | `x` |\n" for number in range(100)) + "\nend",
}
MUCH_WORK = ("a paragraph", "a fence whose lexer keeps no states")


@pytest.mark.parametrize("size", [Size(80, 24), Size(20, 8)], ids=["usual", "tiny"])
@pytest.mark.parametrize(
    "text",
    [pytest.param(text, marks=pytest.mark.slow) if name in MUCH_WORK else text for name, text in TALL.items()],
    ids=TALL,
)
def test_what_is_taller_than_the_screen_stands_as_if_it_had_come_at_once(text: str, size: Size) -> None:
    assert_same(text, cut(text, 40), size, frames_every=2)


def test_the_numbers_of_a_list_in_parts_go_on() -> None:
    text = "".join(f"1. item {number}\n" for number in range(5, 125)) + "\nend\n"
    rows = streamed(cut("5" + text[1:], 30), Size(40, 10)).text()
    assert [row.split() for row in rows if row] == [[f"{n}.", "item", str(n)] for n in range(5, 125)] + [["end"]]


@pytest.mark.parametrize("text", ["x </kbd> y", "<kbd>x\n\ny", "*<kbd>x*</kbd> y", "# x</kbd></kbd>\n- </kbd>y"])
def test_half_a_key_harms_nobody(text: str) -> None:
    shown = "".join(streamed(cut(text, 2), Size()).text())
    assert (shown.count("x"), shown.count("y")) == (1, 1)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a&#x202e;b", "a<U+202E>b"),
        ("a&#xE0041;&#xE0042;b", "ab"),
        ("`c`&rlm;&shy;&ZeroWidthSpace;d", "cd"),
        ("<http://a/%E2%80%AE%1B%5B2J>", "http://a/<U+202E>␛[2J (http://a/%E2%80%AE%1B%5B2J)"),
        ("[a](http://b/&#x202e;)", "a (http://b/%E2%80%AE)"),
        ("<http://xn--pple-43d.example>", "http://\u0430pple.example (http://xn--pple-43d.example)"),
        ("![&#x9b;&#x202e;](x)", "�<U+202E> (x)"),
        ("&#27;[31m &#155;", "�[31m �"),
    ],
)
def test_what_only_the_parser_decodes_is_filtered_too(text: str, seen: str) -> None:
    assert streamed([text], Size()).text()[0] == seen


@pytest.mark.parametrize(
    "text",
    [
        "word and " * 30_000,
        "x" * 300_000,
        "```\n" + "y" * 300_000,
        pytest.param("```\n" + "code\n" * 20_000, marks=pytest.mark.slow),
        pytest.param("> q\n" * 20_000, marks=pytest.mark.slow),
    ],
)
def test_a_reply_that_comes_at_once_is_worked_off_in_steps_and_loses_nothing(text: str) -> None:
    written, stream = fed(text)
    steps = 1
    while stream.advance():
        steps += 1
        assert stream.stream._blocks.open_weight < 40_000
    stream.close()
    assert steps == -(-len(text) // 4_096)
    for letter in "wxyqc":
        assert "".join(written).count(letter) == text.count(letter)


@pytest.mark.parametrize(
    "text",
    [
        "and so on it goes " * 3_000,
        pytest.param("a | " * 20_000, marks=pytest.mark.slow),
        pytest.param("x" * 50_000, marks=pytest.mark.slow),
        "```\n" + "y" * 50_000,
    ],
)
def test_a_long_text_is_broken_up_where_nobody_sees_it(text: str) -> None:
    assert_same(text, cut(text, 20_000), Size())


@pytest.mark.slow
@pytest.mark.parametrize("text", ["*_[" * 20_000, "![" * 30_000, "| a |\n|---|\n" * 5_000])
def test_what_is_much_work_for_its_length_is_broken_up_sooner(text: str) -> None:
    _, stream = fed(text)
    longest = 0
    while stream.advance():
        longest = max(longest, len(stream.stream._blocks._source))
    assert longest < 10_000


def test_a_long_table_goes_on_under_its_head() -> None:
    row = "| " + "cell " * 20 + "| x |\n"
    text = "| first | second |\n|---|---|\n" + row * 700
    rows = streamed(cut(text, 5_000), Size(130, 24)).text()
    assert sum("first" in row for row in rows) > 1
    assert sum("cell" in row for row in rows) == 700
    assert not any("|" in row for row in rows)


def test_every_frame_leaves_the_terminal_as_it_was() -> None:
    written: list[str] = []
    stream = StreamHere(written.append, size=Size(20, 8))
    for chunk in cut(TALL["a fence"] + TALL["bullets"], 50):
        stream.feed(chunk)
        stream.advance()
        stream.paint()
    for frame in written:
        assert frame.startswith("\x1b[?2026h")
        assert frame.endswith("\x1b[?2026l")
        assert frame.rfind("\x1b[?7h") >= frame.rfind("\x1b[?7l")
        assert "\x1b[?25" not in frame


def test_without_colours_the_layout_stays() -> None:
    text = DOCUMENTS["headings"] + DOCUMENTS["fences"] + DOCUMENTS["tables"]
    written, stream = fed(text, colour=False)
    stream.close()
    plain, coloured = Window(Size()), streamed([text], Size())
    plain.write("".join(written))
    assert plain.text() == coloured.text()
    assert {(cell.fg, cell.bg) for row in plain.rows() for cell in row} == {("default", "default")}


@examples(60)
@given(st.lists(st.sampled_from(LINES), max_size=12), st.integers(1, 12), st.integers(2, 8))
def test_no_window_is_too_small(lines: list[str], columns: int, height: int) -> None:
    text = safe_text("> - " * 6 + "\n".join([*lines, "", "", "the end"]))
    shown = "".join("".join(streamed(cut(text, 25), Size(columns, height)).text()).split())
    assert shown.rstrip("─").endswith("theend")


_FILE = Path(__file__).with_name("commonmark_examples.json")
EXAMPLES = [safe_text(text) for text in json.loads(_FILE.read_text(encoding="utf-8"))["examples"]]
COLUMNS = (80, 33, 20)


def with_definitions_ahead(text: str) -> str:
    """Return ``text`` with its links defined before it, if one could be used before it is defined there.

    For a link that stands on the screen already cannot be made one by a definition that follows.
    """
    environment: dict[str, Any] = {}
    tokens = MarkdownIt().enable("strikethrough").enable("table").parse(text, environment)
    definitions = environment.get("references", {})
    last = max((definition["map"][0] for definition in definitions.values()), default=0)
    if all(token.map is None or token.map[0] >= last for token in tokens):
        return text
    ahead = (f"[{label}]: <{definition['href'].replace('&', '&amp;')}>\n" for label, definition in definitions.items())
    return "".join(ahead) + "\n" + text


def test_all_examples_are_there() -> None:
    assert len(EXAMPLES) == 652
    assert EXAMPLES[0] == "\tfoo\tbaz\t\tbim\n"


@pytest.mark.parametrize(
    ("tried", "is_cut_everywhere"),
    [
        pytest.param(slice(None, None, 5), False, id="every fifth"),
        pytest.param(slice(None), False, id="each", marks=pytest.mark.slow),
        pytest.param(slice(None), True, id="cut everywhere", marks=pytest.mark.slow),
    ],
)
def test_every_example_stands_as_if_it_had_come_at_once(tried: slice, *, is_cut_everywhere: bool) -> None:
    for number, example in [*enumerate(EXAMPLES, 1)][tried]:
        random = Random(number)  # noqa: S311 - the same in each run
        text, size = with_definitions_ahead(example), Size(random.choice(COLUMNS), 24)
        chunks = list(text) if is_cut_everywhere else randomly_cut(text, random)
        assert_same(text, chunks, size, frames_every=random.randint(1, 5), name=f"example {number}: {chunks}")


@examples(150)
@given(
    st.lists(st.sampled_from(EXAMPLES), min_size=2, max_size=6),
    st.sampled_from(["", "\n"]),
    st.randoms(use_true_random=False),
    st.sampled_from(COLUMNS),
)
def test_examples_one_after_another_stand_as_at_once(
    chosen: list[str], between: str, random: Random, columns: int
) -> None:
    text = with_definitions_ahead(between.join(chosen))
    assert_same(text, randomly_cut(text, random), Size(columns, 150), frames_every=random.randint(1, 5))
