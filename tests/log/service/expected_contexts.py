"""What a user expects of the contexts of a persona: a plain list of deeds, played again from the first whenever asked.

Nothing here knows of rows or of the journal. Messages are known by their words, which no two of a thread share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

Deeds = Literal["say", "retry", "continue", "reword", "clear", "edit", "restore", "fork", "window"]
Turn = tuple[int, int]
BOUNDARIES = frozenset({"clear", "edit", "restore", "fork"})
DEFAULT_HOURS = 8
ADDED: Turn = (0, 0)
"""Stands for the turn of a line that was written by hand and has none yet."""
_WARM = timedelta(minutes=5)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Line:
    """A message in a context: when it was said, since when it counts as being there, and the turn it belongs to.

    A turn is known by the number of the deed that its question came with, and its place in that deed.
    """

    text: str
    human: bool
    said: datetime
    entered: datetime
    turn: Turn


Lines = tuple[Line, ...]


@dataclass(frozen=True)
class Told:
    """What a deed does: what it puts into which threads, what it takes out, or the window before and after.

    ``opened`` is the number of the first deed that follows it, if that was done before: while an editor was open.
    ``origin`` is the thread that was forked.
    """

    kind: Deeds
    thread: int | None
    at: datetime
    lines: Mapping[int, Lines] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    hours: tuple[int | None, int | None] = (None, None)
    opened: int | None = None
    origin: int | None = None


@dataclass(eq=False)
class Deed:
    """Something that was done, and the contexts that it concerned before and after, however old they are.

    ``number`` says when; ``operation`` is its number in the journal, 0 for what was said; ``taken_back`` is the number
    of the undo, 0 if it counts.
    """

    number: int
    told: Told
    operation: int
    before: Mapping[int, Lines]
    after: Mapping[int, Lines] = field(default_factory=dict)
    taken_back: int = 0

    def concerns(self, thread: int) -> bool:
        return self.told.thread in {None, thread}

    def is_listed(self, thread: int) -> bool:
        """Return whether it is taken back by its number: where it was done, and where a fork was made."""
        return self.operation > 0 and (self.concerns(thread) or self.told.origin == thread)


@dataclass(frozen=True)
class Event:
    """A deed, or that it was taken back or put back."""

    what: Literal["do", "undo", "redo"]
    deed: Deed


@dataclass(frozen=True)
class Held:
    """Where the window of a request began; the requests that follow begin there too, for a while."""

    since: datetime
    made: datetime
    used: datetime


@dataclass
class Expected:
    """The contexts of one persona."""

    threads: list[int]
    hours: int | None = None
    events: list[Event] = field(default_factory=list)
    known: dict[int, dict[str, Line]] = field(default_factory=dict)
    held: dict[int, Held] = field(default_factory=dict)

    # What is in context

    def context(self, thread: int) -> Lines:
        """Return what is in context but for its age."""
        base, opened, base_at = 0, 0, _LONG_AGO
        members: list[Line] = []
        spoken: list[Line] = []
        turns: set[Turn] = set()
        for deed in self.standing(thread):
            told = deed.told
            gone = told.replaced
            members = [line for line in members if line.text not in gone]
            spoken = [line for line in spoken if line.text not in gone]
            if told.kind in BOUNDARIES:
                base, opened, base_at = deed.number, told.opened or deed.number, told.at
                members, spoken = list(told.lines.get(thread, ())), [line for line in spoken if line.turn[0] >= opened]
                turns = {line.turn for line in members}
                continue
            for line in told.lines.get(thread, ()):
                if line.turn[0] >= opened:
                    spoken.append(line)
                elif line.turn in turns:
                    # It answers what the boundary put in, also instead of it, and leaves together with that.
                    spoken.append(replace(line, entered=base_at))
        said = (deed for deed in self.deeds("say") if deed.concerns(thread))
        undone = {(deed.number, 0) for deed in said if deed.taken_back > base}
        together = members + sorted(spoken, key=lambda line: line.turn)
        return tuple(line for line in together if line.turn not in undone)

    def others_of(self, line: Line, thread: int, view: Sequence[Line]) -> frozenset[str]:
        """Return what else its turn has in place of a line, out of context; what replaces the line keeps it out."""
        laid = (each for deed in self.deeds() for each in deed.told.lines.get(thread, ()))
        alike = {each.text for each in laid if (each.turn, each.human) == (line.turn, line.human)}
        return frozenset(alike - {each.text for each in view})

    def view(self, thread: int, now: datetime) -> Lines:
        """Return what is in context."""
        return self.young(self.context(thread), thread, now)

    def young(self, lines: Sequence[Line], thread: int, now: datetime) -> Lines:
        """Leave out what the window does not reach."""
        since = self.since(thread, now)
        return tuple(line for line in lines if line.entered > since)

    def past_view(self, thread: int, now: datetime) -> Lines:
        """Return what is known to have been in context: nobody remembers later where a window was held."""
        since = now - self._window()
        return tuple(line for line in self.context(thread) if line.entered > since)

    # Where the window begins

    def since(self, thread: int, now: datetime) -> datetime:
        """Return where it begins: as the last request, for five minutes and an eighth of the window, at most an hour.

        Whatever is done to the context lets it slide.
        """
        held = self.held.get(thread)
        if held is None or now - held.used > _WARM or now - held.made > min(timedelta(hours=1), self._window() / 8):
            return now - self._window()
        return held.since

    def hold(self, thread: int, now: datetime) -> None:
        """A request is made."""
        held, since = self.held.get(thread), self.since(thread, now)
        self.held[thread] = Held(since, held.made if held and held.since == since else now, now)

    def let_slide(self, thread: int | None = None) -> None:
        """Forget where the window of a thread began, or of all."""
        for each in self.threads if thread is None else [thread]:
            self.held.pop(each, None)

    def _window(self) -> timedelta:
        return timedelta(hours=DEFAULT_HOURS if self.hours is None else self.hours)

    # What was done

    def deeds(self, kind: Deeds | None = None) -> list[Deed]:
        return [event.deed for event in self.events if event.what == "do" and kind in {None, event.deed.told.kind}]

    def standing(self, thread: int) -> list[Deed]:
        return [deed for deed in self.deeds() if deed.concerns(thread) and not deed.taken_back]

    @property
    def next_number(self) -> int:
        return len(self.events) + 1

    def do(self, told: Told, operation: int) -> None:
        deed = Deed(self.next_number, told, operation, self._contexts(told.thread))
        self.events.append(Event("do", deed))
        for thread, lines in told.lines.items():
            for line in lines:
                self.known.setdefault(thread, {}).setdefault(line.text, line)
        if told.kind not in {"say", "retry", "continue"}:
            self.let_slide(told.thread)
        if told.kind == "window":
            self.hours = told.hours[1]
        deed.after = self._contexts(told.thread)

    def edited(self, lines: Sequence[Line], now: datetime) -> Lines:
        """Return lines as an edit puts them in: a question that was added opens a turn, a reply joins one."""
        placed: list[Line] = []
        for position, line in enumerate(lines):
            joined = placed[-1].turn if placed and not line.human else (self.next_number, position)
            placed.append(replace(line, entered=now, turn=joined if line.turn == ADDED else line.turn))
        return tuple(placed)

    def restored(self, thread: int, lines: Sequence[Line], now: datetime) -> Lines:
        """Return lines of a session as it puts them in: those that are known, and others in the turns they had."""
        known = self.known.get(thread, {})
        turns = {line.turn: known[line.text].turn for line in lines if line.text in known}
        placed: list[Line] = []
        for position, line in enumerate(lines):
            joined = placed[-1].turn if placed and not line.human else (self.next_number, position)
            turn = known[line.text].turn if line.text in known else turns.get(line.turn, joined)
            placed.append(replace(line, entered=now, turn=turn))
        return tuple(placed)

    def _contexts(self, thread: int | None) -> Mapping[int, Lines]:
        return {each: self.context(each) for each in (self.threads if thread is None else [thread])}

    # What is taken back

    def undoable(self, thread: int) -> Deed | None:
        """Return the newest deed; what was said only if anything of it is in context but for its age."""
        turns = {line.turn for line in self.context(thread)}
        for deed in reversed(self.standing(thread)):
            if deed.told.kind != "say" or (deed.number, 0) in turns:
                return deed
        return None

    def undoable_operation(self, thread: int) -> Deed | None:
        done = [deed for deed in self.standing(thread) if deed.told.kind != "say"]
        return done[-1] if done else None

    def redoable(self, thread: int) -> Deed | None:
        """Return the deed of the newest undo here that nothing has followed.

        What concerns every thread is followed by what is said in any of them.
        """
        undone: list[Deed] = []
        for event in self.events:
            if event.what == "undo" and (event.deed.concerns(thread) or event.deed.told.origin == thread):
                undone.append(event.deed)
            elif event.what == "redo":
                undone = [deed for deed in undone if deed is not event.deed]
            elif event.what == "do" and event.deed.concerns(thread):
                undone = []
        return undone[-1] if undone and not self._followed_elsewhere(undone[-1]) else None

    def _followed_elsewhere(self, undone: Deed) -> bool:
        later = [event.deed for event in self.events[undone.taken_back :] if event.what == "do"]
        return undone.told.thread is None and any(deed.told.kind in {"say", "retry", "continue"} for deed in later)

    def may_undo(self, deed: Deed) -> bool:
        return deed.told.kind != "window" or self.hours == deed.told.hours[1]

    def may_redo(self, deed: Deed) -> bool:
        return deed.told.kind != "window" or self.hours == deed.told.hours[0]

    def undo(self, deed: Deed) -> None:
        deed.taken_back = self.next_number
        self.events.append(Event("undo", deed))
        self.let_slide(deed.told.thread)
        if deed.told.kind == "window":
            self.hours = deed.told.hours[0]

    def redo(self, deed: Deed) -> None:
        deed.taken_back = 0
        self.events.append(Event("redo", deed))
        self.let_slide(deed.told.thread)
        if deed.told.kind == "window":
            self.hours = deed.told.hours[1]

    def is_all_there_is(self, deed: Deed, thread: int) -> bool:
        """Return whether nothing but this deed made a difference to the thread since it was done."""
        others = [event.deed for event in self.events[deed.number :] if event.deed is not deed]
        return not any(
            other.concerns(thread) and (other.number < deed.number or not other.taken_back) for other in others
        )
