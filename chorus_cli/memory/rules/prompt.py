r"""Memory items in a request: the block of the system message, and the lines in a preamble.

    Memory:
    #12 TASK: call the plumber
    #15 CODE: def f():
          return 1

An item begins with its number at the beginning of a line. Every further line of its content is indented by two blanks,
after any line break that ``str.splitlines`` knows, so that no content can pass for another item or for a heading.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.memory.rules.items import ItemType
from chorus_cli.personas.rules.macros import sent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from chorus_cli.memory.rules.items import Item
    from chorus_cli.personas.rules.persona import Persona

HOT_HEADING = "Memory:"
RECALLED_HEADING = "From memory:"

_INDENT = "  "
_KEPT, _KNOWN = "Kept as", "That is in your memory already, as"
_TOKENS_OF_AN_ITEM = 10
_TOKENS_OF_A_LINE_BREAK = 2


def hot_block(items: Iterable[Item]) -> str:
    """Return the block of the HOT items for the system message, in order of id; empty if there is none."""
    return _block(HOT_HEADING, items)


def memory_lines(items: Iterable[Item]) -> str:
    """Return the lines of recalled items for the preamble of a user message, in order of id; empty if there is none."""
    return _block(RECALLED_HEADING, items)


def tokens_in_request(item: Item) -> int:
    """Return the estimated tokens of an item in a request, with its number, type and indentation.

    A content that is not counted is estimated at a token for each byte, which is the most there can be.
    """
    content = item.content
    counted = len(content.encode("utf-8", "surrogatepass")) if item.token_count is None else item.token_count
    return counted + _TOKENS_OF_AN_ITEM + _TOKENS_OF_A_LINE_BREAK * (len(content.splitlines()) - 1)


def written(item: Item) -> str:
    """Return an item as it stands in a request."""
    return f"#{item.id} {item.item_type}: {_indented(item.content)}"


def items_in(preamble: str) -> dict[int, str]:
    """Return the items in a preamble, as they are ``written``, by their ids."""
    if RECALLED_HEADING not in preamble:
        return {}
    blocks = _patterns().block.finditer(preamble)
    return {int(item["id"]): item[0] for block in blocks for item in _patterns().item.finditer(block["items"])}


def kept_line(item_id: int, *, was_known: bool = False) -> str:
    """Return the result of the tool by which a model has kept an item."""
    return f"{_KNOWN if was_known else _KEPT} #{item_id}."


def kept_id(result: str) -> int | None:
    """Return the id in such a result, ``None`` for any other text."""
    match = _patterns().kept.fullmatch(result)
    return int(match[1]) if match else None


def without_items(preamble: str, ids: Collection[int]) -> str:
    """Return a preamble without these items, and without the heading above them if none is left.

    Its other parts, which a line break or a blank line sets off and which begin with no blank, stay as they are.
    """

    def without(block: re.Match[str]) -> str:
        items = list(_patterns().item.finditer(block["items"]))
        kept = [item[0] for item in items if int(item["id"]) not in ids]
        if len(kept) == len(items):
            return block[0]
        if kept:
            return "".join([block["before"], RECALLED_HEADING, "\n", "\n".join(kept), block["after"]])
        return block["before"] if block["after"] else ""

    return _patterns().block.sub(without, preamble)


def already_said(item: Item, rows: Mapping[int, str]) -> bool:
    """Return whether the message an item was captured from is among ``rows`` (content by id) and still contains it."""
    if item.source_message_id is None:
        return False
    said = rows.get(item.source_message_id)
    return said is not None and item.content in said.replace("\r\n", "\n")


def _block(heading: str, items: Iterable[Item]) -> str:
    lines = [written(item) for item in sorted(items, key=lambda item: item.id)]
    return "\n".join([heading, *lines]) if lines else ""


def _indented(content: str) -> str:
    return _patterns().line_break.sub(rf"\g<0>{_INDENT}", content)


class _Patterns(NamedTuple):
    line_break: re.Pattern[str]
    item: re.Pattern[str]
    block: re.Pattern[str]
    kept: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    breaks = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
    line_break, rest = rf"(?:\r\n|[{breaks}])", rf"[^{breaks}]*+"
    item = rf"#(?P<id>[0-9]+) (?:{'|'.join(ItemType)}): {rest}(?:{line_break}{_INDENT}{rest})*"
    unnamed = item.replace("?P<id>", "?:")
    block = rf"(?P<before>\n{{0,2}})^{RECALLED_HEADING}\n(?P<items>{unnamed}(?:\n{unnamed})*)(?P<after>\n{{0,2}})"
    kept = re.compile(rf"(?:{_KEPT}|{_KNOWN}) #([0-9]+)\.")
    return _Patterns(re.compile(line_break), re.compile(item), re.compile(block, re.MULTILINE), kept)


def sent_items(persona: Persona, items: Sequence[Item]) -> Sequence[Item]:
    """Return memory items as they are sent: with their macros replaced, if the persona was made of a card."""
    return [_sent_item(persona, item) for item in items] if persona.has_card else items


def _sent_item(persona: Persona, item: Item) -> Item:
    content = sent(persona, item.content)
    if content == item.content:
        return item
    # No text has more tokens than characters, as far as names go.
    more = max(0, len(content) - len(item.content))
    tokens = None if item.token_count is None else item.token_count + more
    return item._replace(content=content, token_count=tokens)
