"""The purge a user asks for, fingerprints that recognise repeated texts, and the extent that the user agrees to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.core.text.phrases import counted, enumerated, first_few, shortened, size_in_words
from chorus_cli.core.time import timespan, timestamps
from chorus_cli.log.rules.log_acts import PurgedIds
from chorus_cli.log.rules.messages import Message, Role, expanded, runs

WITH_BACKUPS = "--backups"

_WORD = re.compile(r"\w+")
_SHORTEST_CUT = 12
"""The characters of a shorter text, such as ``To…``, are the beginning of many texts."""
_UNTIL = re.compile(r"(?P<since>.*\S)\s+until\s+(?P<until>\S.*)", re.DOTALL | re.IGNORECASE)


class WantedPurge(NamedTuple):
    """The purge that a user asks for.

    It concerns the ``messages`` and the titles of the ``threads`` with these ids, all texts of ``personas``, and every
    text with all ``words``. It also concerns memory items, inputs and unsent texts from ``since`` to ``until``, both
    UTC texts. ``persona``, unless empty, limits words and span. ``thread`` is a thread's number, not its id.
    """

    messages: frozenset[int] = frozenset()
    threads: frozenset[int] = frozenset()
    personas: frozenset[str] = frozenset()
    words: str = ""
    since: str = ""
    until: str = ""
    persona: str = ""
    thread: int = 0

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> WantedPurge:
        """Read a stored purge."""
        messages = frozenset(expanded(tuple((int(first), int(last)) for first, last in stored["messages"])))
        threads, personas = frozenset(map(int, stored["threads"])), frozenset(map(str, stored["personas"]))
        words, since, until, persona = (str(stored[name]) for name in ("words", "since", "until", "persona"))
        return cls(messages, threads, personas, words, since, until, persona)

    def criteria(self) -> WantedPurge:
        """Return the purge without ids of its log: its words, span and personas, which also apply to every backup."""
        return self._replace(messages=frozenset(), threads=frozenset())

    def as_json(self) -> dict[str, JsonValue]:
        """Return the purge as JSON, to be stored until the purge is complete."""
        return {
            **self._asdict(),
            "messages": [[first, last] for first, last in runs(sorted(self.messages))],
            "threads": [*sorted(self.threads)],
            "personas": [*sorted(self.personas)],
        }


def span(typed: str, now: datetime) -> WantedPurge:
    """Read a span of time, such as ``monday until yesterday``. A time alone is the beginning of an open span."""
    match = _UNTIL.fullmatch(typed.strip())
    since = timespan.parse(match["since"] if match else typed, now, after_since=True).before(now)
    until = timespan.until(match["until"], now) if match else None
    timespan.refuse_empty(since, until)
    return WantedPurge(since=timestamps.to_text(since), until=timestamps.to_text(until) if until else "")


NO_CRITERIA = WantedPurge()
"""A purge that finds nothing."""

LEAST_WORDS = 4
"""A text of fewer words is common speech, so only an equal text repeats it."""


_FEW_TEXTS = 10
"""Up to this number of texts, searching for the first words of each is faster than splitting the compared text."""


class Fingerprints:
    """Hashes of texts. Another text repeats one of them if it is equal to it or contains all its words in a row."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._beginnings: set[tuple[str, ...]] = set()
        self._equal: set[int] = set()
        self._first_words: set[str] = set()
        self._contained: dict[int, set[tuple[int, int]]] = {}
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        """Add the fingerprints of more texts."""
        for text in filter(None, map(plain, texts)):
            self._equal.add(hash(text))
            words = _WORD.findall(text)
            if len(self._beginnings) <= _FEW_TEXTS:
                self._beginnings.add(tuple(words[:LEAST_WORDS]))
            if len(words) >= LEAST_WORDS:
                self._first_words.add(words[0])
                whole = len(words), _hash(words, 0, len(words))
                self._contained.setdefault(_hash(words, 0, LEAST_WORDS), set()).add(whole)

    def are_in(self, text: str) -> bool:
        """Return whether a text repeats one of the texts."""
        if len(self._beginnings) <= _FEW_TEXTS:
            folded = text.casefold()
            if not any(all(word in folded for word in words) for words in self._beginnings):
                return False
        line = plain(text)
        if hash(line) in self._equal or not self._contained:
            return hash(line) in self._equal
        words = _WORD.findall(line)
        return any(
            _hash(words, first, length) == whole
            for first, word in enumerate(words)
            if word in self._first_words
            for length, whole in self._contained.get(_hash(words, first, LEAST_WORDS), ())
        )


def words_in_line(texts: Iterable[str]) -> str:
    """Return a line for each text: its words in lower case, each between blanks, for ``is_part``."""
    return "\n".join(f" {' '.join(_WORD.findall(text.casefold()))} " for text in texts)


def is_part(text: str, line: str) -> bool:
    """Return whether ``line``, made by ``words_in_line``, has all words of a text in a row; false without words.

    A long text that ends with ``…`` was cut, perhaps within its last word.
    """
    words = words_in_line([text])
    is_cut = text.rstrip().endswith("…") and len(words) >= _SHORTEST_CUT
    return bool(words.strip()) and (words.rstrip() if is_cut else words) in line


def plain(text: str) -> str:
    """Return a text without upper case, and with single blanks between its words."""
    return " ".join(text.casefold().split())


def _hash(words: Sequence[str], first: int, length: int) -> int:
    return hash(tuple(words[first : first + length]))


MOST_SHOWN = 5


def line_of(message: Message) -> str:
    """Return the line of a message in the list of messages to purge."""
    speaker = "you" if message.role is Role.USER else message.persona
    return f"  #{message.id} {_local(message.timestamp)} {speaker}: {shortened(message.content)}"


@dataclass(frozen=True, slots=True)
class Extent:
    """All that a purge overwrites or deletes, and the places that keep a copy.

    ``shown`` are lines about some messages, ``first`` and ``last`` the times of the oldest and the newest message.
    ``repeated`` are the ids of other messages with the same text. They stay, and so do the ``documents`` (path and
    persona) with this text. ``items`` are ids and texts of memory items. ``earlier_texts`` counts acts and checkpoints
    that have purged texts, but none of these items. ``sessions`` are personas with ids of sessions, ``drafts`` are
    names of files of drafts and of rescued texts. ``backups`` are names of backups that hold some of the texts.
    ``unsearched_pdfs`` counts the PDFs that stay although they may have the words of a search.
    """

    ids: PurgedIds
    shown: tuple[str, ...] = ()
    first: datetime | None = None
    last: datetime | None = None
    repeated: tuple[int, ...] = ()
    documents: tuple[tuple[str, str], ...] = ()
    items: tuple[tuple[int, str], ...] = ()
    earlier_texts: int = 0
    sessions: tuple[str, ...] = ()
    attachments: int = 0
    attachment_bytes: int = 0
    drafts: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()
    unsearched_pdfs: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to purge, except perhaps in backups."""
        return not any((*self.ids, self.sessions, self.attachments, self.drafts))

    def lines(self) -> Iterator[str]:
        """Yield the lines for the user."""
        number = len(self.ids.messages)
        if number and self.first and self.last:
            first, last = _local(self.first), _local(self.last)
            span = first if number == 1 else f"{first} to {last}"
            yield f"{counted(number, 'message')}, {span}:"
            yield from self.shown
            if number > len(self.shown):
                yield f"  and {number - len(self.shown):,} more"
        if derived := self._derived():
            yield f"{'Also' if number else 'To purge'}: {enumerated(derived)}."
        for number, content in self.items[:MOST_SHOWN]:
            yield f"  memory item #{number}: {shortened(content)}"
        if self.repeated:
            ids, have = first_few([f"#{id_}" for id_ in self.repeated]), "has" if len(self.repeated) == 1 else "have"
            these = "this number" if len(self.repeated) == 1 else "these numbers"
            yield f"{ids} {have} the same words and would not be purged; name {these} too, or use /purge search."
        yield from self._notes()
        if self.backups:
            has, too = "has" if len(self.backups) == 1 else "have", "" if self.is_empty else " too"
            yield f"{_files(self.backups)} {has} the texts{too}."

    def named(self) -> str:
        """Return the numbers and kinds of all texts that the purge overwrites."""
        messages = [counted(len(self.ids.messages), "message")] if self.ids.messages else []
        return enumerated([*messages, *self._derived()])

    def text_of_none(self) -> str:
        """Return the answer if nothing is found."""
        return "\n".join(["Nothing matches, so nothing was purged.", *self._notes()])

    def _notes(self) -> Iterator[str]:
        if self.unsearched_pdfs:
            pdfs = counted(self.unsearched_pdfs, "PDF was", "PDFs were")
            yield f"{pdfs} not searched; if one has the words, purge its message."
        if self.documents:
            paths = first_few([path for path, _ in self.documents])
            yield f"Documents of personas have the words too: {paths}. No purge changes them; edit them yourself."

    def _derived(self) -> list[str]:
        size = f" ({size_in_words(self.attachment_bytes)})"
        rescued = sum(name.endswith(".jsonl") for name in self.drafts)
        found = (
            (len(self.ids.titles), "thread title", ""),
            (len(self.ids.summaries), "summary", "summaries"),
            (len(self.ids.preambles), "preamble", ""),
            (len(self.items), "memory item", ""),
            (self.earlier_texts, "earlier text of the memory", "earlier texts of the memory"),
            (len(self.ids.inputs), "line of the input history", "lines of the input history"),
            (len(self.ids.unsaid), "unsent text", ""),
            (len(self.sessions), "saved session", ""),
            (self.attachments, f"attachment{size}", f"attachments{size}"),
            (len(self.drafts) - rescued, "draft", ""),
            (rescued, "file of rescued texts", "files of rescued texts"),
        )
        return [counted(*each) for each in found if each[0]]

    def as_json(self) -> dict[str, JsonValue]:
        """Return the extent as JSON."""
        return {
            "messages": len(self.ids.messages),
            "first": timestamps.to_text(self.first) if self.first else None,
            "last": timestamps.to_text(self.last) if self.last else None,
            "repeated_by": [*self.repeated],
            "repeated_in": [{"place": "document", "name": path, "persona": whose} for path, whose in self.documents],
            "titles": len(self.ids.titles),
            "summaries": len(self.ids.summaries),
            "preambles": len(self.ids.preambles),
            "items": [number for number, _ in self.items],
            "earlier_texts": self.earlier_texts,
            "inputs": len(self.ids.inputs),
            "unsent": len(self.ids.unsaid),
            "sessions": [*self.sessions],
            "attachments": self.attachments,
            "drafts": [*self.drafts],
            "backups": [*self.backups],
            "unsearched_pdfs": self.unsearched_pdfs,
        }


def backups_sentence(backups: Sequence[str]) -> str:
    """Return the sentence about backups that still hold purged texts."""
    return f"{_files(backups)} still {'has' if len(backups) == 1 else 'have'} the texts."


def _files(names: Sequence[str]) -> str:
    return f"The backup{'' if len(names) == 1 else 's'} {first_few(names)}"


def _local(moment: datetime) -> str:
    return f"{timestamps.local(moment):%Y-%m-%d %H:%M}"
