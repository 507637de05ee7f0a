"""No word or address of a reply is lost on the screen, and none is said twice, where rich would do so."""

from __future__ import annotations

import pytest

from tests.terminal.markdown.markdown_screens import Size, cut, streamed

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
        "one | two | three",
        "| four | five |",
        "six",
        "─" * 18,
        "1 |  | 3 | 4 | 5 |",
        "6",
    ]


def test_narrow_columns_stay_where_all_of_them_fit() -> None:
    table = "|a|b|c|d|e|f|\n|-|-|-|-|-|-|\n|1|2|3|4|5|6|\n"
    assert "1  2  3  4  5  6" in "".join(streamed([table], Size(20, 24)).text())


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
    assert rows == ["[a]", "[a]: /a", *code, "end"]


def test_what_is_defined_in_time_stands_as_if_no_definition_were_there() -> None:
    text = "[a]: /a\n\nsee [a] and [b]\n\nmore [c]\n"
    later = text + "\n[d]: /d\n"
    assert streamed(cut(text, 3), Size()).rows() == streamed(cut(later, 3), Size()).rows()
