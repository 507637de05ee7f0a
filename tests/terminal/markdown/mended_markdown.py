"""Markdown as rich draws it but for six mends, each made where the program does not make it.

HTML is made text before anything is drawn, blocks of it paragraphs. Links and images are written out from the parsed
tree, an image as a link to it, and a link whose text is its own address only once; the texts of cells are folded, not
the columns. Escaped parentheses keep their backslash, and lower-case names between two underscores on each side keep
these. The one column that stands for many that are too narrow is not here: the tests of it say what they want.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from markdown_it import MarkdownIt
from markdown_it.common.normalize_url import normalizeLink
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode
from rich.markdown import Markdown, TableDataElement

from chorus_cli.terminal.markdown.drawing import CODE

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore
    from rich.console import JustifyMethod
    from rich.markdown import MarkdownElement

_PLAIN_UP_TO_THE_PATH = re.compile(r"(?:[\w!#$&'()*+,.:;=?@~%-]*/){0,2}+[\w!#$&'()*+,.:;=?@~%-]*(?:/\S*)?", re.ASCII)
_BLANKS = {"softbreak": " ", "hardbreak": "\n"}


class _FoldedCell(TableDataElement):
    def __init__(self, justify: JustifyMethod) -> None:
        super().__init__(justify)
        self.content.overflow = "fold"


class MendedMarkdown(Markdown):
    """What ``MarkdownStream`` shows of a document in the end."""

    inlines = Markdown.inlines | {"link", "link_url"}
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "td_open": _FoldedCell,
        "th_open": _FoldedCell,
    }

    def __init__(self, text: str) -> None:
        super().__init__(text, hyperlinks=False)
        # It is only handed on to Syntax, which takes a theme too.
        self.code_theme = CODE  # type: ignore[assignment]
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
    if node.type == "html_inline" and "kbd>" not in node.content:
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
    text = "".join(_BLANKS.get(token.type, token.content) for token in inside if token.type != "html_inline")
    if address in {text, f"mailto:{text}"} or (
        address == normalizeLink(text) and _PLAIN_UP_TO_THE_PATH.fullmatch(text)
    ):
        return [Token("own", "link", 1), *inside, Token("own", "link", -1)]
    return [_text(text, "link"), _text(" ("), _text(address, "link_url"), _text(")")]


def _text(content: str, style: str = "") -> Token:
    return Token("styled" if style else "text", style, 0, content=content)
