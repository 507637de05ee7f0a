r"""The notation in which ELIZA's script is written, read into values.

A word in the first column opens a keyword (several words share what follows); ``> word`` is its replacement in the
text, a number is its rank. Below it, indented by two, stand its decomposition rules; below each of those, indented by
four, the reassembly rules that take turns. A line with ``=word`` in the place of a decomposition rule is a link for
any text. In a decomposition rule ``0`` is any number of words, another number exactly so many, ``a|b`` one of these
words, ``/tag`` one of the words listed after ``/tag:``, and anything else the word itself. A reassembly rule is an
answer in which ``{3}`` stands for the words matched by the third element, or ``=word`` (answer as that keyword
would), ``NEWKEY`` (try the next keyword), or ``PRE words =word`` (put the words in the place of the text, then answer
as that keyword would). Keywords in capitals can only be reached by a link or by the engine itself. A line indented by
six goes on with the one above; ``#`` opens a comment line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ANY = 0
Element = int | frozenset[str]
"""A number of words (``ANY`` for as many as it takes), or one word out of these."""


@dataclass(frozen=True, slots=True)
class Link:
    """Answer the same text by another keyword's rules."""

    keyword: str


@dataclass(frozen=True, slots=True)
class NewKey:
    """Give this keyword up and try the next on the stack."""


@dataclass(frozen=True, slots=True)
class Pre:
    """Put ``template`` in the place of the text, then answer by another keyword's rules."""

    template: str
    keyword: str


Reassembly = str | Link | NewKey | Pre


@dataclass(frozen=True, slots=True)
class Rule:
    """A decomposition and the reassemblies that take turns when it fits."""

    decomposition: tuple[Element, ...]
    reassemblies: tuple[Reassembly, ...]


@dataclass(frozen=True, slots=True)
class Keyword:
    """A word of the script: its replacement, its rank and its rules; without rules it is only replaced."""

    word: str
    replacement: str
    rank: int
    rules: tuple[Rule, ...]


Tags = dict[str, frozenset[str]]
_HEADER = re.compile(r"(?P<words>[^>\d]+?)(?: > (?P<replacement>\S+))?(?: (?P<rank>\d+))?")
_PRE = re.compile(r"PRE (?P<template>.+) =(?P<keyword>\S+)")


def read_script(text: str) -> Mapping[str, Keyword]:
    """Return the keywords of a script by their words.

    Raises:
        ValueError: a line is not in the notation, or a keyword is there twice.
    """
    keywords: dict[str, Keyword] = {}
    tags: Tags = {}
    for block in re.split(r"\n(?=\S)", text.replace("\n      ", " ")):
        head, *body = [line for line in block.splitlines() if line.strip() and not line.startswith("#")] or [""]
        if head.startswith("/"):
            name, _, words = head.partition(":")
            tags[name] = frozenset(words.split())
        elif head:
            _add(keywords, head, _rules(body, tags))
    return keywords


def _add(keywords: dict[str, Keyword], head: str, rules: tuple[Rule, ...]) -> None:
    header = _HEADER.fullmatch(head)
    if header is None:
        raise ValueError(f"The script has a line that opens no keyword: {head!r}")
    for word in header["words"].split():
        if word in keywords:
            raise ValueError(f"The script has the keyword {word!r} twice")
        keywords[word] = Keyword(word, header["replacement"] or word, int(header["rank"] or 0), rules)


def _rules(lines: Sequence[str], tags: Tags) -> tuple[Rule, ...]:
    grouped: list[tuple[tuple[Element, ...], list[Reassembly]]] = []
    for line in lines:
        content = line.strip()
        if line.startswith("    "):
            grouped[-1][1].append(_reassembly(content))
        elif content.startswith("="):
            grouped.append(((ANY,), [_reassembly(content)]))
        else:
            grouped.append((tuple(_element(word, tags) for word in content.split()), []))
    return tuple(Rule(decomposition, tuple(reassemblies)) for decomposition, reassemblies in grouped)


def _element(word: str, tags: Tags) -> Element:
    if word.isdecimal():
        return int(word)
    return tags[word] if word.startswith("/") else frozenset(word.split("|"))


def _reassembly(content: str) -> Reassembly:
    if content == "NEWKEY":
        return NewKey()
    if content.startswith("="):
        return Link(content[1:])
    pre = _PRE.fullmatch(content)
    return Pre(pre["template"], pre["keyword"]) if pre else content
