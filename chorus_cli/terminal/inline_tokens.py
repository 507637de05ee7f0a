"""Makes what the parser hands on fit to be drawn.

The parser decodes what no filter of its source could see: entities, and percent escapes in links that stand for
themselves (``<http://a/%1B>``). And rich takes a ``</kbd>`` without its beginning for the end of a style of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markdown_it.token import Token

    from chorus_cli.core.safe_text import SafeTextStream

_SHOWN = frozenset({"text", "code_inline", "image"})
_SHOWN_ATTRIBUTES = ("href", "src")
_KEY, _KEY_END = "<kbd>", "</kbd>"


def made_fit(tokens: Iterable[Token], safe: SafeTextStream) -> None:
    """Pass what the tokens show through ``safe``, and drop the beginnings and ends of keys that have no other half."""
    for token in tokens:
        if token.type in _SHOWN:
            token.content = _filtered(token.content, safe)
        for name in _SHOWN_ATTRIBUTES:
            if name in token.attrs:
                token.attrs[name] = _filtered(str(token.attrs[name]), safe)
        if token.children:
            made_fit(token.children, safe)
            token.children = _with_whole_keys(token.children)


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
