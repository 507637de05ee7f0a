"""What is in view, and what can be undone, worked out from a plain list of what happened, by the definitions alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from chorus_cli.context.rules.view import Reason


@dataclass(frozen=True)
class Place:
    """A thread of a persona."""

    persona: str
    thread: int


PLACES = (Place("chorus", 1), Place("chorus", 2), Place("frodo", 3))
BOUNDARIES = frozenset({"clear", "edit", "restore", "fork"})
PERSONAS = ("chorus", "frodo")


@dataclass(frozen=True)
class Said:
    """A message, as the model knows it."""

    id: int
    thread: int
    turn: int
    at: datetime
    introduced_by: int | None = None
    superseded: bool = False


@dataclass(frozen=True)
class Deed:
    """An operation, as the model knows it; ``target`` is ("operation" or "turn", id), ``hours`` before and after."""

    id: int
    kind: str
    persona: str
    thread: int | None
    after: int
    at: datetime
    members: tuple[int, ...] = ()
    replaced: frozenset[int] = frozenset()
    subject: tuple[str, int] | None = None
    hours: tuple[int, int] | None = None
    threads: tuple[tuple[int, int], ...] = ()
    moved: tuple[tuple[int, bool], ...] = ()


Past = list[Said | Deed]


def said_in(past: Past, thread: int) -> list[Said]:
    return [event for event in past if isinstance(event, Said) and event.thread == thread]


def concerns(event: Deed, place: Place) -> bool:
    return event.persona == place.persona and event.thread in {None, place.thread}


def deeds_of(past: Past, place: Place) -> list[Deed]:
    return [event for event in past if isinstance(event, Deed) and concerns(event, place)]


def taken_back(subject: tuple[str, int], deeds: list[Deed]) -> bool:
    words = [deed.kind for deed in deeds if deed.subject == subject]
    return bool(words) and words[-1] == "undo"


def standing(deeds: list[Deed]) -> list[Deed]:
    return [deed for deed in deeds if deed.subject is None and not taken_back(("operation", deed.id), deeds)]


def in_order(rows: list[Said]) -> list[int]:
    return [row.id for row in sorted(rows, key=lambda row: (row.turn, row.id))]


def put_into(deed: Deed, thread: int, past: Past) -> list[Said]:
    """Return the rows that a deed puts into the context of a thread, in its order."""
    rows = {event.id: event for event in past if isinstance(event, Said)}
    members = [rows[member] for member in deed.members]
    if deed.threads:
        meant = [each for each, number in deed.threads for _ in range(number)]
        return [row for row, each in zip(members, meant, strict=True) if each == thread]
    return [row for row in members if deed.thread is not None or row.thread == thread]


def said_elsewhere(past: Past, place: Place) -> list[Said]:
    """Return the rows of other threads that standing deeds have put into this one."""
    brought = {row.id: row for deed in standing(deeds_of(past, place)) for row in put_into(deed, place.thread, past)}
    return [row for row in brought.values() if row.thread != place.thread]


def naive_view(past: Past, place: Place, now: datetime, hours: int) -> list[int]:
    since = now - timedelta(hours=hours)
    rows, deeds = said_in(past, place.thread), deeds_of(past, place)
    bases = [deed for deed in standing(deeds) if deed.kind in BOUNDARIES]
    boundary, members = 0, list[Said]()
    if bases:
        boundary = bases[-1].after
        members = put_into(bases[-1], place.thread, past) if bases[-1].at > since else []
    newer = deeds[deeds.index(bases[-1]) + 1 :] if bases else deeds
    retries = [deed for deed in standing(deeds) if deed.kind == "retry" and deed in newer]
    storage = [deed for deed in standing(deeds) if deed.kind == "keep" and deed in newer]
    kept = {row.id: row for deed in storage for row in put_into(deed, place.thread, past)}
    imports = [deed for deed in standing(deeds) if deed.kind == "import" and deed in newer]
    allowed = {None, *(deed.id for deed in retries + imports)}
    spoken = [
        row
        for row in ({row.id: row for row in rows} | kept).values()
        if row not in members
        and (
            row.id in kept
            or (
                row.id > boundary
                and row.at > since
                and row.introduced_by in allowed
                and (row.turn > boundary or row.turn in {member.turn for member in members})
            )
        )
    ]
    moved = dict(move for deed in imports for move in deed.moved)
    off = {row.id for row in spoken if moved.get(row.id, row.superseded)}
    gone = {row for deed in retries for row in deed.replaced} | off - set(kept)
    # What such an operation put in is out even where another one keeps it: both wordings would be in context.
    reversible = [deed for deed in deeds if deed.kind == "import" or (deed.kind == "retry" and deed in newer)]
    undone = {deed.id for deed in reversible if taken_back(("operation", deed.id), newer)}
    gone |= {row.id for row in (*members, *spoken) if row.introduced_by in undone}
    turns = {row.id: row.turn for row in (*members, *spoken)}
    return [
        row
        for row in [member.id for member in members] + in_order(spoken)
        if row not in gone and not taken_back(("turn", turns[row]), newer)
    ]


def naive_reason(row: Said, past: Past, place: Place, since: datetime) -> Reason | str:
    """Return why a row that is not in view is not, by the first reason that holds."""
    deeds = deeds_of(past, place)
    counting = standing(deeds)
    boundaries = [deed for deed in counting if deed.kind in BOUNDARIES]
    base = boundaries[-1] if boundaries else None
    maker = next((deed for deed in deeds if deed.id == row.introduced_by), None)
    entered = put_into(base, place.thread, past) if base else []
    if base and row in entered:
        return Reason.AGE if base.at <= since else "none: it was just put in"
    if row.thread != place.thread:
        return Reason.BOUNDARY
    turns = {known.turn for known in entered}
    if base and (row.id <= base.after or (maker and maker.id < base.id)):
        return Reason.BOUNDARY
    if base and row.turn <= base.after and row.turn not in turns:
        return Reason.BOUNDARY
    if maker and maker not in counting and row.at > since:
        return Reason.TAKEN_BACK
    has_left = base is not None and base.at <= since and row.turn in turns
    return Reason.AGE if row.at <= since or has_left else "none: it is young enough"


def naive_last_spoken(past: Past, place: Place) -> datetime | None:
    imports = [deed for deed in standing(deeds_of(past, place)) if deed.kind == "import"]
    moved = dict(move for deed in imports for move in deed.moved)
    said_by = {None, *(deed.id for deed in imports)}
    rows = (row for row in said_in(past, place.thread) if row.introduced_by in said_by)
    return max((row.at for row in rows if not moved.get(row.id, row.superseded)), default=None)


def untouched_view(past: Past, place: Place, now: datetime, hours: int) -> list[int]:
    """Return what would be in view if no operation had ever been made."""
    since = now - timedelta(hours=hours)
    return in_order([row for row in said_in(past, place.thread) if row.introduced_by is None and row.at > since])


def naive_undoable(past: Past, place: Place) -> Deed | None:
    by_hand = [deed for deed in standing(deeds_of(past, place)) if deed.kind not in {"compact", "flash"}]
    return by_hand[-1] if by_hand else None


def naive_redoable(past: Past, place: Place) -> Deed | None:
    """Walk through everything that happened: an undo opens, its redo closes, and anything else closes all."""
    undos: list[Deed] = []
    for event in past:
        if isinstance(event, Said):
            if event.thread == place.thread and event.turn == event.id and event.introduced_by is None:
                undos = []
        elif not concerns(event, place) or event.kind in {"compact", "flash"}:
            continue
        elif event.kind == "undo":
            undos.append(event)
        elif event.kind == "redo":
            undos = [undo for undo in undos if undo.subject != event.subject]
        else:
            undos = []
    return undos[-1] if undos else None
