"""What questions find of their evidence in long talks: those of LoCoMo (ACL 2024), which is not part of Chorus."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.figures import Figure, Skipped
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import found_messages, search_index
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rules.search_query import search_query
from chorus_cli.memory.rows import item_changes, item_rows
from chorus_cli.memory.rows.item_changes import Addition, NewItem
from chorus_cli.memory.rules.items import ItemType, Source
from chorus_cli.storage import migrations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_NAME = "evidence of questions about long talks"
_NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
_ADVERSARIAL = 5
_TURN = re.compile(r"D:?([0-9]+):0*([0-9]+)")
_RESULTS, _ITEMS = 20, 5


class _Question(NamedTuple):
    persona: str
    text: str
    evidence: frozenset[str]


def measure(talks: Path | None) -> Iterator[Figure | Skipped]:
    """Search a file of talks; without one, nothing is measured."""
    if talks is None:
        yield Skipped(_NAME, "--talks names no file of LoCoMo")
        return
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrations.migrate(connection)
        yield from _figures(connection, json.loads(talks.read_text(encoding="utf-8")))


def _figures(connection: sqlite3.Connection, talks: Sequence[Mapping[str, Any]]) -> Iterator[Figure]:
    questions: list[_Question] = []
    turns: dict[int, str] = {}
    observed: dict[int, frozenset[str]] = {}
    for number, talk in enumerate(talks):
        persona = f"talk{number}"
        turns |= _store_talk(connection, persona, talk["conversation"])
        observed |= _store_observations(connection, persona, talk.get("observation", {}))
        questions += _questions(persona, talk["qa"], frozenset(turns.values()))
    while not search_index.index_batch(connection).is_whole:
        pass

    def beside(ids: Sequence[int]) -> set[int]:
        sides = found_messages.beside(connection, ids, 1)
        return {*ids, *(id_ for pair in sides.values() for side in pair for id_ in side)}

    found = {question: _found(connection, question) for question in questions}
    items = {
        question: [item.id for item in item_rows.found(connection, question.persona, question.text, _ITEMS)]
        for question in questions
    }
    for name, goal, evidence in (
        ("10 messages", 0.62, lambda each: {turns[id_] for id_ in found[each][:10]}),
        ("20 messages and those beside them", 0.8, lambda each: {turns[id_] for id_ in beside(found[each])}),
        ("5 items of the memory", 0.51, lambda each: {turn for id_ in items[each] for turn in observed[id_]}),
    ):
        yield _missed(f"evidence that is not in {name}", questions, evidence, goal)
    nothing = sum(not ids for ids in found.values()) / len(questions)
    yield Figure("questions that find nothing", nothing, "at most", 0.01, "", nothing / 0.01, 1)


def _missed(
    name: str, questions: Sequence[_Question], evidence: Callable[[_Question], Iterable[str]], goal: float
) -> Figure:
    """Return the share of the evidence of a question that is missed, averaged, beside the largest good share."""
    shares = [len(each.evidence.difference(evidence(each))) / len(each.evidence) for each in questions]
    missed, most = sum(shares) / len(shares), 1 - goal
    return Figure(name, missed, "at most", most, "", missed / most, 1)


def _found(connection: sqlite3.Connection, question: _Question) -> list[int]:
    found = found_messages.find(connection, search_query(question.text), Scope(None, question.persona, _RESULTS))
    return [match.message.id for match in found.matches]


def _store_talk(connection: sqlite3.Connection, persona: str, talk: Mapping[str, Any]) -> dict[int, str]:
    """Store each session as a thread; return the names of the turns by the ids of their messages."""
    stored: dict[int, str] = {}
    sessions = sorted(int(key.split("_")[1]) for key in talk if re.fullmatch(r"session_[0-9]+", key))
    for session in sessions:
        (thread_id,) = connection.execute("INSERT INTO threads(persona) VALUES (?) RETURNING id", (persona,)).fetchone()
        written = f"{str(talk[f'session_{session}_date_time']).strip()} +0000"
        began = datetime.strptime(written, "%I:%M %p on %d %B, %Y %z")
        for position, turn in enumerate(talk[f"session_{session}"]):
            picture = turn.get("blip_caption")
            text = turn["text"] + (f" [shares a photo: {picture}]" if picture else "")
            at = timestamps.to_text(began + timedelta(seconds=20 * position))
            role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
            cursor = connection.execute(
                "INSERT INTO messages(persona, thread_id, role, content, timestamp) VALUES (?, ?, ?, ?, ?)",
                (persona, thread_id, role, text, at),
            )
            stored[cursor.lastrowid or 0] = f"{persona} {turn['dia_id']}"
    return stored


def _store_observations(
    connection: sqlite3.Connection, persona: str, observations: Mapping[str, Any]
) -> dict[int, frozenset[str]]:
    """Store each observation as a memory item; return the turns that it was made of by the ids of the items."""
    stored: dict[int, frozenset[str]] = {}
    for by_speaker in observations.values():
        for content, *turns in (each for listed in by_speaker.values() for each in listed):
            addition = Addition(persona, [NewItem(ItemType.TASK, str(content))], Source.YOU, _NOW)
            for item in item_changes.add(connection, addition).items:
                stored[item.id] = stored.get(item.id, frozenset()) | _named(persona, json.dumps(turns))
    return stored


def _questions(persona: str, asked: Iterable[Mapping[str, Any]], turns: frozenset[str]) -> Iterator[_Question]:
    for each in asked:
        evidence = _named(persona, json.dumps(each["evidence"])) & turns
        if each["category"] != _ADVERSARIAL and evidence:
            yield _Question(persona, str(each["question"]), evidence)


def _named(persona: str, text: str) -> frozenset[str]:
    return frozenset(f"{persona} D{session}:{turn}" for session, turn in _TURN.findall(text))
