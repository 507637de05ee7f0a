"""No word or address of a reply is lost or said twice; colours are few and readable, and lexers end when they must."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from prompt_toolkit.styles import merge_styles
from prompt_toolkit.styles.defaults import default_ui_style
from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]
from rich.console import Console
from rich.default_styles import DEFAULT_STYLES
from rich.style import Style

from chorus_cli.terminal.markdown import drawing
from chorus_cli.terminal.markdown.drawing import CODE, MARKDOWN
from chorus_cli.terminal.markdown.lexing import LexingProcess, is_too_costly, tokens_of
from chorus_cli.terminal.prompt.line import STYLE
from tests.terminal.command import await_death, is_alive
from tests.terminal.markdown.markdown_screens import DOCUMENTS, Size, at_once, cut, streamed

SENTENCE = "One two three ![four five](http://six.example/seven.png) eight nine ten eleven twelve thirteen fourteen."
WORDS = SENTENCE.replace("![", "").replace("](", " (")
STRUCTURES = {
    "a paragraph": "{}",
    "a paragraph after a paragraph": "zero\n\n{}",
    "a list item": "- {}\n- end",
    "a number": "1. {}",
    "a quote": "> {}",
    "a heading": "# {}",
    "a lower heading": "text\n### {}\ntext",
    "a table cell": "| {} |\n|---|\n| x |",
    "emphasis": "*{}*",
}
LONG_WORDS = ["a" * 33, "b" * 7, "1" * 90, "日" * 25, "http://c.example/" + "d" * 40]
COLUMNS = [80, 40, 20]

pytestmark = pytest.mark.usefixtures("true_colours")


def _shown(text: str, columns: int) -> str:
    """Return all that is shown but for blanks, bars and bullets, for a word may be folded anywhere."""
    return _squeezed("".join(streamed(cut(text, 9), Size(columns, 60)).text()))


def _squeezed(text: str) -> str:
    return "".join(character for character in text if not (character.isspace() or character in "▌•─"))


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
def test_an_image_stands_in_its_place_and_every_word_once_and_in_order(structure: str, columns: int) -> None:
    shown = _shown(structure.format(SENTENCE), columns)
    assert shown.count(_squeezed(WORDS)) == 1
    assert len(shown) - len(_squeezed(WORDS)) < len(structure)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a ![b c](d.png) e", "a b c (d.png) e"),
        ("![b](d.png 'title')", "b (d.png)"),
        ("a ![](d/e.png) f", "a d/e.png f"),
        ("a ![d.png](d.png) f", "a d.png f"),
        ("a ![b]() c", "a b () c"),
        ("a ![*b* `c` &amp; **d**](e) f", "a b c & d (e) f"),
        ("a ![b ![c](d) [e](f)](g) h", "a b c (d) e (f) (g) h"),
        ("[![badge](i.svg)](http://l/)", "badge (i.svg) (http://l/)"),
        ("[![](i.svg)](http://l/)", "i.svg (http://l/)"),
        ("[![shot](i.png)](i.png) end", "shot (i.png) (i.png) end"),
        ("[see ![b](c) here](d)", "see b (c) here (d)"),
        ("![a](b)![c](d)", "a (b)c (d)"),
        ("![a](javascript:x) ![b](vbscript:y)", "![a](javascript:x) ![b](vbscript:y)"),
        ("![a](data:text/html,x)", "![a](data:text/html,x)"),
        ("\\![a](b) `![c](d)`", "!a (b) ![c](d)"),
    ],
)
def test_an_image_is_its_words_and_its_address(text: str, seen: str) -> None:
    assert streamed([text], Size()).text() == [seen]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("the __init__ method", "the __init__ method"),
        ("a.__dict__, __name__.", "a.__dict__, __name__."),
        ("**__main__** and *__doc__*", "__main__ and __doc__"),
        ("[__call__](/c)", "__call__ (/c)"),
        ("__two words__ and __This__", "two words and This"),
        ("**init** and _init_", "init and init"),
        ("__a *b*__ and __`c`__", "a b and c"),
        (r"so \(a + b\) is", r"so \(a + b\) is"),
        (r"`\(a\)` \[b\] \*c\*", r"\(a\) [b] *c*"),
        (r"[\(a\)](/b\(c\))", r"\(a\) (/b(c))"),
    ],
)
def test_names_and_formulas_are_shown_as_they_were_written(text: str, seen: str) -> None:
    assert streamed(cut(text, 3), Size()).text() == [seen]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("A List<String> and a Vec<T> here", ["A List<String> and a Vec<T> here"]),
        ("- `a` <b>bold</b> <!-- said --> </x>", [" • a <b>bold</b> <!-- said --> </x>"]),
        ("one<br>two<BR />three", ["one", "two", "three"]),
        ("press <kbd>Ctrl</kbd>", ["press Ctrl"]),
        (
            "<details>\n<summary>Sum & such</summary>\ninside\n</details>\n\nafter",
            ["<details>", "<summary>Sum & such</summary>", "inside", "</details>", "after"],
        ),
        ("> <div>a &#27;[2J b</div>\n\n- <p>c", ["▌ <div>a &#27;[2J b</div>", " • <p>c"]),
    ],
)
def test_html_is_shown_as_it_is_written_but_for_line_breaks_and_keys(text: str, seen: list[str]) -> None:
    assert list(filter(None, streamed(cut(text, 3), Size()).text())) == seen


def test_a_line_break_in_a_cell_breaks_its_line() -> None:
    rows = streamed(["| a | b |\n|---|---|\n| one<br>two | three |\n"], Size()).text()
    assert [row.split() for row in rows if "o" in row] == [["one", "three"], ["two"]]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("at <http://auto.link/> now", "at http://auto.link/ now"),
        ("to <me@x.org> now", "to me@x.org now"),
        ("<mailto:me@x.org>", "mailto:me@x.org"),
        ("[me@x.org](mailto:me@x.org)", "me@x.org"),
        ("[http://x.y/z](http://x.y/z 'title')", "http://x.y/z"),
        ("[`http://x.y/z`](http://x.y/z) [**/a_b**](/a_b)", "http://x.y/z /a_b"),
        ("- <http://x.y>", " • http://x.y"),
        ("> <http://x.y>", "▌ http://x.y"),
        ("<http://b/ä>", "http://b/ä"),
        ("<http://b/%C3%A4?ö=#ü>", "http://b/ä?ö=#ü"),
        ("[http://b/ä](http://b/ä)", "http://b/ä"),
        ("<http://b/100%ä/%2F\\*>", "http://b/100%ä/%2F\\*"),
        ("<http://b/%ff>", "http://b/\ufffd (http://b/%ff)"),
        ("<http://b/a%20b>", "http://b/a b (http://b/a%20b)"),
        ("<http://b/a%C2%A0b>", "http://b/a\xa0b (http://b/a%C2%A0b)"),
        ("<http://bücher.example/ä>", "http://bücher.example/ä (http://xn--bcher-kva.example/%C3%A4)"),
        ("<http://good.example\uff0f@evil>", "http://good.example\uff0f@evil (http://good.example%EF%BC%8F@evil)"),
        ("<http://good.example\\@evil/>", "http://good.example\\@evil/ (http://good.example%5C@evil/)"),
        ("<http://good.example|@evil/>", "http://good.example|@evil/ (http://good.example%7C@evil/)"),
        ("[http://b/a](http://b/ä)", "http://b/a (http://b/%C3%A4)"),
        ("[x.y](http://x.y)", "x.y (http://x.y)"),
        ("[http://x.y](http://x.y/)", "http://x.y (http://x.y/)"),
        ("[http://good.example](http://evil.example)", "http://good.example (http://evil.example)"),
        ("[evil@x.org](mailto:me@x.org)", "evil@x.org (mailto:me@x.org)"),
        ("[a\nb](ab) [a*b*c](abc)", "a b (ab) abc"),
        ("[a ![b](c)](abc)", "a b (c) (abc)"),
        ("[![b](c)](b)", "b (c) (b)"),
        ("<javascript:x> [javascript:x](javascript:x)", "<javascript:x> [javascript:x](javascript:x)"),
    ],
)
def test_an_address_is_said_once_where_it_is_the_text_of_its_link(text: str, seen: str) -> None:
    assert [row for row in streamed([text], Size()).text() if row] == [seen]


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("word", LONG_WORDS)
@pytest.mark.parametrize("form", ["{}", "**{}** end", "`{}`", "begin {}"])
def test_a_long_word_in_a_table_is_folded_in_its_cell(form: str, word: str, columns: int) -> None:
    cell = form.format(word)
    table = f"| | {cell} |\n|---|---|\n| x | |\n| | {cell} |\n"
    plain = _squeezed(cell.replace("*", "").replace("`", ""))
    assert _shown(table, columns) == f"{plain}x{plain}"


@pytest.mark.parametrize("columns", [*COLUMNS, 9])
@pytest.mark.parametrize("count", range(1, 13))
def test_all_of_a_table_is_there_however_many_columns_it_has(count: int, columns: int) -> None:
    words = [[f"{letter}{number:02}日x" for number in range(count)] for letter in "abc"]
    rows = ["|" + "|".join(row) + "|\n" for row in words]
    shown = _shown(rows[0] + "|" + "---|" * count + "\n" + "".join(rows[1:]), columns)
    assert sorted(shown.replace("|", "")) == sorted("".join(map("".join, words)))


def test_the_cells_of_a_row_share_a_column_where_each_had_too_narrow_a_one() -> None:
    table = "| one | two | three | four | five | six |\n|-|-|-|-|-|-|\n| 1 | | 3 | **4** | 5 | 6 |\n"
    assert [row.strip() for row in streamed([table], Size(20, 24)).text() if row] == [
        "one | two | three |",
        "four | five | six",
        "─" * 20,
        "1 |  | 3 | 4 | 5 | 6",
    ]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Sky [1]…\n\n[1]: https://example.com/sky", ["Sky [1]…", "[1]: https://example.com/sky"]),
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
    assert rows == ["[a]", "[a]: /a", "── python " + "─" * 10, *code, "─" * 20, "end"]


def test_what_is_defined_in_time_stands_as_if_no_definition_were_there() -> None:
    text = "[a]: /a\n\nsee [a] and [b]\n\nmore [c]\n"
    later = text + "\n[d]: /d\n"
    assert streamed(cut(text, 3), Size()).rows() == streamed(cut(later, 3), Size()).rows()


PROGRAM = 'def f(x: int) -> str:\n    """Say\n\n    more."""\n    return f"{x}\u20ac"\n\n\nf(1)\n'
PATIENCE_SECONDS = 30.0
RUNS = (" ", "\t", "\n", "a", "1", '"', "'", "(", "[", "{", "<", "/*", "#", "\\", "=", ".", "{{", "$", "%", "-")
STARTER = """
import sys, time
from chorus_cli.terminal.markdown.lexing import LexingProcess
lexing = LexingProcess()
lexing.tokens("python", "x = 1")
print(lexing.served.process.pid, flush=True)
time.sleep(60)
"""


def pid_of(lexing: LexingProcess) -> int:
    assert lexing.served is not None
    return lexing.served.process.pid


def test_the_colours_are_those_of_this_process() -> None:
    with closing(LexingProcess(PATIENCE_SECONDS)) as lexing:
        assert list(lexing.tokens("python", PROGRAM) or ()) == tokens_of("python", PROGRAM)


def test_text_and_code_that_costs_too_much_need_no_process() -> None:
    lexing = LexingProcess()
    assert lexing.tokens("text", "x") is lexing.tokens("c", "\n" * 12_000) is None
    assert lexing.served is None


def test_one_that_does_not_answer_is_killed_and_not_asked_again() -> None:
    with closing(LexingProcess(5)) as lexing:
        assert lexing.tokens("python", PROGRAM)
        pid = pid_of(lexing)
        os.kill(pid, signal.SIGSTOP)
        begun = time.monotonic()
        assert lexing.tokens("python", PROGRAM * 200) is None
        assert lexing.tokens("python", PROGRAM) is None
        assert time.monotonic() - begun < 2 * 5
        assert lexing.served is None
        assert not is_alive(pid)


def test_one_that_takes_long_ends_itself() -> None:
    with closing(LexingProcess(PATIENCE_SECONDS)) as lexing:
        begun = time.monotonic()
        assert lexing.answer("cpp", f"a{' ' * 12_000}!") is None
        assert time.monotonic() - begun < PATIENCE_SECONDS / 2
        assert lexing.served is None


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_it_knows_no_keys_and_does_not_hear_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    with closing(LexingProcess(PATIENCE_SECONDS)) as lexing:
        lexing.tokens("python", PROGRAM)
        pid = pid_of(lexing)
        assert b"OPENAI_API_KEY" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert os.getsid(pid) == pid


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_it_ends_with_its_starter_even_if_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert is_alive(pid)
        starter.kill()
    await_death(pid)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_every_lexer_answers_or_is_stopped_whatever_it_is_given() -> None:
    slowest, lexing = ("", "", 0.0), LexingProcess()
    for name in sorted(aliases[0] for _, aliases, _, _ in get_all_lexers() if aliases):
        for run in RUNS:
            for code in (run * 150 + "!", f'"{run * 60}\n' * 40):
                begun = time.monotonic()
                if lexing.tokens(name, code.expandtabs(4)) is None:
                    lexing.close()
                    lexing = LexingProcess()
                slowest = max(slowest, (name, run, time.monotonic() - begun), key=lambda found: found[2])
    lexing.close()
    assert slowest[2] < 5, slowest


STRING = 'int x = "y";\n'
TOO_MUCH = {
    "blanks": ("cpp", f"{STRING}a{' ' * 12_000}!"),
    "newlines": ("autohotkey", f"{STRING}{chr(10) * 1_500}x"),
    "tabs": ("autoit", f"{STRING}{chr(9) * 6_000}x"),
    "blanks of several kinds": ("c", STRING + " \n\t" * 400 + "x"),
    "a long line": ("python", STRING + "x = 1;" * 1_000),
    "few blanks, in 4 kB": ("c", STRING + " " * 4_000 + "x"),
}


@pytest.mark.parametrize(("language", "code"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_no_lexer_looks_at_what_is_too_much_for_some(language: str, code: str) -> None:
    assert is_too_costly(code.expandtabs(4))
    named, plain = (streamed([f"```{name}\n{code}\n```\nend\n"], Size()).rows() for name in (language, "text"))
    assert named[1:] == plain[1:]


@pytest.mark.parametrize(
    ("code", "is_too_much"),
    [
        *[("x" * 40_000, True), ("x = 1\n" * 10_000, True)],
        *[("\n" * 100 + "x", False), ("x" + " " * 150 + "y", False), ("x = 1\n" * 2_000, False), ("x" * 2_000, False)],
    ],
)
def test_what_people_write_is_looked_at_and_very_much_code_is_not(code: str, *, is_too_much: bool) -> None:
    assert is_too_costly(code) == is_too_much


def test_a_string_over_the_seam_of_two_parts_keeps_its_text_and_may_lose_its_colour() -> None:
    text = '```python\nx = """\n' + "".join(f"  line {number}\n" for number in range(60)) + '"""\n```\n\nend\n'
    assert streamed(cut(text, 40), Size()).text() == at_once(text, Size()).text()


PALETTE_COLOURS = {"red", "blue", "magenta"}
MODULES = sorted(Path(drawing.__file__).parent.parent.rglob("*.py"))
NUMBERED = re.compile(r"\\x1b\[([0-9;]*(?:[34]|9|10)[0-9;]*)m")
RED = {"31"}
NAMES = re.compile(r"\b(?:ansi|bright_?)?(?:black|red|green|yellow|blue|magenta|cyan|white|gr[ae]y)\b|\"#[0-9a-f]{3,6}")
OWN_GROUND = {"", "default"}
SHOWN_BY_THE_PROMPT = (
    *("completion-menu", "completion-menu.completion", "completion-menu.completion.current", "control-character"),
    *("completion-menu.meta.completion", "completion-menu.meta.completion.current", "scrollbar.background"),
    *("scrollbar.button", "scrollbar.arrow", "search", "incsearch", "incsearch.current", "selected"),
    *("sign", "bottom-toolbar", "bottom-toolbar.text", "warning"),
)
STYLES = Console(theme=MARKDOWN).get_style
# Keys have no style, because their tags are left out.
NAMED = [each for each in DEFAULT_STYLES if each.startswith(("markdown.", "table.")) and each != "markdown.kbd"]


def is_readable(style: Style) -> bool:
    """Tell whether letters have a colour of the palette, and no ground but the terminal's own."""
    return style.bgcolor is None and (style.color is None or style.color.name in PALETTE_COLOURS)


@pytest.mark.parametrize("style", [*map(STYLES, NAMED), *map(CODE.get_style_for_token, CODE.style_map)], ids=str)
def test_a_style_of_markdown_or_code_or_a_table_names_only_colours_of_the_palette(style: Style) -> None:
    assert is_readable(style)


@pytest.mark.parametrize("name", SHOWN_BY_THE_PROMPT)
def test_a_style_of_the_prompt_names_only_colours_of_the_palette(name: str) -> None:
    attributes = merge_styles([default_ui_style(), STYLE]).get_attrs_for_style_str(f"class:{name}")
    assert attributes.color in OWN_GROUND | {f"ansi{colour}" for colour in PALETTE_COLOURS}
    assert attributes.bgcolor in OWN_GROUND


@pytest.mark.parametrize("name", DOCUMENTS)
def test_whatever_markdown_shows_has_the_colours_of_the_palette_on_the_terminal_s_own_ground(name: str) -> None:
    cells = [cell for row in streamed([DOCUMENTS[name]], Size()).rows() for cell in row]
    assert {cell.fg for cell in cells} <= OWN_GROUND | PALETTE_COLOURS
    assert {cell.bg for cell in cells} <= OWN_GROUND


def test_no_module_of_the_terminal_writes_another_colour() -> None:
    """But for those that are looked at above."""
    texts = {f"{path.parent.name}/{path.name}": path.read_text(encoding="utf-8") for path in MODULES}
    assert {"prompt/line.py", "markdown/stream.py", "screen/output.py", "terminal/repl.py"} <= texts.keys()
    assert [name for name, text in texts.items() if set(NUMBERED.findall(text)) - RED] == []
    assert [name for name, text in texts.items() if NAMES.search(text)] == ["markdown/drawing.py", "prompt/line.py"]
