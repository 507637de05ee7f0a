"""Colours of code have a bounded cost: code that is too costly to lex is drawn as text, and so is all code after it."""

from __future__ import annotations

import re
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from chorus_cli.terminal.markdown.lexing import ROOT, LexingLimit, resumption_points
from tests.terminal.markdown.markdown_screens import Size, cut, streamed

if TYPE_CHECKING:
    from collections.abc import Callable

STRING = 'int x = "y";\n'
TOO_MUCH = {
    "blanks": ("cpp", f"{STRING}a{' ' * 12_000}!"),
    "newlines": ("autohotkey", f"{STRING}{chr(10) * 1_500}x"),
    "tabs": ("autoit", f"{STRING}{chr(9) * 6_000}x"),
    "blanks of several kinds": ("c", STRING + " \n\t" * 400 + "x"),
    "a long line": ("python", STRING + "x = 1;" * 1_000),
    "few blanks, in 4 kB": ("c", STRING + " " * 4_000 + "x"),
}

pytestmark = pytest.mark.usefixtures("true_colours")


def never_called() -> None:
    pytest.fail("A lexer looks at what is too much for it.")


def hopeless() -> object:
    """Search for a match that is not there in more ways than anybody can try."""
    return re.match(r"(a|aa)+$", "a" * 100 + "b")


@pytest.mark.parametrize(("language", "code"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_no_lexer_looks_at_what_is_too_much_for_some(language: str, code: str) -> None:
    assert LexingLimit().run(code.expandtabs(4), never_called) is None
    named, plain = (streamed([f"```{name}\n{code}\n```\nend\n"], Size()).rows() for name in (language, "text"))
    assert named == plain


@pytest.mark.parametrize("code", ["x" * 40_000, "x = 1\n" * 10_000])
def test_nor_at_very_much_code(code: str) -> None:
    assert LexingLimit().run(code, never_called) is None


@pytest.mark.parametrize("code", ["\n" * 100 + "x", "x" + " " * 150 + "y", "x = 1\n" * 2_000, "x" * 2_000])
def test_what_people_write_is_looked_at(code: str) -> None:
    assert LexingLimit().run(code, lambda: "tokens") == "tokens"


def test_a_lexer_that_does_not_come_back_is_given_up_and_no_other_is_asked_in_this_reply() -> None:
    limit = LexingLimit(0.05)
    assert limit.run("code", hopeless) is None
    assert limit.run("code", never_called) is None
    assert LexingLimit().run("code", lambda: "tokens") == "tokens"


def test_a_lexer_has_a_second_of_processor_time_at_most() -> None:
    begun = time.process_time()
    assert LexingLimit().run("code", hopeless) is None
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(("blanks", "lines"), [(1, {3}), (400, {1, 2, 3})])
def test_code_that_no_lexer_looks_at_can_be_parted_at_any_line(blanks: int, lines: set[int]) -> None:
    comment = f"/*\n{' ' * blanks}\n*/\nx"
    assert set(resumption_points("c", comment, ROOT, LexingLimit())) == lines


def test_a_reply_that_puzzles_its_lexer_comes_to_its_end() -> None:
    text = f"```perl\n{'s{{' * 33_000}\n```\n\nend\n"
    assert streamed(cut(text, 5_000), Size(), frames_every=20).text()[-1] == "end"


@pytest.mark.parametrize("work", [lambda: "tokens", hopeless], ids=["in time", "too late"])
def test_a_signal_that_comes_late_does_no_harm(work: Callable[[], object]) -> None:
    LexingLimit(0.05).run("code", work)
    signal.raise_signal(signal.SIGVTALRM)
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)


def test_elsewhere_than_in_the_main_thread_nothing_is_held_up_and_nothing_is_limited() -> None:
    found: list[str | None] = []
    thread = threading.Thread(target=lambda: found.append(LexingLimit().run("code", lambda: "tokens")))
    thread.start()
    thread.join()
    assert found == ["tokens"]
