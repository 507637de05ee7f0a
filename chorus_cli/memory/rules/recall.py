"""The memory items that a message refers to (by number, by rare words, by keys), and their text for a model.

In a message every two neighbouring characters of Chinese, Korean or Katakana make a word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

from chorus_cli.core.text.apart import APART, set_apart
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.search_query import folded
from chorus_cli.log.rules.stop_words import FUNCTION_WORDS
from chorus_cli.memory.rules.capture import FENCE_MARKS, Captured, captured, fences, outside_fences
from chorus_cli.memory.rules.items import Item, ItemType, Source, Tier
from chorus_cli.personas.rules.macros import sent
from chorus_cli.personas.rules.persona import Persona

T = TypeVar("T")

HOT_HEADING = "Memory:"
RECALLED_HEADING = "From memory:"

_INDENT = "  "
_KEPT, _KNOWN = "Kept as", "That is in your memory already, as"
_TOKENS_OF_AN_ITEM = 15
"""Tokens of the number, the date and the source before an item, and of the line end after it."""

_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_LINE_BREAK, _REST = rf"(?:\r\n|[{_BREAKS}])", rf"[^{_BREAKS}]*+"
_TIER = rf"(?P<tier>; (?:{'|'.join(Tier)}))?"
# Older preambles name the type of an item in place of its date and source.
_HEAD = rf"(?:{'|'.join(ItemType)}|\([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:, from [^{_BREAKS}]+?)?{_TIER}\))"
_ITEM = rf"#(?P<id>[0-9]+) {_HEAD}: {_REST}(?:{_LINE_BREAK}{_INDENT}{_REST})*"
_UNNAMED = _ITEM.replace("?P<id>", "?:").replace("?P<tier>", "?:")
_BLOCK = rf"(?m)(?P<before>\n{{0,2}})^{RECALLED_HEADING}\n(?P<items>{_UNNAMED}(?:\n{_UNNAMED})*)(?P<after>\n{{0,2}})"
_KEPT_LINE = rf"(?:{_KEPT}|{_KNOWN}) #([0-9]+)(?: in place of #[0-9]+)?\."


def memory_lines(items: Iterable[Item], persona: Persona, heading: str = RECALLED_HEADING) -> str:
    """Return the lines of items below a heading, in order of id; empty without items."""
    lines = [written(item, persona) for item in sorted(items, key=lambda item: item.id)]
    return "\n".join([heading, *lines]) if lines else ""


def lines_with_tiers(items: Iterable[Item], persona: Persona) -> str:
    """Return the lines of recalled items, each with its tier, in the given order."""
    return "\n".join([RECALLED_HEADING, *(written(item, persona, with_tier=True) for item in items)])


def tokens_in_request(item: Item) -> int:
    """Return the tokens of an item in a request; an uncounted content has a token for each byte of UTF-8."""
    uncounted = item.token_count is None
    counted = len(indented(item.content).encode("utf-8", "surrogatepass")) if uncounted else item.token_count
    return (counted or 0) + _TOKENS_OF_AN_ITEM


def indented(content: str) -> str:
    """Return a content as requests have it: without its line of keys, and with all lines but the first indented."""
    return re.sub(_LINE_BREAK, rf"\g<0>{_INDENT}", without_keys(content))


def written(item: Item, persona: Persona, *, with_tier: bool = False) -> str:
    """Return the text of an item in a request: its number, date, source and content, and the tier if asked for.

    A persona with a character card reads the user's name, or ``you`` for itself, and no other source.
    """
    source = {Source.YOU: "the human", Source.MODEL: "you"}.get(item.source, item.source.thing)
    if persona.has_card:
        source = {Source.YOU: persona.speakers.user, Source.MODEL: source}.get(item.source, "")
    at = timestamps.local(item.created_at)
    head = f"{at:%Y-%m-%d}{source and f', from {source}'}{f'; {item.tier}' if with_tier else ''}"
    return f"#{item.id} ({head}): {indented(item.content)}"


def has_content(text: str, item: Item) -> bool:
    """Return whether a text that ``written`` made has the present content of the item."""
    return text.endswith(f"): {indented(item.content)}")


def items_in(preamble: str) -> dict[int, str]:
    """Return the text of each item in a preamble, by the item's id, as `written` makes it without the tier."""
    if RECALLED_HEADING not in preamble:
        return {}
    blocks = re.finditer(_BLOCK, preamble)
    items = (item for block in blocks for item in re.finditer(_ITEM, block["items"]))
    return {int(item["id"]): _without_tier(item) for item in items}


def _without_tier(item: re.Match[str]) -> str:
    start, end = item.span("tier")
    return item[0] if start < 0 else f"{item.string[item.start() : start]}{item.string[end : item.end()]}"


def kept_line(item_id: int, *, was_known: bool = False, replaced_id: int = 0) -> str:
    """Return the result of the tool ``remember`` for an item, which may have replaced another."""
    in_place = f" in place of #{replaced_id}" if replaced_id else ""
    return f"{_KNOWN if was_known else _KEPT} #{item_id}{in_place}."


def kept_id(result: str) -> int | None:
    """Return the id in a text that ``kept_line`` made, ``None`` for any other text."""
    match = re.fullmatch(_KEPT_LINE, result)
    return int(match[1]) if match else None


def without_items(preamble: str, ids: Collection[int]) -> str:
    """Return a preamble without some items, and without headings that have no item left."""

    def without(block: re.Match[str]) -> str:
        items = list(re.finditer(_ITEM, block["items"]))
        kept = [item[0] for item in items if int(item["id"]) not in ids]
        if len(kept) == len(items):
            return block[0]
        if kept:
            return "".join([block["before"], RECALLED_HEADING, "\n", "\n".join(kept), block["after"]])
        return block["before"] if block["after"] else ""

    return re.sub(_BLOCK, without, preamble)


def already_said(item: Item, rows: Mapping[int, str]) -> bool:
    """Return whether the source message of an item is in ``rows`` (contents by message id) and contains the item."""
    if item.source_message_id is None:
        return False
    said = rows.get(item.source_message_id)
    return said is not None and item.content in said.replace("\r\n", "\n")


def sent_items(persona: Persona, items: Sequence[Item]) -> Sequence[Item]:
    """Return memory items as a request has them: for a persona with a character card, the macros are replaced."""
    if not persona.has_card:
        return items
    found = []
    for item in items:
        content = sent(persona, item.content)
        # Each added character counts as a token, because a name seldom has more tokens than characters.
        more = max(0, len(content) - len(item.content))
        tokens = None if item.token_count is None else item.token_count + more
        found.append(item._replace(content=content, token_count=tokens))
    return found


MOST_WORDS = 32
_FEWEST_LETTERS, _FEWEST_WITH_DIGIT = 3, 2
_FEWEST_NAMED = 2
_ALWAYS_RARE, _RARE_SHARE = 3, 0.05


def references(text: str) -> set[int]:
    """Return the item numbers that a message names as ``#12``; fences, addresses and words like ``C#12`` name none."""
    lines = text.replace("\r\n", "\n")
    pattern = re.compile(_REFERENCE)
    return {
        int(match[1])
        for start, end in outside_fences(lines, fences(lines))
        for word in lines[start:end].split()
        if "#" in word
        for match in pattern.finditer(word.partition("://")[0])
    }


def without_references(text: str) -> str:
    """Return a text without item numbers such as ``#12``."""
    return re.sub(_REFERENCE, " ", text).strip()


def meaningful_words(text: str) -> dict[str, str]:
    """Return the first 32 words that may name a subject in a message, each as written, by its folded form."""
    found: dict[str, str] = {}
    for word in _words(text):
        found.setdefault(folded(word), word)
        if len(found) == MOST_WORDS:
            break
    return found


def rare(frequency: Mapping[T, int], texts: int) -> list[T]:
    """Return the rare words that occur at all; ``frequency`` has the number of texts with each word."""
    return [word for word, count in frequency.items() if 0 < count <= most_with_a_rare_word(texts)]


def most_with_a_rare_word(texts: int) -> int:
    """Return in how many of ``texts`` a rare word may occur: in three or in 5 %, whichever is more."""
    return max(_ALWAYS_RARE, int(_RARE_SHARE * texts))


def named_in(question: str, before: Mapping[int, str], replies: Collection[int]) -> list[tuple[int, Captured]]:
    """Return each piece of code in ``replies`` with two or more rare words of a question, and its message's id.

    ``before`` has the messages in context by their ids.
    """
    if not any(mark in before[id_] for id_ in replies for mark in FENCE_MARKS):
        return []
    words, texts = meaningful_words(question), {id_: folded(text) for id_, text in before.items()}
    named = {*rare({word: sum(word in text for text in texts.values()) for word in words}, len(texts))}
    likely = [id_ for id_ in replies if sum(word in texts[id_] for word in named) >= _FEWEST_NAMED]
    found = [(id_, each) for id_ in likely for each in captured(before[id_])]
    return [(id_, each) for id_, each in found if len(named & {*map(folded, _words(each.content))}) >= _FEWEST_NAMED]


def best_within(items: Sequence[Item], token_room: int, most: int) -> list[Item]:
    """Choose pinned items first, then the best, while they fit into ``token_room``, and return them in order of id.

    At most ``most`` items are chosen. An item that does not fit is left out; a smaller one after it may still fit.
    """
    ranked = sorted(items, key=lambda item: (item.pinned, item.importance_score, item.last_accessed, item.id))
    chosen: list[Item] = []
    for item in reversed(ranked):
        if len(chosen) == most:
            break
        tokens = tokens_in_request(item)
        if tokens <= token_room:
            chosen.append(item)
            token_room -= tokens
    return sorted(chosen, key=lambda item: item.id)


def _words(text: str) -> Iterator[str]:
    is_ideograph = re.compile(_IDEOGRAPH).fullmatch
    for run in re.finditer(_RUN, text):
        if run[0].isdecimal() and text[max(run.start() - 1, 0)] == "#":
            continue
        pieces = [piece for piece in set_apart(run[0]).split(APART) if piece]
        yield from filter(_is_meaningful, pieces)
        for pair in pairwise(pieces):
            if all(map(is_ideograph, pair)):
                yield "".join(pair)


def _is_meaningful(word: str) -> bool:
    has_digit = any(character.isdecimal() for character in word)
    return len(word) >= (_FEWEST_WITH_DIGIT if has_digit else _FEWEST_LETTERS) and folded(word) not in FUNCTION_WORDS


_MARKS = r"\u0300-\u0331"
_RUN = rf"(?:[^\W_][{_MARKS}]*)+"
_REFERENCE = r"(?<![\w&/#])#([1-9][0-9]{0,17})(?![\w#]|\.[0-9])"
_IDEOGRAPH = r"[\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff]"

FIRST_WORD = "Keys"
"""The word that begins the line of keys, which is the first line of a content."""

_LEAD = f"{FIRST_WORD}: "
_WITH = "; with: "
_MOST_KEYS = 100
_MOST_LOOKED_THROUGH = 20_000
_SEPARATORS = re.compile(r"[,;\s]+")


class Keys(NamedTuple):
    """The keys of an item; if there are ``others``, a message must have one of ``keys`` and one of ``others``."""

    keys: tuple[str, ...]
    others: tuple[str, ...] = ()

    def call(self, folded_text: str) -> bool:
        """Return whether a text in folded case has one of ``keys`` and, if there are any, one of ``others``."""
        return _has_any(folded_text, self.keys) and (not self.others or _has_any(folded_text, self.others))


def called_by(text: str, keyed: Iterable[tuple[Item, Keys]]) -> list[Item]:
    """Return the items whose keys occur in the last 20,000 characters of a text."""
    folded = text[-_MOST_LOOKED_THROUGH:].casefold()
    return [item for item, keys in keyed if keys.call(folded)]


def with_keys(keys: Iterable[str], others: Iterable[str], content: str) -> str:
    """Return a content below a line with its keys; without keys there is no such line."""
    first, second = _cleaned(keys), _cleaned(others)
    if not first:
        return content
    return f"{_LEAD}{', '.join(first)}{_WITH + ', '.join(second) if second else ''}\n{content}"


def keys_of(content: str) -> Keys | None:
    """Return the keys in the first line of a content, ``None`` if there are none."""
    if not content.startswith(_LEAD):
        return None
    first, _, others = content.partition("\n")[0][len(_LEAD) :].partition(_WITH)
    keys = _split(first)
    return Keys(keys, _split(others)) if keys else None


def without_keys(content: str) -> str:
    """Return a content without its line of keys; a content that is nothing but keys is returned whole."""
    return (content.partition("\n")[2].strip() or content) if keys_of(content) else content


def keyed_as(old: str, text: str) -> str:
    """Return a text below the line of keys of ``old``; unchanged if the text has keys or ``old`` has none."""
    if keys_of(old) is None or keys_of(text) is not None:
        return text
    first_line, *_ = old.partition("\n")
    return f"{first_line}\n{text}"


def _cleaned(keys: Iterable[str]) -> Sequence[str]:
    """Return keys without commas, semicolons and needless blanks, each once, at most 100."""
    cleaned = (" ".join(_SEPARATORS.sub(" ", key).split()) for key in keys)
    return list(dict.fromkeys(key for key in cleaned if key))[:_MOST_KEYS]


def _split(keys: str) -> tuple[str, ...]:
    found = (" ".join(key.split()) for key in keys.split(",", _MOST_KEYS)[:_MOST_KEYS])
    return tuple(key for key in found if key)


def _has_any(folded_text: str, keys: Iterable[str]) -> bool:
    return any(_is_in(key.casefold(), folded_text) for key in keys)


def _is_in(key: str, text: str) -> bool:
    position = text.find(key)
    while position >= 0:
        end = position + len(key)
        begins_word = not (_is_cased(key[0]) and position and _is_cased(text[position - 1]))
        if begins_word and not (_is_cased(key[-1]) and all(map(_is_cased, text[end : end + 3].ljust(3)))):
            return True
        position = text.find(key, position + 1)
    return False


def _is_cased(character: str) -> bool:
    """Return whether a character is a digit or a letter with upper and lower case, as in scripts that use blanks."""
    return character.isdigit() or character.lower() != character.upper()
