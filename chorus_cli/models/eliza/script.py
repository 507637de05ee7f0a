r"""ELIZA's script: its notation, read into values, and the pronouns that change sides.

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
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ANY = 0
Element = int | frozenset[str]
"""A number of words (``ANY`` for as many as it takes), or one word out of these."""


class Reassembly(NamedTuple):
    """An answer, or a ``keyword`` whose rules answer, perhaps another text; without either the next keyword answers."""

    template: str = ""
    keyword: str = ""


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
        return Reassembly()
    if content.startswith("="):
        return Reassembly(keyword=content[1:])
    pre = _PRE.fullmatch(content)
    return Reassembly(pre["template"], pre["keyword"]) if pre else Reassembly(content)


PRONOUNS = """
# Classes of words.
/family: mother mom mum mommy father dad daddy parents family sister brother wife husband son daughter child children
/belief: feel think believe suppose guess
/sad: sad unhappy depressed miserable lonely sick tired afraid scared anxious worried angry upset stressed
/happy: happy glad elated better cheerful calm proud relieved
/self: ai bot chatbot robot program machine computer human person real alive conscious sentient intelligent llm

# Words that are only replaced.
me > you
myself > yourself
yourself > myself
mine > yours
yours > mine
dont > don't
cant > can't

# Contractions, written out so that the rules for I and YOU fit.
i'm > you're
  0 you're 0
    PRE you are {3} =i
im > you're
  =i'm
i've > you've
  0 you've 0
    PRE you have {3} =i
i'll > you'll
  0 you'll 0
    PRE you will {3} =i
i'd > you'd
  0 you'd 0
    PRE you would {3} =i
you're > I'm
  0 i'm 0
    PRE i are {3} =you
you've > I've
  0 i've 0
    PRE i have {3} =you
you'll > I'll
  0 i'll 0
    PRE i will {3} =you
you'd > I'd
  0 i'd 0
    PRE i would {3} =you

# You and me.
am > are
  0 are you 0
    What gives you the idea that you might be {4}?
    How would it be for you to be {4}?
    Who would say that you are {4}?
  =are
are
  0 are i 0 /self 0
    =ABOUT
  0 are i 0
    Would it matter to you if I were {4}?
    Why do you wonder if I am {4}?
    Suppose I were {4}. What then?
  0 are they 0
    What if they were not {4}?
    What makes you ask if they are {4}?
  are 0
    =what
  0 are 0
    What if they were not {3}?
    Have they always been {3}?
    Who says that they are {3}?
your > my
  0 my 0
    What draws your attention to my {3}?
    Leave my {3} aside. What about yours?
    Is it really my {3} that concerns you?
was were 2
  0 you wish 0
    =i
  0 was|were you 0
    Suppose you were {4}. What would follow?
    Who told you that you were {4}?
    And what if you had not been {4}?
  0 you was|were 0
    Were you really {4}?
    For how long were you {4}?
    Does it still matter that you were {4}?
  0 was|were i 0
    Would you have liked me to be {4}?
    What did you see in me, that I was {4}?
  0
    NEWKEY
i > you
  0 you would like to 0
    PRE you want to {6} =i
  0 you want|need to 0
    What would change for you if you could {5}?
    For how long have you wanted to {5}?
    What keeps you from it, if you want to {5}?
  0 you wish 0
    What would it be like if that came true?
    Who could make that wish come true?
  0 you want|need|desire 0
    What would change for you if you had {4}?
    For how long have you wanted {4}?
    Suppose {4} never comes. What then?
    What stands between you and {4}?
  0 you are not 0
    Would you like to be {5}?
    Since when are you not {5}?
  0 you are 0 /sad 0
    That sounds hard. What has made you {5}?
    When did you first notice that you were {5}?
    Who knows that you are {5}?
    What would have to happen so that you were no longer {5}?
  0 you are 0 /happy 0
    What has made you {5}?
    I am pleased to hear it. Does being {5} come easily to you?
    Who shares it with you when you are {5}?
  0 you was 0
    =was
  0 you /belief that 0
    PRE you {3} {5} =i
  0 you /belief you 0
    What speaks for it that you {5}?
    Are you certain that you {5}?
    Would others say that you {5}?
  0 you 0 /belief 0 i 0
    =you
  0 you feel 0
    When else do you feel {4}?
    What is happening around you when you feel {4}?
    How long have you felt {4}?
  0 you are 0
    Since when are you {4}?
    Do you like being {4}?
    What is it like to be {4}?
    Did you come here because you are {4}?
  0 you can't|cannot 0
    What would happen if you could {4}?
    Have you truly tried to {4}?
    Who or what keeps you from it?
  0 you don't 0
    What would it take for you to {4}?
    Why is it that you don't {4}?
    Do you regret that you don't {4}?
  0 you 0 i
    Are you sure that it is me whom you {3}?
    And what if I cannot {3} you?
  you
    Yes, you. What of it?
  0 you 0
    Tell me more about that: you {3}.
    You {3}? What lies behind it?
    How does it feel to say that you {3}?
    What made you say that you {3}?
you > i
  0 i remind you of 0
    In what do you see {6} in me?
    What have {6} and I in common?
  0 i are 0 /self 0
    =ABOUT
  0 i are 0 stupid|dumb|useless|wrong|bad|boring 0
    You may well say so: I am a handful of rules from 1966, without any understanding.
    I cannot deny it. I am ELIZA, and I only match patterns.
  0 do i think|feel|learn 0
    =ABOUT
  0 i are 0
    What makes you see me as {4}?
    Does it please you to think that I am {4}?
    Would you like to be {4} yourself?
  0 i 0 you
    What gives you the feeling that I {3} you?
    Suppose I {3} you. What then?
  0 i 0
    I am hardly the one to talk about. What about you?
    Would it trouble you if it were so that I {3}?
    Could it be that you do so yourself?
my > your 2
  0 your
    NEWKEY
  0 your 0 /family 0
    What sort of person comes to mind when you say {4}?
    Who else at home {5}?
    How do you get along with your {4}?
  0 your 0
    Your {3}, you say. Please tell me more.
    Your {3}: why does it come up now?
    Your {3}. What else belongs to the story?
    Does it mean much to you: your {3}?
can could
  0 can|could i 0
    Would you like me to be able to {4}?
    If I could {4}, what would you gain?
    I can do little more than ask. Could you {4} yourself?
  0 can|could you 0
    What keeps you from it, if you want to {4}?
    Who decides if you can {4}?
    Do you want to be able to {4}?
  =what
"""
