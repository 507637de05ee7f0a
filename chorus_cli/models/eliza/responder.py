r"""ELIZA, a program that follows a script to answer users with their own words.

The source is a paper: Joseph Weizenbaum, "ELIZA - a computer program for the study of natural language communication
between man and machine", Communications of the ACM 9:1 (1966), pp. 36-45. ELIZA replaces words and collects keywords. A
decomposition rule of the keyword with the highest rank takes the clause apart. One of the rule's reassembly rules makes
the answer; the reassembly rules take turns. ELIZA remembers phrases with MY to answer messages without keywords. Each
answer replays the conversation, because no state is kept between calls.

A line of the script that is not indented has keywords, which share the rules below. ``> word`` after the keywords is
their replacement in the text, and a number is their rank. A line indented by two is a decomposition rule, and each line
indented by four below it is a reassembly rule. Reassembly rules above the first decomposition rule are for any text. A
decomposition rule without reassembly rules uses those of the next one. A line indented by six continues the line above.
A line that begins with ``#`` is a comment.

The elements of a decomposition rule match words: ``0`` any number of words, ``2`` two words, ``a|b`` the word a or b,
``/tag`` one of the words in the line ``/tag:``. Any other element matches itself. A reassembly rule is an answer or a
link. In an answer, the words that the third element matched replace ``{3}``. The link ``=word`` lets the keyword
``word`` answer, and ``NEWKEY`` lets the next keyword answer. ``PRE words =word`` lets ``word`` answer these words in
place of the text. A link indented by two is for any text. Only links and the program reach keywords in capitals.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from chorus_cli.models.eliza.script import SCRIPT

ANY = 0
Element = int | frozenset[str]
"""A number of words (``ANY`` for any number), or a set of alternatives for one word."""


class Reassembly(NamedTuple):
    """An answer, or a link: ``keyword`` answers ``template`` or, if that is empty, the text. ``NEWKEY`` has neither."""

    template: str = ""
    keyword: str = ""


class Rule(NamedTuple):
    """A decomposition, and the reassemblies that take turns when the decomposition matches."""

    decomposition: tuple[Element, ...]
    reassemblies: tuple[Reassembly, ...]


class Keyword(NamedTuple):
    """A word of the script with its replacement, rank and rules; a word without rules is only replaced."""

    word: str
    replacement: str
    rank: int
    rules: tuple[Rule, ...]


_NEXT = "NEWKEY"
Tags = dict[str, frozenset[str]]
_HEADER = re.compile(r"(?P<words>[^>\d]+?)(?: > (?P<replacement>\S+))?(?: (?P<rank>\d+))?")
_PRE = re.compile(r"PRE (?P<template>.+) =(?P<keyword>\S+)")


@cache
def read_script(text: str) -> Mapping[str, Keyword]:
    """Return the keywords of a script by their words."""
    keywords: dict[str, Keyword] = {}
    tags: Tags = {}
    for block in re.split(r"\n(?=\S)", text.replace("\n      ", " ")):
        head, *body = [line for line in block.splitlines() if line.strip() and not line.startswith("#")] or [""]
        if head.startswith("/"):
            name, _, words = head.partition(":")
            tags[name] = frozenset(words.split())
        elif header := _HEADER.fullmatch(head):
            rules = _rules(body, tags)
            for word in header["words"].split():
                keywords[word] = Keyword(word, header["replacement"] or word, int(header["rank"] or 0), rules)
    return keywords


def _rules(lines: Sequence[str], tags: Tags) -> tuple[Rule, ...]:
    rules: deque[Rule] = deque()
    answers: deque[Reassembly] = deque()
    shared: tuple[Reassembly, ...] = ()
    for line in reversed(["  0", *lines] if lines and lines[0].startswith("    ") else lines):
        content = line.strip()
        is_link = content == _NEXT or content.startswith("=")
        if is_link or line.startswith("    "):
            answers.appendleft(_reassembly(content))
        if not line.startswith("    "):
            shared = tuple(answers) or shared
            answers.clear()
            words = ["0"] if is_link else content.split()
            rules.appendleft(Rule(tuple(_element(word, tags) for word in words), shared))
    return tuple(rules)


def _element(word: str, tags: Tags) -> Element:
    if word.isdecimal():
        return int(word)
    return tags[word] if word.startswith("/") else frozenset(word.split("|"))


def _reassembly(content: str) -> Reassembly:
    if content == _NEXT:
        return Reassembly()
    if content.startswith("="):
        return Reassembly(keyword=content[1:])
    pre = _PRE.fullmatch(content)
    return Reassembly(pre["template"], pre["keyword"]) if pre else Reassembly(content)


GREETING = (
    "Hello. I am ELIZA, a program from 1966 that understands nothing and answers with your own words. "
    "What is on your mind?"
)

REPLAYED_MESSAGES, SCANNED_CHARACTERS, CLAUSE_WORDS, URGENT_RANK = 200, 3000, 60, 100
_APOSTROPHES = str.maketrans({**dict.fromkeys("\u2018\u2019\u02bc\u2032\u00b4", "'"), "\u2014": " , "})
_AROUND_WORDS = ".,;:!?\u2026\u00bf\u00a1\"'`()[]{}<>*_~\u201c\u201d\u201e\u00ab\u00bb"
_DELIMITERS = frozenset(".,;:!?\u2026")
# In the paper a comma, a full stop and BUT end a clause; the other delimiters are additions.
_CLAUSE_END, _CLAUSE_WORD = ".", "but"

# Words are replaced one by one, which gets some pairs wrong: YOU may be subject or object, and verbs must agree.
_SUBJECT_FOLLOWS = (
    r"(?! (?:am|have|had|can|can't|could|will|won't|would|should|do|don't|did|didn't|must|may|might|never|always)\b)"
)
_OBJECT_PRECEDES = "to|with|of|for|about|from|at|by|on|love|hate|like|need|want|miss|thank|ask|tell|see"
_AGREEMENTS = tuple(
    (re.compile(rf"(?<!\S){wrong}(?!\S)"), right)
    for wrong, right in (
        *(("i are", "I am"), ("are i", "am I"), ("i were", "I was"), ("were i", "was I")),
        *(("you was", "you were"), ("was you", "were you")),
        *((rf"({_OBJECT_PRECEDES}) i{_SUBJECT_FOLLOWS}", r"\1 me"), ("i$", "me"), ("i", "I")),
    )
)


def reply(history: Sequence[str]) -> str:
    """Return ELIZA's answer to the newest of the user's messages; ``history`` holds them oldest first.

    The same history gives the same answer. At most the last 200 messages count, and the first 3000 characters of each.
    """
    if not history:
        return GREETING
    conversation = _Conversation(read_script(SCRIPT))
    answers = [conversation.answer(text) for text in history[-REPLAYED_MESSAGES:]]
    return answers[-1]


class Clause(NamedTuple):
    """A clause after words are replaced, and its keywords by falling rank; equal ranks keep the order of the text."""

    words: list[str]
    keywords: list[Keyword]


class _Conversation:
    """State between messages: how often each rule was used, and the remembered phrases."""

    def __init__(self, script: Mapping[str, Keyword]) -> None:
        self._script = script
        self._uses: Counter[Rule] = Counter()
        self._memory: deque[str] = deque()

    def answer(self, text: str) -> str:
        """Answer by the first urgent keyword that has an answer, or else answer the first clause with a keyword."""
        heard = list(clauses(text, self._script))
        found = ((clause, keyword) for clause in heard for keyword in clause.keywords if keyword.rank >= URGENT_RANK)
        urgent = (self._answer_by(keyword.word, clause.words) for clause, keyword in found)
        chosen = next((clause for clause in heard if clause.keywords), Clause([], []))
        return next(filter(None, urgent), None) or self._answer_to(chosen)

    def _answer_to(self, clause: Clause) -> str:
        if clause.keywords and clause.keywords[0].word == "my" and (kept := self._answer_by("MEMORY", clause.words)):
            self._memory.append(kept)
        for keyword in clause.keywords:
            if answer := self._answer_by(keyword.word, clause.words):
                return answer
        if self._memory:
            return self._memory.popleft()
        return self._answer_by("NONE", clause.words) or GREETING

    def _answer_by(self, word: str, words: Sequence[str]) -> str | None:
        """Answer by a keyword's first rule that matches, or by its link; ``None`` if the next keyword must answer."""
        for rule in self._script[word].rules:
            parts = decomposed(rule.decomposition, words)
            if parts is None:
                continue
            template, keyword = rule.reassemblies[self._uses[rule] % len(rule.reassemblies)]
            self._uses[rule] += 1
            if keyword:
                told = template.format("", *map(" ".join, parts)).split() if template else words
                return self._answer_by(keyword, told)
            return _sentence(template, parts) if template else None
        return None


def clauses(text: str, script: Mapping[str, Keyword]) -> Iterator[Clause]:
    """Yield the clauses of a text with words replaced; long clauses are split, because an answer repeats its clause."""
    words: list[str] = []
    keywords: list[Keyword] = []
    for token in (*_tokens(text), _CLAUSE_END):
        ends = token == _CLAUSE_END or token.lower() == _CLAUSE_WORD
        if words and (ends or len(words) == CLAUSE_WORDS):
            yield Clause(words, sorted(keywords, key=lambda keyword: -keyword.rank))
            words, keywords = [], []
        if not ends:
            entry = script.get(token.lower())
            words.append(entry.replacement if entry else token)
            keywords += [entry] if entry and entry.rules else []


def _tokens(text: str) -> Iterator[str]:
    """Yield words without the punctuation around them, and a full stop at the end of each clause."""
    beginning = text[:SCANNED_CHARACTERS].translate(_APOSTROPHES)
    for line in (beginning.lower() if beginning.isupper() else beginning).splitlines():
        for chunk in line.split():
            if word := chunk.strip(_AROUND_WORDS):
                yield word
            if not _DELIMITERS.isdisjoint(chunk[len(chunk.rstrip(_AROUND_WORDS)) :]):
                yield _CLAUSE_END
        yield _CLAUSE_END


def decomposed(decomposition: tuple[Element, ...], words: Sequence[str]) -> list[Sequence[str]] | None:
    """Return the words that each element matches (``0`` as few as possible), or ``None`` if the words do not match."""
    found = _pattern(decomposition).fullmatch("".join(f"{word} " for word in words))
    return None if found is None else [group.split() for group in found.groups()]


@cache
def _pattern(decomposition: tuple[Element, ...]) -> re.Pattern[str]:
    """Return the pattern of a decomposition, with a group for each element; a blank follows each word."""
    return re.compile("".join(f"({_shape(element)})" for element in decomposition), re.IGNORECASE)


def _shape(element: Element) -> str:
    if isinstance(element, int):
        return r"(?:\S+ )*?" if element == ANY else rf"(?:\S+ ){{{element}}}"
    return f"(?:{'|'.join(map(re.escape, element))}) "


def _sentence(template: str, parts: Sequence[Sequence[str]]) -> str:
    said = [" ".join(part) for part in parts]
    for wrong, right in _AGREEMENTS:
        said = [wrong.sub(right, words) for words in said]
    filled = template.format("", *said)
    closed = re.sub(r" (?=[.,;:?!])", "", " ".join(filled.split()))
    return closed[:1].upper() + closed[1:]
