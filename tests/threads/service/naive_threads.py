"""A naive model of the threads of one persona: all that was said and done, played again for every context.

Nothing here knows of rows, of the journal or of the view. Threads are known by their numbers, messages by their words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from chorus_cli.log.rules.messages import Status
from chorus_cli.log.rules.threads import ThreadState

Kind = Literal["said", "clear", "edit", "restore", "fork"]
Shown = tuple[bool, str, Status]
NOTHING: Mapping[int, Sequence[Line]] = MappingProxyType({})


@dataclass(eq=False)
class Line:
    """A message, whether the user's own, and the deed that it was said with."""

    text: str
    turn: Deed
    human: bool
    status: Status = Status.COMPLETE

    @property
    def shown(self) -> Shown:
        return self.human, self.text if self.status is Status.COMPLETE else "", self.status


@dataclass(eq=False)
class Deed:
    """Something said in ``thread``, or done there or in every thread: ``None``.

    ``at`` is its place in the history, ``number`` the operation's. ``lines`` are the messages that it puts into each
    thread. ``following`` are turns in progress that go on after it, ``origin`` is the thread that was forked, and
    ``undone_at`` is the place of the undo, 0 if the deed counts.
    """

    kind: Kind
    thread: int | None
    at: int
    number: int = 0
    lines: Mapping[int, Sequence[Line]] = field(default_factory=dict)
    following: Sequence[Deed] = ()
    origin: int = 0
    undone_at: int = 0

    def concerns(self, thread: int) -> bool:
        return self.thread in {None, thread}

    def is_listed(self, thread: int) -> bool:
        """Return whether it goes by its number in a thread: where it was done, and where a fork was made."""
        return self.kind != "said" and (self.concerns(thread) or self.origin == thread)


@dataclass(frozen=True)
class Event:
    """A deed, or that it was taken back or put back by the operation ``number``."""

    what: Literal["do", "undo", "redo"]
    deed: Deed
    number: int


@dataclass
class Thread:
    """A thread: the moment of its newest message or else of its opening, whether it is open, and what goes on in it."""

    last_active: int
    is_closed: bool = False
    title: str = ""
    running: Deed | None = None
    waiting: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Session:
    """The contexts that were saved, and the thread that was in focus."""

    lines: Mapping[int, Sequence[Line]]
    active: int


@dataclass
class NaiveThreads:
    """All threads by their numbers; ``last_used`` is the one that the next run goes on in."""

    threads: dict[int, Thread] = field(default_factory=lambda: {1: Thread(0)})
    current: int = 1
    last_used: int = 1
    events: list[Event] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    inserted: int = 0
    moments: int = 0

    @property
    def here(self) -> Thread:
        return self.threads[self.current]

    @property
    def open(self) -> list[int]:
        return [number for number, thread in self.threads.items() if not thread.is_closed]

    def view(self, number: int) -> list[Line]:
        """Return what is in context: what the newest boundary put in, and what was said since.

        A turn is taken back only in its own thread: a fork of it keeps it.
        """
        bounds = [each for each in self.standing(number) if each.kind != "said"]
        base = bounds[-1] if bounds else None
        since = base.at if base else 0
        lines = [*base.lines.get(number, ())] if base else []
        for turn in self.turns():
            if turn.thread == number and (turn.at > since or (base and turn in base.following)):
                lines += [line for line in turn.lines[number] if line not in lines]
        return [line for line in lines if line.turn.thread != number or line.turn.undone_at <= since]

    def settled(self, number: int) -> list[Line]:
        """Return what is in context without the turn in progress and without replies that no word came of."""
        running = self.threads[number].running
        return [line for line in self.view(number) if line.text and line.turn is not running]

    def state(self, number: int) -> ThreadState:
        thread = self.threads[number]
        if thread.is_closed:
            return ThreadState.CLOSED
        if thread.running:
            return ThreadState.RUNNING
        replies = [line for line in self.view(number) if not line.human]
        is_whole = not replies or replies[-1].status is Status.COMPLETE
        return ThreadState.IDLE if is_whole else ThreadState.INTERRUPTED

    def turns(self) -> list[Deed]:
        return [event.deed for event in self.events if event.what == "do" and event.deed.kind == "said"]

    def operations(self) -> list[Event]:
        return [event for event in self.events if event.number]

    def standing(self, number: int) -> list[Deed]:
        deeds = [event.deed for event in self.events if event.what == "do"]
        return [deed for deed in deeds if deed.concerns(number) and not deed.undone_at]

    # What is said

    def send(self, number: int, text: str) -> None:
        if self.threads[number].running:
            self.threads[number].waiting.append(text)
        else:
            self._begin(number, text)

    def end(self, number: int, reply: str, status: Status = Status.COMPLETE) -> None:
        """A reply is over; the next message that waits is sent."""
        thread = self.threads[number]
        self._end(thread, reply, status)
        if thread.waiting:
            last_used = self.last_used
            self._begin(number, thread.waiting.pop(0))
            self.last_used = last_used

    def break_off(self, number: int, reply: str) -> None:
        """A reply is broken off, and messages that wait are not sent but kept."""
        thread = self.threads[number]
        self.kept += thread.waiting
        thread.waiting.clear()
        if thread.running:
            self._end(thread, reply, Status.INTERRUPTED)

    def _end(self, thread: Thread, reply: str, status: Status) -> None:
        assert thread.running
        [[_, line]] = thread.running.lines.values()
        line.text, line.status = reply, status
        thread.running = None

    def _begin(self, number: int, text: str) -> None:
        turn = Deed("said", number, self._next)
        turn.lines = {number: [Line(text, turn, human=True), Line("", turn, human=False, status=Status.STREAMING)]}
        self.events.append(Event("do", turn, 0))
        self.threads[number].running, self.threads[number].last_active = turn, self._moment()
        self.last_used = number

    # What is done

    def clear(self) -> None:
        self._do(Deed("clear", None, self._next))

    def edit(self, lines: Sequence[Line]) -> None:
        following = self._in_progress([self.current])
        self._do(Deed("edit", self.current, self._next, lines={self.current: lines}, following=following))

    def restore(self, session: Session) -> None:
        following = self._in_progress([*self.threads], session.lines)
        self._do(Deed("restore", None, self._next, lines=session.lines, following=following))
        for number in session.lines:
            self.threads[number].is_closed = False
        self.go_to(session.active)

    def fork(self, lines: Sequence[Line]) -> None:
        origin = self.current
        self.new()
        self._do(Deed("fork", self.current, self._next, lines={self.current: lines}, origin=origin))

    def _in_progress(self, numbers: Sequence[int], put_in: Mapping[int, Sequence[Line]] = NOTHING) -> list[Deed]:
        """Return the turns in progress that are in context, or whose question is ``put_in``."""
        lines = {number: [*self.view(number), *put_in.get(number, ())] for number in numbers}
        running = ((number, self.threads[number].running) for number in numbers)
        return [turn for number, turn in running if turn and any(line.turn is turn for line in lines[number])]

    def _do(self, deed: Deed) -> None:
        deed.number = len(self.operations()) + 1
        self.events.append(Event("do", deed, deed.number))

    @property
    def _next(self) -> int:
        return len(self.events) + 1

    def _moment(self) -> int:
        """Count a message or the opening of a thread, which is later than those before."""
        self.moments += 1
        return self.moments

    # Which threads there are

    def new(self) -> None:
        number = len(self.threads) + 1
        self.threads[number] = Thread(self._moment())
        self.go_to(number)

    def go_to(self, number: int) -> None:
        self.threads[number].is_closed = False
        self.current = self.last_used = number

    def close(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.threads[number].is_closed = True
        if not self.open:
            self.new()
        elif self.here.is_closed:
            self.go_to(max(self.open, key=lambda number: (self.threads[number].last_active, number)))

    def start_again(self) -> None:
        self.current = self.last_used if self.last_used in self.open else max(self.open)
        self.kept.clear()

    # What is taken back

    def undoable(self) -> Deed | None:
        """Return the newest deed here; what was said only if anything of it is in context."""
        in_view = [line.turn for line in self.view(self.current)]
        done = [each for each in self.standing(self.current) if each.kind != "said"]
        return max((*in_view, *done), key=lambda each: each.at, default=None)

    def redoable(self) -> Deed | None:
        """Return the subject of the newest undo here that nothing has followed."""
        undone: list[Deed] = []
        for event in self.events:
            deed = event.deed
            if event.what == "undo" and (deed.concerns(self.current) or deed.origin == self.current):
                undone.append(deed)
            elif event.what == "redo":
                undone = [each for each in undone if each is not deed]
            elif event.what == "do" and deed.concerns(self.current):
                undone = []
        if not undone or (undone[-1].thread is None and self._is_followed(undone[-1])):
            return None
        return undone[-1]

    def _is_followed(self, undone: Deed) -> bool:
        """Return whether something was said in any thread since a deed was taken back."""
        return any(turn.at > undone.undone_at for turn in self.turns())

    def undo(self, deed: Deed) -> None:
        deed.undone_at = self._next
        self._reverse("undo", deed)
        if deed.kind == "fork" and deed.thread:
            self.threads[deed.thread].is_closed = True
            if deed.origin in self.open:
                self.go_to(deed.origin)
            elif self.open:
                self.go_to(self.last_used if self.last_used in self.open else max(self.open))
            else:
                self.new()

    def redo(self, deed: Deed) -> None:
        deed.undone_at = 0
        self._reverse("redo", deed)
        if deed.kind == "fork" and deed.thread:
            self.go_to(deed.thread)

    def _reverse(self, what: Literal["undo", "redo"], deed: Deed) -> None:
        self.events.append(Event(what, deed, len(self.operations()) + 1))


def reworded(line: Line, text: str) -> Line:
    """Return a line with another text, which is whole then."""
    return replace(line, text=text, status=Status.COMPLETE)
