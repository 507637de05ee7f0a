"""Translates what the user types into terms that a full-text index looks for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.apart import APART, set_apart
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.log.rules.messages import Role
from chorus_cli.log.rules.stop_words import GRAMMAR

MARKS = ("\ufdd0", "\ufdd1")
"""The opening and closing mark of a match while an excerpt is made: code points that no text should contain."""

MOST_WORDS = 64  # the most words of a query, and the most terms with each sign, that are looked for
_MOST_TYPED = 20_000  # the most characters of a query that are read; a model may write a query of any length
SHOWN_MARKS = ("«", "»")
_LONGEST_EXCERPT = 240
_LEAD = 80
_CUT = "…"

_TERM = re.compile(r'(?P<sign>[+-]?)"(?P<phrase>[^"]*)"(?P<begins>\*?)|(?P<word>[^\s"]+)')
_QUOTES = str.maketrans("“”„‟", '""""')
_POSSESSIVE = re.compile("['\u2019]s$")
_ROLES = {
    "role:user": (Role.USER,),
    "role:human": (Role.USER,),
    "role:assistant": (Role.ASSISTANT,),
    "role:tool": (Role.TOOL_USE, Role.TOOL_RESULT),
}
_ENDS = ".,;:!?"
_SENTENCE = 5


class Term(NamedTuple):
    """A word or a phrase to look for. If it ``begins``, its last word also matches longer words that begin with it.

    If it ``is_first``, it matches only at the beginning of a text; an index may ignore this.
    """

    text: str
    begins: bool = False
    is_first: bool = False


class Wanted(NamedTuple):
    """A condition on texts: a text has all ``terms``, and, if there are ``leads``, all terms of at least one lead."""

    terms: Sequence[Term] = ()
    leads: Sequence[Sequence[Term]] = ()


class SearchQuery(NamedTuple):
    """A parsed search: it finds texts with all ``required`` terms, or else any of ``words``, and no ``excluded`` term.

    If there are required terms, the words only rank the texts. A text must also contain all ``literals``, and none of
    the ``excluded_literals``: strings without a letter or digit, such as emoji, which the index does not contain. If
    there are ``roles``, the search finds only messages with one of them. ``question`` has the words as typed if the
    query has several plain words and no other terms; a search then also finds messages by their meaning.
    """

    words: tuple[Term, ...] = ()
    required: tuple[Term, ...] = ()
    excluded: tuple[Term, ...] = ()
    literals: tuple[str, ...] = ()
    excluded_literals: tuple[str, ...] = ()
    roles: tuple[Role, ...] = ()
    question: str = ""

    @property
    def terms(self) -> tuple[Term, ...]:
        """The required terms and the words."""
        return (*self.required, *self.words)

    def has_literals(self, text: str) -> bool:
        """Return whether a text has all literals and no excluded one."""
        return all(each in text for each in self.literals) and not any(each in text for each in self.excluded_literals)


def any_of(terms: Iterable[Term]) -> Wanted:
    """Return the condition that a text has any of the terms."""
    return Wanted(leads=[(term,) for term in terms])


def search_query(text: str) -> SearchQuery:
    """Parse a search; raise `CommandError` if there is nothing to look for.

    Quotes or a plus sign make a term required, a minus sign excludes it, and a star after it lets it match longer
    words. Words of grammar are left out if there are other words. Only the beginning of a very long query is read.
    """
    by_sign: dict[str, dict[Term, None]] = {"": {}, "+": {}, "-": {}}
    literals_by_sign: dict[str, dict[str, None]] = {"": {}, "+": {}, "-": {}}
    roles: dict[Role, None] = {}
    for sign, term in _pieces(text[:_MOST_TYPED]):
        named = () if sign else _ROLES.get(term.text.lower(), ())
        if named:
            roles |= dict.fromkeys(named)
        elif _has_word(term.text):
            by_sign[sign][term] = None
        else:
            literals_by_sign[sign][term.text] = None
    words, required, excluded = by_sign.values()
    signs, literals, excluded_literals = literals_by_sign.values()
    if not words and not required and not literals:
        # The query has only signs such as emoji, or terms such as -5: these are looked for.
        words, excluded, literals, excluded_literals = excluded, {}, signs | excluded_literals, {}
    meaningful = tuple(_meaningful(words, is_needed=not required))
    is_plain = not (required or excluded or literals or excluded_literals or any(word.begins for word in words))
    question = " ".join(word.text for word in words) if is_plain and max(len(words), len(meaningful)) > 1 else ""
    signed = tuple(required)[:MOST_WORDS], tuple(excluded)[:MOST_WORDS]
    unindexed = tuple(literals)[:MOST_WORDS], tuple(excluded_literals)[:MOST_WORDS]
    return _checked(SearchQuery(meaningful, *signed, *unindexed, tuple(roles), question))


def without_signs(text: str) -> str:
    """Return a query without stars and without minus signs before terms, which a question may have by chance."""
    return re.sub(r'(?<![^\s"])-+(?=[^\s-])|\*', " ", text)


def required_query(text: str) -> SearchQuery:
    """Parse terms that must all occur; raise `CommandError` if there is nothing to look for."""
    terms = [term for _, term in _pieces(text)]
    required = dict.fromkeys(term for term in terms if _has_word(term.text))
    literals = dict.fromkeys(term.text for term in terms if not _has_word(term.text))
    return _checked(SearchQuery(required=tuple(required), literals=tuple(literals)))


def _checked(query: SearchQuery) -> SearchQuery:
    if not query.terms and not query.literals:
        raise CommandError("There is nothing to look for. Write a word or more, or a phrase in double quotes.")
    return query


def _pieces(text: str) -> Iterator[tuple[str, Term]]:
    """Yield each term with its sign; a phrase without a sign gets a plus sign, because it must occur."""
    for match in _TERM.finditer(cleaned_input(text)[0].translate(_QUOTES)):
        phrase, word = match["phrase"], match["word"] or ""
        if phrase is not None:
            sign, term = match["sign"] or "+", Term(phrase.strip(), bool(match["begins"]))
        else:
            sign = word[0] if word[0] in "+-" and _has_word(word[1:2]) else ""
            term = Term(word[len(sign) :].rstrip("*"), word.endswith("*"))
        if term.text:
            yield sign, term


def folded(text: str) -> str:
    """Return a text in lower case and without accents."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", text.lower())))


def beginning(term: Term) -> re.Pattern[str]:
    """Return the pattern that finds a term in a text from `spaced`; the term's last word also matches longer words."""
    words = r"[\W_]+".join(re.findall(r"[^\W_]+", spaced(term.text)))
    return re.compile(rf"(?<![^\W_]){words}")


def spaced(text: str) -> str:
    """Return a text folded, and with blanks around each character that is a word of its own."""
    return set_apart(folded(text)).replace(APART, " ")


def _meaningful(words: Iterable[Term], *, is_needed: bool) -> Iterable[Term]:
    """Leave out words of grammar, and cut off possessive endings; if no word is left and ``is_needed``, return all.

    A sentence in a script without blanks is one word that no other text has, so each pair of characters is a word, too.
    """
    listed = [*words]
    found: dict[Term, None] = {}
    for word in (word for word in listed if not _is_grammar(word)):
        found[word._replace(text=_bare(word.text))] = None
        signs = [part for part in set_apart(word.text.rstrip(_ENDS)).split(APART) if part]
        if len(signs) >= _SENTENCE and max(map(len, signs)) == 1 and not word.text.isascii():
            found |= dict.fromkeys(Term(first + second) for first, second in pairwise(signs))
    return [*(found or (listed if is_needed else []))][:MOST_WORDS]


def _bare(word: str) -> str:
    """Return a word without punctuation behind it and without its possessive ending."""
    return _POSSESSIVE.sub("", word.rstrip(_ENDS))


def without_words(question: str, common: Iterable[Term]) -> str:
    """Return a question without the ``common`` words of its query; the question itself if no word would be left."""
    left_out = {word.text for word in common}
    return " ".join(word for word in question.split() if _bare(word) not in left_out) or question


def _is_grammar(term: Term) -> bool:
    return not term.begins and all(part in GRAMMAR for part in re.findall(r"[^\W_]+", folded(term.text)))


def marked_literals(content: str, literals: tuple[str, ...]) -> str:
    """Return the part of ``content`` around the first literal, which is marked; without a literal, the beginning."""
    found = [(content.find(literal), literal) for literal in literals if literal in content]
    if not found:
        return content[:_LONGEST_EXCERPT]
    place, literal = min(found)
    begin, end = max(0, place - _LONGEST_EXCERPT), place + len(literal)
    opening, closing = MARKS
    before = f"{_CUT if begin else ''}{content[begin:place]}"
    return f"{before}{opening}{literal}{closing}{content[end : end + _LONGEST_EXCERPT]}"


def excerpt(marked: str) -> str:
    """Write a marked part of a message in one line, cut around the first match."""
    opening, closing = MARKS
    line = " ".join(marked.replace(APART, "").split())
    begin = max(0, line.find(opening) - _LEAD)
    shown = line[begin : begin + _LONGEST_EXCERPT]
    if shown.count(opening) > shown.count(closing):
        shown += closing
    before = _CUT if begin else ""
    after = _CUT if begin + _LONGEST_EXCERPT < len(line) else ""
    return f"{before}{shown}{after}".replace(opening, SHOWN_MARKS[0]).replace(closing, SHOWN_MARKS[1])


def _has_word(piece: str) -> bool:
    """Return whether a piece has a letter or a digit; the index contains nothing else.

    SQLite's tables of letters are older than Python's, but the letters of Unicode 3.2 are letters in both.
    """
    return any(unicodedata.ucd_3_2_0.category(sign)[0] in "LN" for sign in piece)
