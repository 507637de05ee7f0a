"""Makes what the parser hands on fit to be drawn.

The parser decodes what no filter of its source could see: entities, and percent escapes in links that stand for
themselves (``<http://a/%1B>``). And rich takes a ``</kbd>`` without its beginning for the end of a style of its own,
leaves all other HTML out, and with it the half of ``List<String>``, draws an image ahead of the block that it stands
in, where the end of the line is lost, and an address that is a link's text twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markdown_it.common.normalize_url import normalizeLink
from markdown_it.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from chorus_cli.core.text.safe_text import SafeTextStream

# The tag of a link that shows only its text; rich draws it in the style that has this name.
OWN_ADDRESS = "link"
_SHOWN = frozenset({"text", "code_inline"})
_SHOWN_ATTRIBUTES = ("href", "src")
_KEY, _KEY_END = "<kbd>", "</kbd>"
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def made_fit(tokens: Iterable[Token], safe: SafeTextStream) -> None:
    """Pass what the tokens show through ``safe``, and have images and links drawn where and as often as they stand.

    The beginnings and ends of keys that have no other half are dropped.
    """
    for token in tokens:
        if token.type in _SHOWN:
            token.content = _filtered(token.content, safe)
        for name in _SHOWN_ATTRIBUTES:
            if name in token.attrs:
                token.attrs[name] = _filtered(str(token.attrs[name]), safe)
        if token.children:
            made_fit(token.children, safe)
            whole = map(_with_html_shown, _with_whole_keys(token.children))
            token.children = _with_images_as_links(list(whole))
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


def _with_html_shown(token: Token) -> Token:
    """Return what shows a tag as it is written, but for line breaks and for keys, which have a style."""
    if token.type != "html_inline" or token.content in {_KEY, _KEY_END}:
        return token
    if _LINE_BREAK.fullmatch(token.content):
        return Token("hardbreak", "br", 0)
    return Token("text", "", 0, content=token.content)


def _with_images_as_links(tokens: Sequence[Token]) -> list[Token]:
    """Put a link in the place of each image, whose own texts have been through this already."""
    return [part for token in tokens for part in (_as_link(token) if token.type == "image" else (token,))]


def _as_link(image: Token) -> Sequence[Token]:
    address = str(image.attrs.get("src", ""))
    text = image.children or [Token("text", "", 0, content=address)]
    return Token("link_open", "a", 1, attrs={"href": address}), *text, Token("link_close", "a", -1)


def _mark_own_addresses(tokens: Iterable[Token]) -> None:
    """Have links drawn without their addresses where the texts are the addresses already.

    A link may be within another one, for an image is one too.
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
    """Return whether a text is an address, letter by letter, or with what the parser percent-encodes in it."""
    if text in {address, address.removeprefix("mailto:")}:
        return True
    # Up to the third slash, where the host stands, a letter may look like another one or like a slash; at a blank an
    # address would end.
    up_to_path = "/".join(text.split("/", 3)[:3])
    return address.startswith(up_to_path) and text.split() == [text] and normalizeLink(text) == address
