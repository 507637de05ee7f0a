"""A window that changes its size while a reply is painted: nothing is lost, and hardly anything comes twice."""

from __future__ import annotations

import io
import re
from random import Random

import pytest

from chorus_cli.terminal.screen.output import Screen
from chorus_cli.terminal.screen.painted_rows import PaintedRows, Row
from tests.terminal.markdown.markdown_screens import LexersHere, Size, StreamHere, Window, randomly_cut

_DOCUMENTS = [range(12), pytest.param(range(12, 60), marks=pytest.mark.slow)]
_TABLES = [range(6), pytest.param(range(6, 25), marks=pytest.mark.slow)]

FORMS = {
    "code": ("```python\n", "{}\n", "```\n"),
    "a paragraph": ("", "{}\n", ""),
    "lines": ("", "{}\\\n", "end\n"),
    "bullets": ("", "- {}\n", ""),
    "numbers": ("", "1. {}\n", ""),
    "nested bullets": ("- top\n", "  - *{}*\n", ""),
    "code in an item": ("- top\n\n  ```\n", "  {}\n", "  ```\n"),
    "a quote": ("", "> {}\n", ""),
    "quoted paragraphs": ("", "> {}\n>\n", ""),
    "quoted code": ("> ```\n", "> {}\n", "> ```\n"),
}
WORDS = ["a", "be", "sea", "deep", "`code`", "*them*", "größer", "日本語", "x" * 25, "-", "--", "(x)", "]["]


def numbered(random: Random) -> tuple[str, range]:
    number, parts = 1000, []
    for _ in range(random.randint(1, 6)):
        head, line, tail = random.choice([*FORMS.values()])
        parts.append(f"\n{head}")
        for _ in range(random.randint(1, 9)):
            words = " ".join(random.choices(WORDS, k=random.randint(0, 14)))
            parts.append(line.format(f"n{number}e {words}".strip()))
            number += 1
        parts.append(tail)
    return "".join(parts), range(1000, number)


def sizes_of(random: Random) -> list[Size]:
    return [Size(random.randint(20, 90), random.randint(6, 30)) for _ in range(random.randint(2, 8))]


class Reply:
    """A stream in a window; ``shows_all`` tells whether it was never resized while a block was higher than it."""

    def __init__(self, size: Size) -> None:
        self.window = Window(size)
        self.stream = StreamHere(self.window.write, LexersHere(), size=self.window.current_size)
        self.shows_all = True

    def add(self, text: str) -> None:
        self.stream.feed(text)
        while self.stream.advance():
            pass
        self.stream.paint()

    def resize(self, size: Size) -> None:
        self.shows_all = self.shows_all and self.stream._paints_all
        self.window.resize(size)
        self.stream.paint()

    def counts(self, numbers: range) -> list[int]:
        """Return how often each number stands in the window; it may be broken anywhere."""
        self.stream.close()
        text = re.sub(r"[\s▌]", "", "".join(self.window.text()))
        return [text.count(f"n{number}e") for number in numbers]


def streamed_while_resized(text: str, random: Random, sizes: list[Size]) -> Reply:
    reply = Reply(sizes[0])
    reply.window.write("before\n" * random.randint(0, 12))
    chunks = randomly_cut(text, random, longest=120)
    moments = sorted(random.randrange(len(chunks)) for _ in sizes[1:])
    for number, chunk in enumerate(chunks):
        reply.add(chunk)
        while moments and moments[0] == number:
            reply.resize(sizes[len(sizes) - len(moments)])
            moments.pop(0)
    return reply


@pytest.mark.parametrize("seeds", _DOCUMENTS, ids=str)
def test_every_line_stands_there_once(seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)  # noqa: S311 - the same in each run
        text, numbers = numbered(random)
        reply = streamed_while_resized(text, random, sizes_of(random))
        counts = set(reply.counts(numbers))
        assert 0 not in counts, seed
        assert counts == {1} or not reply.shows_all, seed


@pytest.mark.parametrize("seeds", _TABLES, ids=str)
def test_of_a_table_only_the_row_that_was_broken_comes_again(seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)  # noqa: S311 - the same in each run
        numbers, sizes = range(1000, 1000 + random.randint(1, 9)), sizes_of(random)
        rows = (f"| n{number}e | {' '.join(random.choices(WORDS, k=random.randint(1, 14)))} |\n" for number in numbers)
        reply = streamed_while_resized("| a | b |\n|---|---|\n" + "".join(rows), random, sizes)
        counts = reply.counts(numbers)
        assert 0 not in counts, seed
        assert sum(counts) - len(counts) < len(sizes) or not reply.shows_all, seed


def test_a_window_that_becomes_wider_or_higher_keeps_what_is_settled_and_paints_the_rest_anew() -> None:
    reply = Reply(Size(30, 12))
    reply.add("first paragraph that is broken in a narrow window\n\nsecond one that is broken in it ")
    reply.resize(Size(60, 20))
    reply.add("too")
    reply.stream.close()
    assert reply.window.text() == [
        "first paragraph that is broken",
        "in a narrow window",
        "",
        "second one that is broken in it too",
    ]


def test_what_a_narrower_window_scrolled_away_stands_as_it_was_and_goes_on_below() -> None:
    reply = Reply(Size(40, 24))
    reply.add("a row of thirty characters or so\nand on it goes")
    reply.resize(Size(16, 24))
    reply.add(", once")
    reply.stream.close()
    assert reply.window.text() == ["a row of thirty", "characters or so", " and on", "       it goes,", "once"]


def test_what_has_changed_since_comes_again_and_does_not_confuse_what_follows() -> None:
    reply = Reply(Size(40, 6))
    reply.add("```\n")
    reply.resize(Size(20, 6))
    reply.add("".join(f"line {number} of the code\n" for number in range(3)))
    reply.resize(Size(12, 6))
    reply.add("```")
    reply.stream.close()
    text = "".join("".join(reply.window.text()).split())
    assert [text.count(f"line{number}of") for number in range(3)] == [1, 1, 1]


def test_a_window_that_becomes_lower_has_fewer_rows_above_what_is_open() -> None:
    reply = Reply(Size(22, 24))
    reply.window.write("before\n" * 10)
    reply.add("settled\n\n" * 5 + " ".join(f"w{number}d" for number in range(1000, 1040)))
    reply.resize(Size(85, 16))
    reply.resize(Size(24, 16))
    assert reply.shows_all
    reply.stream.close()
    text = "".join("".join(reply.window.text()).split())
    assert [text.count(f"w{number}d") for number in range(1000, 1040)] == [1] * 40


def test_what_a_narrower_window_still_shows_is_painted_anew() -> None:
    reply = Reply(Size(40, 24))
    reply.add("1\n\n2\n\n3\n\na row of thirty characters or so\nand on it goes")
    reply.resize(Size(16, 24))
    assert reply.window.text() == ["1", "", "2", "", "3", "", "a row of thirty", "characters or so", "and on it goes"]


@pytest.mark.parametrize(("breaks_rows", "height"), [(True, 3), (False, 2)])
def test_a_terminal_that_cuts_rows_off_has_as_many_as_before(breaks_rows: bool, height: int) -> None:  # noqa: FBT001
    written: list[str] = []
    rows = PaintedRows(written.append, breaks_rows=breaks_rows)
    rows.show([Row("above", "above", 5)] * 5, [Row("x" * 20, "x" * 20, 20), Row("y", "y", 1)], 20, 10)
    assert rows.let_go(10, 10) == []
    rows.show([], [], 10, 10)
    assert f"\x1b[{height}A" in written[-1]


@pytest.mark.parametrize(
    ("environment", "breaks_rows"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-256color", "XTERM_VERSION": "XTerm(390)"}, False),
        ({"TERM": "tmux-256color", "XTERM_VERSION": "XTerm(390)", "TMUX": "/run/tmux,1,0"}, True),
        ({"TERM": "screen", "STY": "1.pts-0.host"}, False),
        ({"TERM": "linux"}, False),
    ],
)
def test_terminals_that_cut_rows_off_are_known(environment: dict[str, str], breaks_rows: bool) -> None:  # noqa: FBT001
    assert Screen(io.StringIO(), environment).breaks_rows is breaks_rows


def test_wide_characters_that_do_not_fit_begin_a_row() -> None:
    row = Row("日本語" * 3, "日本語" * 3, 18)
    assert [row.height(columns) for columns in (18, 17, 9, 8, 5, 2)] == [1, 2, 3, 3, 5, 9]
