r"""The parser of replies, and corrections of its tokens before rich draws them.

The parser takes ``\(`` and ``\)``, with which models write formulas, literally, and names such as ``__init__`` are
no strong words: there CommonMark would show less than was said.

The parser decodes entities, and percent escapes in links whose text is their address (``<http://a/%1B>``), which no
filter of its source could see. And rich would lose or repeat words: it takes a ``</kbd>`` without its start for the end
of a style of its own, leaves out all other HTML, such as the half of ``List<String>``, draws an image ahead of its
block, where the end of the line is lost, and shows an address twice that is a link's text.

Link definitions that came after their links were drawn are shown as text, like the links: otherwise their addresses
would appear nowhere. Text that only looks like such a link, in code or with an address of its own, counts as one:
better a definition too many than an address lost.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.common.normalize_url import normalizeLink
from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from markdown_it.rules_inline import StateInline

    from chorus_cli.core.text.safe_text import SafeTextStream

# The tag of a link that shows only its text; rich draws it in the style that has this name.
OWN_ADDRESS = "link"
_SHOWN = frozenset({"text", "code_inline"})
_SHOWN_ATTRIBUTES = ("href", "src")
_KEY, _KEY_END = "<kbd>", "</kbd>"
_LABEL = re.compile(r"\\.|\[((?:\\.|[^\[\]\\])+)\]", re.DOTALL)
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_FORMULA_MARKS = ("\\(", "\\)")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def reply_parser() -> MarkdownIt:
    """Return a parser of CommonMark with tables and strikethrough, which keeps the marks of formulas."""
    parser = MarkdownIt().enable("strikethrough").enable("table")
    parser.inline.ruler.before("escape", "formula", _formula_mark)
    return parser


def _formula_mark(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - as the parser calls its rules
    """Take a mark of a formula as text; CommonMark would leave its backslash out."""
    mark = state.src[state.pos : state.pos + 2]
    if mark not in _FORMULA_MARKS:
        return False
    if not silent:
        state.pending += mark
    state.pos += len(mark)
    return True


def make_drawable(tokens: Iterable[Token], safe: SafeTextStream) -> None:
    """Filter the visible text of the tokens by ``safe``; show images as links, HTML as text and each address once.

    Unpaired key tags are dropped, and names such as ``__init__`` are text.
    """
    for token in tokens:
        if token.type in _SHOWN:
            token.content = _filtered(token.content, safe)
        for name in _SHOWN_ATTRIBUTES:
            if name in token.attrs:
                token.attrs[name] = _filtered(str(token.attrs[name]), safe)
        if token.children:
            make_drawable(token.children, safe)
            whole = map(_with_html_shown, _with_whole_keys(token.children))
            token.children = _with_whole_names(_with_images_as_links(list(whole)))
            _mark_own_addresses(token.children)


def _filtered(text: str, safe: SafeTextStream) -> str:
    return safe.feed(text) + safe.close()


def _with_whole_keys(tokens: Sequence[Token]) -> list[Token]:
    halves: set[int] = set()
    begun: list[int] = []
    for position, token in enumerate(tokens):
        if token.type == "html_inline" and token.content == _KEY:
            begun.append(position)
        elif token.type == "html_inline" and token.content == _KEY_END:
            if begun:
                begun.pop()
            else:
                halves.add(position)
    halves.update(begun)
    return [token for position, token in enumerate(tokens) if position not in halves] if halves else list(tokens)


def _with_whole_names(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with names such as ``__init__``, which look like strong words, as text."""
    whole: list[Token] = []
    for token in tokens:
        whole.append(token)
        match whole[-3:]:
            case [
                Token(type="strong_open", markup="__"),
                Token(type="text", content=name),
                Token(type="strong_close"),
            ] if _NAME.fullmatch(name):
                whole[-3:] = [Token("text", "", 0, content=f"__{name}__")]
    return whole


def _with_html_shown(token: Token) -> Token:
    """Return a tag as text, except line breaks, and keys, which have a style."""
    if token.type != "html_inline" or token.content in {_KEY, _KEY_END}:
        return token
    if _LINE_BREAK.fullmatch(token.content):
        return Token("hardbreak", "br", 0)
    return Token("text", "", 0, content=token.content)


def _with_images_as_links(tokens: Sequence[Token]) -> list[Token]:
    """Replace each image by a link; its own text has been corrected already."""
    return [part for token in tokens for part in (_as_link(token) if token.type == "image" else (token,))]


def _as_link(image: Token) -> Sequence[Token]:
    address = str(image.attrs.get("src", ""))
    text = image.children or [Token("text", "", 0, content=address)]
    return Token("link_open", "a", 1, attrs={"href": address}), *text, Token("link_close", "a", -1)


def _mark_own_addresses(tokens: Iterable[Token]) -> None:
    """Mark the links whose text is their address, so that it is shown once.

    A link may contain another one, because images are links too.
    """
    shown: list[str] = []
    begun: list[tuple[Token, int]] = []
    for token in tokens:
        if token.type == "link_open":
            begun.append((token, len(shown)))
        elif token.type == "link_close":
            opening, begin = begun.pop()
            address = str(opening.attrs["href"])
            if _says("".join(shown[begin:]), address):
                opening.type = token.type = "own_address"
                opening.tag = token.tag = OWN_ADDRESS
            else:
                shown.append(address)
        elif token.type != "html_inline":
            shown.append("\n" if token.tag == "br" else token.content)


def _says(text: str, address: str) -> bool:
    """Return whether a text is an address, either literally or before the parser percent-encoded it."""
    if text in {address, address.removeprefix("mailto:")}:
        return True
    # Up to the third slash, where the host stands, a letter may look like another one or like a slash; at a blank an
    # address would end.
    up_to_path = "/".join(text.split("/", 3)[:3])
    return address.startswith(up_to_path) and text.split() == [text] and normalizeLink(text) == address


def labels_in(tokens: Iterable[Token]) -> set[str]:
    """Return the labels of all links that the texts may refer to, as the parser keeps them."""
    texts = (token.content for token in tokens if token.type == "inline")
    labels = (match.group(1) for text in texts if "[" in text for match in _LABEL.finditer(text))
    return {normalizeReference(label) for label in labels if label}


def with_definitions(tokens: Sequence[Token], source: str, definitions: Iterable[Mapping[str, Any]]) -> list[Token]:
    """Return the blocks of ``source`` with these definitions as paragraphs behind the blocks above or around them."""
    shown = list(tokens)
    places: dict[int, list[str]] = {}
    for definition in definitions:
        begin, end = definition["map"]
        words = " ".join(" ".join(source.split("\n")[begin:end]).split())
        places.setdefault(_place(tokens, end), []).append(words[max(0, words.find("[")) :])
    for place in sorted(places, reverse=True):
        shown[place:place] = _paragraph(places[place])
    return shown


def _place(tokens: Sequence[Token], line: int) -> int:
    """Return the number of the first token of the block at the top level that begins at ``line`` or below."""
    blocks = (
        number
        for number, token in enumerate(tokens)
        if token.level == 0 and token.nesting >= 0 and token.map is not None and token.map[0] >= line
    )
    return next(blocks, len(tokens))


def _paragraph(lines: Sequence[str]) -> Iterator[Token]:
    parts = [part for line in lines for part in (Token("hardbreak", "br", 0), Token("text", "", 0, content=line))]
    yield Token("paragraph_open", "p", 1)
    yield Token("inline", "", 0, children=parts[1:])
    yield Token("paragraph_close", "p", -1)
