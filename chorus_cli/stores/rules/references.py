"""Replaces the ids in the JSON of operations, checkpoints and sessions when a log is copied into another log."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from chorus_cli.log.rules.acts import Clear, Fork, Restore
from chorus_cli.log.rules.messages import expanded, runs

New: TypeAlias = Callable[[str, int], int | None]
"""Takes the table and the id of a row; returns the id of the row in the other log, ``None`` if it is not copied."""

MESSAGES, THREADS, OPERATIONS = "messages", "threads", "operations"
ITEMS, CHECKPOINTS, SUMMARIES = "context_items", "context_checkpoints", "summaries"
_Value: TypeAlias = Callable[[New, Any], Any]
_ON_ALL_THREADS = {Clear.kind, Restore.kind}


def _one(table: str) -> _Value:
    """Replace an id, by 0 if its row is not copied; numbers below 1 are no ids and stay."""
    return lambda new, id_: id_ if id_ < 1 else new(table, id_) or 0


def _many(table: str) -> _Value:
    return lambda new, ids: [found for id_ in ids if (found := new(table, id_)) is not None]


def _runs(table: str) -> _Value:
    return lambda new, pairs: [
        [*run] for run in runs(_many(table)(new, expanded(tuple((first, last) for first, last in pairs))))
    ]


def _counted_threads(new: New, pairs: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[_one(THREADS)(new, thread), number] for thread, number in pairs]


def _subject(new: New, subject: Mapping[str, Any]) -> dict[str, Any]:
    return _renewed(new, {"operation": _one(OPERATIONS), "turn": _one(MESSAGES)}, subject)


def _items(new: New, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    state = {"replaced_by": _one(ITEMS), "may_replace": _one(ITEMS)}
    parts = {"id": _one(ITEMS)} | dict.fromkeys(("before", "after"), lambda new, found: _renewed(new, state, found))
    return [_renewed(new, parts, item) for item in items]


_PURGED = {
    "messages": MESSAGES,
    "items": ITEMS,
    "summaries": SUMMARIES,
    "titles": THREADS,
    "preambles": MESSAGES,
    "acts": OPERATIONS,
    "checkpoints": CHECKPOINTS,
}
_OF_MACHINE: Mapping[str, _Value] = {"inputs": lambda _new, _ids: [], "unsaid": lambda _new, _ids: []}

IDS: Mapping[str, Mapping[str, _Value]] = {
    "edit": {"message": _one(MESSAGES)},
    "restore": {"threads": _counted_threads},
    "fork": {"thread": _one(THREADS)},
    "retry": {"replaced": _many(MESSAGES), "wording": _one(MESSAGES), "message": _one(MESSAGES)},
    "unpin": {"message": _one(MESSAGES)},
    "compact": {"folds": _runs(MESSAGES)},
    "undo": {"undoes": _subject},
    "redo": {"redoes": _subject},
    "import": dict.fromkeys(("supersedes", "revives", "hidden"), _runs(MESSAGES)),
    "memory": {"items": _items, "distilled": _runs(MESSAGES)},
    "flash": {"checkpoint": _one(CHECKPOINTS), "archived": _many(ITEMS)},
    "purge": {**{key: _runs(table) for key, table in _PURGED.items()}, **_OF_MACHINE},
    "greeting": {"replaced": _many(MESSAGES), "cleared": _one(OPERATIONS)},
}
"""For each kind of act, the keys of its JSON that hold ids, and how these ids are replaced."""


def renewed(
    kind: str, detail: str, new: New, place: Callable[[int], int], threads: Sequence[int], numbers: Mapping[int, int]
) -> str:
    """Return the JSON of an operation for the other log. JSON that cannot be read stays as it is.

    ``place`` maps the newest message at the time of the operation to a message of the other log. ``threads`` are the
    ids there of the persona's threads that both logs have. ``numbers`` are the numbers of all threads there, by id.
    """
    try:
        found = _renewed(new, {"only": _runs(THREADS), **IDS.get(kind, {})}, json.loads(detail))
        if kind == Fork.kind:
            found["number"] = numbers[found["thread"]]
        if "newest" in found:
            found["newest"] = place(found["newest"])
        if kind in _ON_ALL_THREADS and not found.get("only"):
            found["only"] = [[*run] for run in runs(sorted(threads))]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return detail
    return json.dumps(found)


def newest_named(kind: str, detail: str) -> Mapping[str, int]:
    """Return the newest row of each table that the JSON of an operation names."""
    return _newest(lambda name: renewed(kind, detail, name, lambda after: after, (), {}))


def newest_in_session(contents: str) -> Mapping[str, int]:
    """Return the newest row of each table that the JSON of a session names."""
    return _newest(lambda name: renewed_session(contents, name))


def _newest(renew: Callable[[New], object]) -> Mapping[str, int]:
    found: dict[str, int] = {}

    def name(table: str, id_: int) -> int:
        found[table] = max(found.get(table, 0), id_)
        return id_

    renew(name)
    return found


def renewed_checkpoint(data: str, new: New) -> str:
    """Return the JSON of a checkpoint with the ids of the other log. JSON that cannot be read stays as it is."""
    try:
        found = json.loads(data)
        for tier in found["context_state"].values():
            for item in tier:
                item["id"] = _one(ITEMS)(new, item["id"])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return data
    return json.dumps(found, ensure_ascii=False)


def renewed_session(contents: str, new: New) -> str:
    """Return the JSON of a session's contents with the ids of the other log, without messages that are not copied.

    JSON that cannot be read stays as it is.
    """
    thread = _one(THREADS)
    try:
        found = json.loads(contents)
        renewed_contents = {
            "active_thread": thread(new, found["active_thread"]),
            "threads": [[thread(new, id_), _one(OPERATIONS)(new, fold), n] for id_, fold, n in found["threads"]],
            "messages": [[thread(new, id_), _runs(MESSAGES)(new, ids)] for id_, ids in found["messages"]],
        }
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return contents
    return json.dumps(renewed_contents)


def _renewed(new: New, keys: Mapping[str, _Value], found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: keys[key](new, value) if key in keys else value for key, value in found.items()}
