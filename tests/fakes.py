"""Stand-ins for the outside world: real implementations of the ports, so that nothing needs to be patched."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from signal import Signals

from chorus_cli.core.errors import EditorError, ModelError
from chorus_cli.log.rules.attachments import ALL_SENT, Kind
from chorus_cli.machine.editor import UserEditor
from chorus_cli.machine.ports import Leftover
from chorus_cli.machine.shell import ShellProcess, UserShell
from chorus_cli.models.rules.events import ModelEvent, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import NO_ECHO, Echo, ModelRequest

START = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)


class FakeClock:
    """Time that passes only when a test says so, or when somebody sleeps."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._monotonic = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(timedelta(seconds=seconds))
        await asyncio.sleep(0)

    def advance(self, elapsed: timedelta) -> None:
        """Let time pass; a negative time sets the wall clock back, which the monotonic one ignores."""
        self._now += elapsed
        self._monotonic += max(0.0, elapsed.total_seconds())


class WordCounter:
    """Counts a token for each word."""

    is_ready = True

    def load(self) -> None:
        return

    def at_most(self, text: str) -> int:
        return self.count(text)

    def count(self, text: str) -> int:
        return len(text.split())


@dataclass
class ScriptedModel:
    """Answers from a script: each entry is the events of one request, an error among them is raised there.

    ``requests`` holds what was asked. An ``asyncio.Event`` in the script is waited for. ``accepted`` are the kinds of
    attachments that it takes, ``echo`` which of its thoughts it is sent again. ``has_assumed_limit`` says that nothing
    tells its context length, ``relative`` names the model whose figures it takes.
    """

    requests: list[ModelRequest] = field(default_factory=list)
    accepted: frozenset[Kind] = ALL_SENT
    echo: Echo = NO_ECHO
    has_assumed_limit: bool = False
    relative: str = ""
    _script: deque[Sequence[ModelEvent | ModelError | asyncio.Event]] = field(default_factory=deque)

    def enqueue(self, *events: ModelEvent | ModelError | asyncio.Event) -> None:
        self._script.append(events)

    def say(self, text: str, finish_reason: str | None = "stop") -> None:
        """Enqueue a reply that arrives word by word."""
        words = [TextDelta(word) for word in text.split(" ")]
        spaced = [TextDelta(" " + word.text) if position else word for position, word in enumerate(words)]
        self.enqueue(*spaced, ReplyEnd(finish_reason))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        events: Sequence[ModelEvent | ModelError | asyncio.Event] = (
            self._script.popleft() if self._script else (TextDelta("ok"), ReplyEnd("stop"))
        )
        for event in events:
            if isinstance(event, ModelError):
                raise event
            if isinstance(event, asyncio.Event):
                await event.wait()
                continue
            yield event


@dataclass
class ScriptedEditor(UserEditor):
    """Changes each file that it opens as its script says, which takes a minute; without a script it leaves the file.

    ``shown`` holds the texts that it was given, ``opened`` the files, ``lines`` where each was to be opened.
    """

    clock: FakeClock
    shown: list[str] = field(default_factory=list)
    opened: list[Path] = field(default_factory=list)
    lines: list[int | None] = field(default_factory=list)
    _script: deque[tuple[str | Callable[[Path], object] | EditorError | None, str, float]] = field(
        default_factory=deque
    )

    def enqueue(
        self, act: str | Callable[[Path], object] | EditorError | None, *, complaint: str = "", seconds: float = 60.0
    ) -> None:
        """Have the next file overwritten with a text, treated by a function, or left; or have no editor start."""
        self._script.append((act, complaint, seconds))

    async def open(self, path: Path, line: int | None = None) -> str:
        act, complaint, seconds = self._script.popleft() if self._script else (None, "", 60.0)
        if isinstance(act, EditorError):
            raise act
        await self.clock.sleep(seconds)
        self.lines.append(line)
        self._change(path, act)
        return complaint

    def stays_in_terminal(self) -> bool:
        return False

    def end(self) -> None:
        """It never is open while something else happens."""

    def _change(self, path: Path, act: str | Callable[[Path], object] | None) -> None:
        self.opened.append(path)
        self.shown.append(path.read_bytes().decode())
        if isinstance(act, str):
            path.write_bytes(act.encode())
        elif act is not None:
            act(path)


@dataclass
class ScriptedProcess(ShellProcess):
    """A command that prints its pieces, waits where its script has an event, and ends with ``code`` or by a signal.

    ``signals`` holds those that it was sent.
    """

    pieces: deque[bytes | asyncio.Event]
    code: int = 0
    left: tuple[Leftover, ...] = ()
    signals: list[Signals] = field(default_factory=list)
    closed: bool = False

    def __post_init__(self) -> None:
        self._ended = asyncio.Event()

    async def read(self) -> bytes:
        while self.pieces and not self._ended.is_set():
            piece = self.pieces.popleft()
            if isinstance(piece, bytes):
                return piece
            waits = [asyncio.ensure_future(event.wait()) for event in (piece, self._ended)]
            _, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in pending:
                wait.cancel()
        self._ended.set()
        return b""

    async def wait(self) -> int:
        await self._ended.wait()
        return self.code

    def send(self, number: Signals) -> None:
        self.signals.append(number)
        if not self._ended.is_set():
            self.code = -number
            self._ended.set()

    async def leftovers(self) -> tuple[Leftover, ...]:
        return self.left

    def close(self) -> None:
        self.closed = True
        self._ended.set()


@dataclass
class ScriptedShell(UserShell):
    """Starts commands that do as its script says; without a script they print ``ok`` and end well."""

    secrets: tuple[str, ...] = ()
    commands: list[str] = field(default_factory=list)
    processes: list[ScriptedProcess] = field(default_factory=list)
    _script: deque[ScriptedProcess] = field(default_factory=deque)

    def enqueue(self, *pieces: bytes | asyncio.Event, code: int = 0, left: tuple[Leftover, ...] = ()) -> None:
        self._script.append(ScriptedProcess(deque(pieces), code, left))

    def withheld(self, passing: Collection[str]) -> tuple[str, ...]:
        return tuple(name for name in self.secrets if name not in passing)

    def start(self, command: str, passing: Collection[str] = ()) -> ScriptedProcess:
        del passing
        self.commands.append(command)
        self.processes.append(self._script.popleft() if self._script else ScriptedProcess(deque([b"ok\n"])))
        return self.processes[-1]
