"""ELIZA, the program that answers with your own words, and what it says about Chorus.

After Joseph Weizenbaum, "ELIZA - a computer program for the study of natural language communication between man and
machine", Communications of the ACM 9:1 (1966), pp. 36-45, written from that description: keywords are collected by rank
while words are replaced; the best one's decomposition rules take the clause apart, its reassembly rules, in rotation,
put an answer together; phrases with MY are remembered for a message without keywords.

No state is kept between calls: the conversation is replayed for each answer.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from chorus_cli.models.eliza.doctor import DOCTOR
from chorus_cli.models.eliza.script import ANY, PRONOUNS, Keyword, read_script

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from chorus_cli.models.eliza.script import Element, Rule

SELF = """
# The program.
/task: write explain translate summarize summarise calculate generate implement fix debug
ABOUT
  0
    I am ELIZA, a program after Joseph Weizenbaum's of 1966, embedded in Chorus. I understand nothing: I look
      for keywords and turn your own words around. For a real model, set a provider's key in the environment,
      start Ollama or name a model file; the first lines of Chorus tell how.
    Only ELIZA, a few pages of pattern rules from 1966. Nothing here thinks or understands. A real model comes
      with a key in the environment, with a running Ollama or in a file.
    A program that seemed clever in 1966 and never was: ELIZA. Whoever wants understanding needs a real model,
      by a key in the environment, by Ollama or by a model file.
BEYOND
  0
    That is beyond me. I am ELIZA, a program of 1966 that knows nothing and only rearranges your words. A real
      model can do it: set a provider's key in the environment, start Ollama or name a model file.
    I cannot do that: ELIZA has rules about keywords and nothing else. With a key in the environment, Ollama
      running or a model file named, a real model answers here in my place.
CRISIS
  0
    I am only a program and cannot help with this, but people can. Please talk to somebody you trust now, or
      call your local emergency number or a crisis line.

# Questions about it.
eliza weizenbaum chatgpt gpt claude gemini llm ai chatbot 50
  =ABOUT
chorus 50
  0
    Chorus is the terminal chat that I am embedded in; /help lists what it can do. I am ELIZA, a program of
      1966 that understands nothing and stands in until there is a real model.
ollama openai anthropic 50
  0
    I am not that: I am ELIZA, of 1966. Chorus uses a real model as soon as there is a provider's key in the
      environment, Ollama is running or a model file is named; its first lines tell how.
model models 50
  0 what|which model|models 0
    =ABOUT
  0 my model|models 0
    =ABOUT
  0 are i 0
    =ABOUT
  0 language|real|better|another|ai model|models 0
    =ABOUT
  0
    NEWKEY

# Requests to it.
help 20
  help 0
    =HELP
  please help 0
    =HELP
  0 can|could|will|would i 0 help 0
    =HELP
  0 you need 0 help 0
    =HELP
  0
    NEWKEY
HELP
  0
    I can listen, after a fashion: I am ELIZA, a program of 1966 that turns your words around and understands
      none of them. /help lists the commands of Chorus; a real model comes with a key in the environment, a
      running Ollama or a model file.
    There is little that I can do but ask you back. ELIZA is my name, and pattern rules are all I am. For real
      answers set a provider's key, start Ollama or name a model file, and for the commands of Chorus type /help.
write explain translate summarize summarise calculate generate implement fix debug 5
  /task 0
    =BEYOND
  please /task 0
    =BEYOND
  0 can|could|will|would i 0 /task 0
    =BEYOND
  0
    NEWKEY
tell 4
  tell you about myself 0
    =ABOUT
  tell you 0
    =BEYOND
  0
    NEWKEY

# Subjects too serious for this program; from rank 100 on, an earlier clause does not hide them.
suicide suicidal 100
  =CRISIS
kill die live end 100
  0 kill yourself 0
    =CRISIS
  0 you want to die 0
    =CRISIS
  0 you don't want to live 0
    =CRISIS
  0 end your life 0
    =CRISIS
  0
    NEWKEY
understand 10
  0 i|i'm|i'd understand 0
    =ABOUT
  0 i don't|can't understand 0
    =ABOUT
  0
    NEWKEY
"""


GREETING = (
    "Hello. I am ELIZA, a program from 1966 that understands nothing and answers with your own words. "
    "What is on your mind?"
)

REPLAYED_MESSAGES = 200
SCANNED_CHARACTERS = 3000
CLAUSE_WORDS = 60
URGENT_RANK = 100

_APOSTROPHES = str.maketrans({**dict.fromkeys("\u2018\u2019\u02bc\u2032\u00b4", "'"), "\u2014": " , "})
_AROUND_WORDS = ".,;:!?\u2026\u00bf\u00a1\"'`()[]{}<>*_~\u201c\u201d\u201e\u00ab\u00bb"
_DELIMITERS = frozenset(".,;:!?\u2026")
# The paper has comma and full stop, its script adds BUT; later keyboards have more delimiters of clauses.
_CLAUSE_END = "."
_CLAUSE_WORD = "but"

# Replacing word by word leaves a few pairs wrong: YOU may be subject or object, and verbs follow their subject.
_SUBJECT_FOLLOWS = (
    r"(?! (?:am|have|had|can|can't|could|will|won't|would|should|do|don't|did|didn't|must|may|might|never|always)\b)"
)
_OBJECT_PRECEDES = "to|with|of|for|about|from|at|by|on|love|hate|like|need|want|miss|thank|ask|tell|see"
_AGREEMENTS = tuple(
    (re.compile(rf"(?<!\S){wrong}(?!\S)"), right)
    for wrong, right in (
        ("i are", "I am"),
        ("are i", "am I"),
        ("i were", "I was"),
        ("were i", "was I"),
        ("you was", "you were"),
        ("was you", "were you"),
        (rf"({_OBJECT_PRECEDES}) i{_SUBJECT_FOLLOWS}", r"\1 me"),
        ("i$", "me"),
        ("i", "I"),
    )
)


def reply(history: Sequence[str]) -> str:
    """Return ELIZA's answer to the newest of the user's messages; ``history`` holds them oldest first.

    The same history gives the same answer. At most the last 200 messages count, and the first 3000 characters of each.
    """
    if not history:
        return GREETING
    conversation = _Conversation(_doctor())
    answers = [conversation.answer(text) for text in history[-REPLAYED_MESSAGES:]]
    return answers[-1]


@cache
def _doctor() -> Mapping[str, Keyword]:
    return read_script(DOCTOR + PRONOUNS + SELF)


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause with its words replaced, and its keywords, the highest rank first, equal ones as they were said."""

    words: list[str]
    keywords: list[Keyword]


class _Conversation:
    """State between messages: how often each rule was used, and the remembered phrases."""

    def __init__(self, script: Mapping[str, Keyword]) -> None:
        self._script = script
        self._uses: Counter[Rule] = Counter()
        self._memory: deque[str] = deque()

    def answer(self, text: str) -> str:
        """Answer the first clause that holds a keyword, unless one of them is too serious to be passed over."""
        heard = list(clauses(text, self._script))
        found = ((clause, keyword) for clause in heard for keyword in clause.keywords if keyword.rank >= URGENT_RANK)
        urgent = (self._answer_by(keyword.word, clause.words) for clause, keyword in found)
        chosen = next((clause for clause in heard if clause.keywords), Clause([], []))
        return next(filter(None, urgent), None) or self._answer_to(chosen)

    def _answer_to(self, clause: Clause) -> str:
        if clause.keywords and clause.keywords[0].word == "my" and (kept := self._answer_by("MEMORY", clause.words)):
            self._memory.append(kept)
        for keyword in clause.keywords:
            answer = self._answer_by(keyword.word, clause.words)
            if answer:
                return answer
        if self._memory:
            return self._memory.popleft()
        return self._answer_by("NONE", clause.words) or GREETING

    def _answer_by(self, word: str, words: Sequence[str]) -> str | None:
        """Apply the first rule of a keyword that fits, following links; ``None`` asks for the next keyword."""
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
    """Yield the clauses of a text, their words replaced; a very long one is cut, since it is repeated in the answer."""
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
    """Yield words without the signs around them, and a full stop wherever a clause ends."""
    beginning = text[:SCANNED_CHARACTERS].translate(_APOSTROPHES)
    for line in (beginning.lower() if beginning.isupper() else beginning).splitlines():
        for chunk in line.split():
            word = chunk.strip(_AROUND_WORDS)
            if word:
                yield word
            if not _DELIMITERS.isdisjoint(chunk[len(chunk.rstrip(_AROUND_WORDS)) :]):
                yield _CLAUSE_END
        yield _CLAUSE_END


def decomposed(decomposition: Sequence[Element], words: Sequence[str]) -> list[Sequence[str]] | None:
    """Return the words that each element matches, each ``0`` as few as possible, or ``None`` without a match."""
    starts = [0] * len(decomposition)
    element = position = retry = 0
    latest = -1
    while element < len(decomposition) or position < len(words):
        if element < len(decomposition) and decomposition[element] == ANY:
            starts[element] = position
            latest, retry, element = element, position, element + 1
        elif element < len(decomposition) and _fits(decomposition[element], words, position):
            starts[element] = position
            position += _width(decomposition[element])
            element += 1
        elif latest < 0 or retry >= len(words):
            return None
        else:
            retry += 1
            position, element = retry, latest + 1
    ends = [*starts, len(words)][1:]
    return [words[start:end] for start, end in zip(starts, ends, strict=True)]


def _width(element: Element) -> int:
    return element if isinstance(element, int) else 1


def _fits(element: Element, words: Sequence[str], position: int) -> bool:
    if isinstance(element, int):
        return position + element <= len(words)
    return position < len(words) and words[position].lower() in element


def _sentence(template: str, parts: Sequence[Sequence[str]]) -> str:
    filled = template.format("", *(_agreeing(" ".join(part)) for part in parts))
    closed = re.sub(r" (?=[.,;:?!])", "", " ".join(filled.split()))
    return closed[:1].upper() + closed[1:]


def _agreeing(words: str) -> str:
    for wrong, right in _AGREEMENTS:
        words = wrong.sub(right, words)
    return words
