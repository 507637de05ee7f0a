"""Code that is too costly to lex is drawn as text; a fence that is settled in parts is lexed part by part."""

from __future__ import annotations

import pytest

from chorus_cli.terminal.markdown.lexing import is_too_costly
from tests.terminal.markdown.markdown_screens import Size, at_once, cut, streamed

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


@pytest.mark.parametrize(("language", "code"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_no_lexer_looks_at_what_is_too_much_for_some(language: str, code: str) -> None:
    assert is_too_costly(code.expandtabs(4))
    named, plain = (streamed([f"```{name}\n{code}\n```\nend\n"], Size()).rows() for name in (language, "text"))
    assert named == plain


@pytest.mark.parametrize("code", ["x" * 40_000, "x = 1\n" * 10_000])
def test_nor_at_very_much_code(code: str) -> None:
    assert is_too_costly(code)


@pytest.mark.parametrize("code", ["\n" * 100 + "x", "x" + " " * 150 + "y", "x = 1\n" * 2_000, "x" * 2_000])
def test_what_people_write_is_looked_at(code: str) -> None:
    assert not is_too_costly(code)


def test_a_reply_that_puzzles_its_lexer_comes_to_its_end() -> None:
    text = f"```perl\n{'s{{' * 33_000}\n```\n\nend\n"
    assert streamed(cut(text, 5_000), Size(), frames_every=20).text()[-1] == "end"


def test_a_string_over_the_seam_of_two_parts_keeps_its_text_and_may_lose_its_colour() -> None:
    text = '```python\nx = """\n' + "".join(f"  line {number}\n" for number in range(60)) + '"""\n```\n\nend\n'
    assert streamed(cut(text, 40), Size()).text() == at_once(text, Size()).text()
