"""The text of a screen, and of the scrollback above it, after Markdown was shown: at once by rich, or as it came.

The look that Chorus declares is rich's here too. Else rich alone draws with six mends, each made where the program does not make it. HTML is made text before anything is
drawn, blocks of it paragraphs. Links and images are written out from the parsed tree, an image as a link to it, and a
link whose text is its own address only once; the texts of cells are folded, not the columns. Escaped parentheses keep
their backslash, and lower-case names between two underscores on each side keep these."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import pyte
from markdown_it import MarkdownIt
from markdown_it.common.normalize_url import normalizeLink
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.markdown import CodeBlock, Markdown, MarkdownElement, TableDataElement
from rich.syntax import Syntax

from chorus_cli.terminal.markdown.drawing import (
    CODE,
    LOOK,
    MARKDOWN,
    SceneBreak,
    SpokenParagraph,
    code_between_rules,
)
from chorus_cli.terminal.markdown.lexing import LexingProcess, is_too_costly, tokens_of
from chorus_cli.terminal.markdown.stream import MarkdownStream
from chorus_cli.terminal.screen.painted_rows import PaintedRows, Row
from tests.terminal.screen.screen_cells import DimScreen, cells_in_use

_PLAIN_UP_TO_THE_PATH = re.compile(r"(?:[\w!#$&'()*+,.:;=?@~%-]*/){0,2}+[\w!#$&'()*+,.:;=?@~%-]*(?:/\S*)?", re.ASCII)
_BLANKS = {"softbreak": " ", "hardbreak": "\n"}


class _FoldedCell(TableDataElement):
    def __init__(self, justify: JustifyMethod) -> None:
        super().__init__(justify)
        self.content.overflow = "fold"


class _Code(CodeBlock):
    """Code that has come whole, and is lexed by rich."""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> CodeBlock:
        # An indented block, which names no language, has no words behind its fence.
        return cls("".join(token.info.split()[:1]), markdown.code_theme)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Syntax(str(self.text).rstrip(), self.lexer_name or "text", theme=CODE, word_wrap=True)
        return code_between_rules(code, self.lexer_name, options.max_width)


class MendedMarkdown(Markdown):
    """What ``MarkdownStream`` shows of a document in the end."""

    inlines = Markdown.inlines | {"link", "link_url"}
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        **LOOK,
        "fence": _Code,
        "code_block": _Code,
        "td_open": _FoldedCell,
        "th_open": _FoldedCell,
    }

    def __init__(self, text: str) -> None:
        super().__init__(text, hyperlinks=False)
        parser = MarkdownIt().enable("strikethrough").enable("table")
        parser.core.ruler.before("text_join", "parentheses", _with_backslashes)
        self.parsed = [part for token in parser.parse(text) for part in _paragraph(token)]
        for token in self.parsed:
            if token.type == "inline":
                token.children = _inside(SyntaxTreeNode(token.children or []))


def _with_backslashes(state: StateCore) -> None:
    for token in walked(state.tokens):
        if token.info == "escape" and token.content in {"(", ")"}:
            token.content = token.markup


def walked(tokens: Iterable[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from walked(token.children or [])


def _inside(node: SyntaxTreeNode) -> list[Token]:
    return [token for child in node.children for token in _mended(child)]


def _paragraph(token: Token) -> list[Token]:
    if token.type != "html_block":
        return [token]
    lines = token.content.rstrip("\n").split("\n")
    children = [part for line in lines for part in (Token("hardbreak", "br", 0), _text(line))][1:]
    inline = Token("inline", "", 0, children=children)
    return [Token("paragraph_open", "p", 1), inline, Token("paragraph_close", "p", -1)]


def _mended(node: SyntaxTreeNode) -> list[Token]:
    if node.type == "html_inline" and "kbd>" in node.content:
        return []
    if node.type == "html_inline":
        is_break = node.content.lower().replace(" ", "") in {"<br>", "<br/>"}
        return [Token("hardbreak", "br", 0) if is_break else _text(node.content)]
    if node.type == "image":
        address = str(node.attrs["src"])
        return _link(_inside(node) or [_text(address)], address)
    if node.type == "link":
        return _link(_inside(node), str(node.attrs["href"]))
    if node.type == "strong" and node.markup == "__" and [child.type for child in node.children] == ["text"]:
        name = node.children[0].content
        if re.fullmatch(r"[a-z](_|[a-z]|[0-9])*", name):
            return [_text(f"__{name}__")]
    if node.nester_tokens:
        return [node.nester_tokens.opening, *_inside(node), node.nester_tokens.closing]
    return node.to_tokens()


def _link(inside: Sequence[Token], address: str) -> list[Token]:
    text = "".join(_BLANKS.get(token.type, token.content) for token in inside)
    if address in {text, f"mailto:{text}"} or (
        address == normalizeLink(text) and _PLAIN_UP_TO_THE_PATH.fullmatch(text)
    ):
        return [Token("own", "link", 1), *inside, Token("own", "link", -1)]
    return [_text(text, "link"), _text(" ("), _text(address, "link_url"), _text(")")]


def _text(content: str, style: str = "") -> Token:
    return Token("styled" if style else "text", style, 0, content=content)


_HISTORY_LINES = 100_000


@dataclass(frozen=True)
class Size:
    columns: int = 80
    lines: int = 24

    def __call__(self) -> os.terminal_size:
        return os.terminal_size((self.columns, self.lines))


class LexersHere(LexingProcess):
    """The lexers, without their process and its limit."""

    def tokens(self, language: str, code: str) -> list[tuple[object, str]] | None:
        return None if is_too_costly(code) else tokens_of(language, code)


class StreamHere:
    """A stream that is painted as the chat paints it, but parsed and drawn where it is called, not in a thread."""

    def __init__(self, write: Callable[[str], None], size: Callable[[], Any] = Size(), **look: bool) -> None:
        self.stream = MarkdownStream(LexersHere(), **look)
        self._rows = PaintedRows(write)
        self._size = size

    def feed(self, text: str) -> None:
        self.stream.feed(text)

    def advance(self) -> bool:
        """Parse and settle a few milliseconds' worth of queued text; return whether more is queued."""
        return self.stream.advance(self._size())

    def paint(self) -> None:
        self._show(self.stream.frame(self._size(), max(1, self._size().lines - 1)))

    def close(self) -> None:
        while not self.stream.finish(self._size()):
            pass
        self._show([])

    def _show(self, rows: list[Row]) -> None:
        self._rows.show(self.stream.take_settled(), rows, *self._size())


class _Screen(DimScreen):
    """A screen that keeps its text when it is cleared, and knows blanks that were written dim, as tmux does."""

    def erase_in_display(self, how: int = 0, *arguments: Any, **options: Any) -> None:
        if how == 0 and (self.cursor.x, self.cursor.y) == (0, 0):
            self.history.top.extend(self.buffer[line] for line in range(self.lines))
            self.buffer.clear()
        super().erase_in_display(how, *arguments, **options)


class Window:
    """A terminal to write to, which does what tmux does."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.screen = _Screen(size.columns, size.lines, history=_HISTORY_LINES)
        self.screen.set_mode(pyte.modes.LNM)
        self._stream = pyte.Stream(self.screen)

    def resize(self, size: Size) -> None:
        """Take another size and break the rows that are wider; broken rows stay broken."""
        screen = self.screen
        standing = [*screen.history.top, *(screen.buffer[line] for line in range(screen.lines))]
        cursor = len(screen.history.top) + screen.cursor.y
        # Empty rows at the end give way first.
        end = len(standing) - min(max(0, screen.lines - size.lines), len(standing) - 1 - cursor)
        broken = [_broken(self._cells(row), size.columns) for row in standing[:end]]
        rows = [self._row(part) for parts in broken for part in parts]
        top = max(0, len(rows) - size.lines)
        self.size = size
        screen.resize(size.lines, size.columns)
        screen.history.top.clear()
        screen.history.top.extend(rows[:top])
        screen.buffer.clear()
        screen.buffer.update(enumerate(rows[top:]))
        screen.cursor.x, screen.cursor.y = 0, max(0, sum(map(len, broken[:cursor])) - top)

    def _row(self, cells: list[Any]) -> Any:
        row: Any = pyte.screens.StaticDefaultDict(self.screen.default_char)
        row.update(enumerate(cells))
        return row

    def write(self, text: str) -> None:
        self._stream.feed(text)

    def rows(self) -> list[list[Any]]:
        """Return each row as its cells, with their colours and styles, as far as something stands there."""
        screen = self.screen
        rows = [
            self._cells(row) for row in (*screen.history.top, *(screen.buffer[line] for line in range(screen.lines)))
        ]
        return _without_end(rows, [])

    def text(self) -> list[str]:
        """Return each row's characters, without blanks at the end of any."""
        return _without_end(["".join(cell.data for cell in row).rstrip() for row in self.rows()], "")

    def current_size(self) -> os.terminal_size:
        return self.size()

    def _cells(self, row: Any) -> list[Any]:
        return _without_end(cells_in_use(row, self.size.columns), self.screen.default_char)


class SpokenMarkdown(MendedMarkdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **MendedMarkdown.elements,
        "paragraph_open": SpokenParagraph,
        "hr": SceneBreak,
    }

    def __init__(self, markup: str) -> None:
        super().__init__(markup)
        for token in self._flatten_tokens(self.parsed):
            token.type = "hardbreak" if token.type == "softbreak" else token.type


def at_once(text: str, size: Size, *, is_spoken: bool = False) -> Window:
    """Show ``text`` by rich alone, but for its mends."""
    file = io.StringIO()
    console = Console(
        file=file,
        theme=MARKDOWN,
        force_terminal=True,
        color_system="truecolor",
        width=size.columns,
        height=size.lines,
        legacy_windows=False,
        _environ={},
    )
    console.print((SpokenMarkdown if is_spoken else MendedMarkdown)(text))
    window = Window(size)
    window.write(file.getvalue())
    return window


def streamed(chunks: Iterable[str], size: Size, *, frames_every: int = 1, is_spoken: bool = False) -> Window:
    """Show the chunks as they come, and paint after every so many."""
    window = Window(size)
    stream = StreamHere(window.write, size, is_spoken=is_spoken)
    for number, chunk in enumerate(chunks):
        stream.feed(chunk)
        while stream.advance():
            pass
        if number % frames_every == 0:
            stream.paint()
    stream.close()
    return window


def cut(text: str, length: int) -> list[str]:
    return [text[start : start + length] for start in range(0, len(text), length)]


def randomly_cut(text: str, random: Random, longest: int = 0) -> list[str]:
    chunks, longest = [], longest or random.choice([1, 4, 30])
    while text:
        length = random.randint(1, longest)
        chunks.append(text[:length])
        text = text[length:]
    return chunks


def assert_same(
    text: str,
    chunks: Iterable[str],
    size: Size,
    *,
    frames_every: int = 1,
    name: str = "",
    is_spoken: bool = False,
) -> None:
    """Compare ``text`` shown at once with its chunks shown as they come; ``name`` tells which text it was."""
    expected = at_once(text, size, is_spoken=is_spoken)
    found = streamed(chunks, size, frames_every=frames_every, is_spoken=is_spoken)
    assert found.text() == expected.text(), name
    assert found.rows() == expected.rows(), name


def _broken(cells: list[Any], columns: int) -> list[list[Any]]:
    """Return a row in parts that fit; a wide character has an empty cell behind it."""
    parts: list[list[Any]] = [[]]
    for number, cell in enumerate(cells):
        width = 1 + (number + 1 < len(cells) and cells[number + 1].data == "")
        if cell.data and len(parts[-1]) + width > columns:
            parts.append([])
        parts[-1].append(cell)
    return parts


def _without_end(items: list[Any], empty: Any) -> list[Any]:
    end = len(items)
    while end and items[end - 1] == empty:
        end -= 1
    return items[:end]


# ruff: noqa: E501, RUF001 - a document is easier to read in one line, and full-width letters are meant

DOCUMENTS = {
    "headings": "# one\n## two ##\n### three # more\n####### seven\n#none\n#\n###### six\n    # code\n\n## *e* `c` #\ntext\n# h\ntext\n",
    "fences": "```\nplain\n```\ntext\n~~~~ python more\ndef f(): ...\n~~~\n~~~~\n```js\nlet x = `y`\n````\n  ```\n  a\n b\n```\nend\n",
    "an unknown language": "```nosuchlanguage\nfoo(bar)\n```\n",
    "html of seven kinds": "<pre>\nx\n\ny</pre>\ntext\n\n<!-- a\n\nb -->\n\n<?php\n\n?>\n<!DOCTYPE x>\n\n<![CDATA[\n\n]]>\n"
    "<div>\n*a*\n\n*b*\n</div>\n\n<x-y a='b'>\n*c*\n\ntext\n<x-y>\n",
    "inline html": "a <b>bold</b> <br/> <kbd>Ctrl</kbd>+<kbd>C</kbd> <!-- no --> </x> <33> <a href='x'>y</a>\n",
    "images": "![alone](http://a.example/b.png)\n\ntext ![in *it*](c.png) text\n\n- ![d](e)\n- f\n\n# ![g](h) i\n\n| ![j](k) | l |\n|--|--|\n| m | ![](n/o.png) |\n",
    "images among words": "[u]: /v\n\nbefore ![a city](http://a.example/b.png) and after it, past the end of a line that is long enough\n\n- an item ![*of* `c`](d)\n  > quoted ![](e/f.png) end\n\n## A heading ![&amp; ![g](h) [i](j)](k)\n\n[![badge](l.svg)](http://m) [![n](n)](n) [![](o)](p) ![]() x ![q\nr](s) ![t][u]\n",
    "addresses as texts": "<http://a.example/b?c=d&e> and <me@b.example> [http://c](http://c) [`d`](d) [**e**](e 'f') [MAILTO:x@y](mailto:x@y) [x@y](mailto:x@y) [f\ng](fg) [http://h](http://h/) []() [](i) <http://j/ä>\n\n- <http://k.example/long/enough/to/be/folded/in/a/narrow/terminal>\n\n| <http://l> | [m](m) |\n|--|--|\n| ![n](n) | **<o@p.q>** |\n",
    "long words in a table": "| heading"
    + "heading" * 4
    + " | b |\n|--|--:|\n| "
    + "word" * 25
    + " | and "
    + "words" * 20
    + " |\n| 日本語のテキストはどこでも折り返すことができます | `"
    + "code" * 10
    + "` |\n| x !["
    + "alt" * 20
    + "](http://a.example/b.png) | y |\n",
    "links that are refused": "[a](javascript:x) [b](data:text/html,x) <javascript:x> [c](file:///x) ![d](data:image/png;base64,AA)\n",
    "tables": "before\n\n| a | b | c |\n|:--|:-:|--:|\n| 1 | **2** |\n| x | `y|z` | \\| | more |\nlazy\n\na | b\n-|-\n1 | 2\n> q\n\n| no |\n\n|a|\n|-|\n",
    "a table within a paragraph": "text\na | b\n--|--\nc | d\n# h\n",
    "a table in a list and a quote": "- | a | b |\n  |---|---|\n  | 1 | 2 |\n- x\n\n> | a |\n> |---|\n> | b |\n",
    "wide characters": "# 日本語の見出し\n\n日本語のテキストはどこでも折り返すことができます。日本語のテキストはどこでも折り返すことができます。\n\n- 한국어 항목\n\n| 名前 | 値 |\n|--|--|\n| 甲 | 乙 |\n",
    "combining characters and emoji": "e\u0301a\u0308 no\u0308el z\u0335\u0321\u031b 👍🏽 ❤\ufe0f 👩\u200d👩\u200d👧 ½ ｗｉｄｅ\n\n- 👩\u200d🚀 in an item that is long enough to be wrapped once or twice\n",
    "long words": f"# {'heading' * 15}\n\n{'word' * 60}\n\n- {'item' * 40}\n\n```\n{'code' * 50}\n```\n",
    "markup of rich": "[red]x[/red] [/foo] [bold] :smile: [link=http://a]b[/link]\n\n```\n[/foo]\n```\n",
    "nothing": "",
    "only blanks": "\n  \n\t\n",
    "no end of line": "# a\ntext",
}
