"""A user at work in threads, personas and times: what is said and done on all services, and what is to be expected."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, TypeVar

from hypothesis import strategies as st

from chorus_cli.context.rules.plan import LEAD
from chorus_cli.core.errors import ChorusError, ModelError
from chorus_cli.framework.replies import Question, plain
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.acts import Way
from chorus_cli.log.rules.messages import Role
from chorus_cli.models.rules.events import TurnEvent
from chorus_cli.personas.rules.persona import Target
from chorus_cli.storage.port import Connection
from chorus_cli.storage.sqlite import Sqlite, SqliteConnection
from chorus_cli.storage.store import Store
from tests.fakes import START, FakeClock, ScriptedModel
from tests.log.service.expected_contexts import Expected, Line, Lines, Told
from tests.storage.database import in_memory, quick
from tests.storage.schemas import SERVER, give_back
from tests.world import World, built

Ending = Literal["reply", "nothing", "stopped"]
Shown = list[tuple[str, bool, datetime]]
T = TypeVar("T")

_LIMIT_TOKENS = 100_000
_BLOCK = re.compile(r"\[(\S+ \S+)\] (\w+): (.*)")
_CONTEXT_LINE, _END_LINE = "--- context starts here ---\n", "--- end of messages ---\n"


class InMemory(Sqlite):
    """A database without a file, so that hundreds of them cost no disk."""

    def open(self) -> SqliteConnection:
        return in_memory()


@dataclass(frozen=True)
class Block:
    """A message as it stands in the text that a context is edited as."""

    time: str
    speaker: str
    text: str

    def __str__(self) -> str:
        return f"[{self.time}] {self.speaker}: {self.text}\n"


class UserStory:
    """A world of its own, and an event loop to run it in."""

    def __init__(self, start: datetime = START) -> None:
        self._runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="chorus-story-"))
        self._log = self.folder / "chorus.db"
        engine = quick(self._log) if SERVER in os.environ else InMemory(self._log)
        self.clock, self.model, self.store = FakeClock(start), ScriptedModel(), Store(engine)
        self.run(self.store.open())
        self.world: World = self.run(built(self.folder, self.store, self.clock, self.model, _LIMIT_TOKENS))

    def end(self) -> None:
        self.run(self.store.close())
        self._runner.close()
        give_back(self._log)
        shutil.rmtree(self.folder)

    def start_again(self) -> None:
        """Begin another process: nothing is remembered but what is in the database and the files."""
        self.world = self.run(built(self.folder, self.store, self.clock, self.model, _LIMIT_TOKENS))

    def run(self, work: Coroutine[object, object, T]) -> T:
        return self._runner.run(work)

    def told(self, line: str) -> str:
        return self.run(self.world.told(line))

    def insisted(self, line: str) -> str:
        """Carry out a command, say yes if it asks, and return what the user reads in the end."""
        return self.run(self._insisted(line))

    async def _insisted(self, line: str) -> str:
        try:
            answer = await self.world.carry_out(line)
            return plain(await answer.confirmed() if isinstance(answer, Question) else answer)
        except ChorusError as error:
            return str(error)

    @property
    def slug(self) -> str:
        return self.world.current.slug

    @property
    def thread(self) -> int:
        return self.world.current.target().thread_id

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def target(self, slug: str | None = None, thread: int | None = None) -> Target:
        target = self.world.current.target()
        persona = self.world.personas.load(slug or self.slug)
        return target._replace(persona=persona, thread_id=thread or target.thread_id)

    def open_threads(self) -> list[int]:
        return [thread.id for thread in self.run(self.world.threads.open_threads())]

    def number_of(self, thread: int) -> int:
        [number] = [each.number for each in self.run(self.world.threads.open_threads()) if each.id == thread]
        return number

    # What is said

    def say(self, text: str, ending: Ending, reply: str) -> None:
        self._prepare(ending, reply)
        self.run(self._heard(self.world.conversation.answer(self.target(), text), ending))

    def retry(self, ending: Ending, reply: str, way: Way = Way.AGAIN) -> None:
        self._prepare(ending, reply)
        self.run(self._heard(self.world.conversation.retry(self.target(), way), ending))

    def asked(self) -> list[tuple[str, str]]:
        """Return the words of each message of the last request, and the whole that they were sent in."""
        sent = [message.content for message in self.model.requests[-1].messages[1:]]
        return [(content.split("\n\n")[-1], content) for content in sent if content != LEAD]

    def _prepare(self, ending: Ending, reply: str) -> None:
        if ending == "reply":
            self.model.say(reply)
        else:
            self.model.enqueue(ModelError("It is down.") if ending == "nothing" else asyncio.Event())

    async def _heard(self, events: AsyncIterable[TurnEvent], ending: Ending) -> None:
        """Hear a reply to its end, or stop listening once it was asked for."""
        asked = len(self.model.requests)
        hearing = asyncio.ensure_future(_listened(events))
        if ending == "stopped":
            while len(self.model.requests) == asked:  # noqa: ASYNC110 - a request has no other sign of having begun
                await asyncio.sleep(0.001)
            hearing.cancel()
        with suppress(asyncio.CancelledError):
            await hearing

    # What is there

    def seen(self, slug: str, threads: Sequence[int]) -> dict[int, Shown]:
        """Return what is in context in each of the threads."""
        return self.run(self._seen(self.target(slug), threads))

    async def _seen(self, target: Target, threads: Sequence[int]) -> dict[int, Shown]:
        found: dict[int, Shown] = {}
        for thread in threads:
            view = (await self.world.context.snapshot(target._replace(thread_id=thread), self.now)).view
            found[thread] = [
                (row.content, row.role is Role.USER, row.timestamp) for row in view.messages if row.content
            ]
        return found

    def rows(self) -> list[tuple[object, ...]]:
        """Return all of the log that never changes, at the end of each row its words and what put it in."""
        return self.run(self.store.read(_rows))

    def messages_of_thread(self) -> dict[int, int]:
        """Return for each row that says something the one that it is another wording of, or itself."""
        rows = self.run(self.store.read(_wordings, self.thread))
        known = {id_ for id_, _ in rows}
        first = {id_: revises if revises in known else id_ for id_, revises in rows}
        while any(first[first[id_]] != first[id_] for id_ in first):
            first = {id_: first[first[id_]] for id_ in first}
        return first

    def newest_operation(self) -> int:
        return self.run(self.world.journal.entries(self.target()))[-1].operation.number

    # How a context is edited

    def laid_out(self, text: str) -> tuple[list[Block], list[Block]]:
        """Return what stands above the line where the context starts, and what stands below it."""
        body = text.partition("\n---\n")[2].partition(_END_LINE)[0]
        above, below = ([Block(*found) for found in _BLOCK.findall(half)] for half in body.split(_CONTEXT_LINE))
        return above, below

    def written(self, text: str, above: Sequence[Line], below: Sequence[Line]) -> str:
        """Return the text with other messages above and below the line."""
        head, _, rest = text.partition("\n---\n")
        blocks = [[str(self.block(line)) for line in part] for part in (above, below)]
        return "\n".join(
            [head, "---\n", *blocks[0], _CONTEXT_LINE, *blocks[1], _END_LINE + rest.partition(_END_LINE)[2]]
        )

    def block(self, line: Line) -> Block:
        speaker = "Human" if line.human else self.world.current.target().persona.name
        return Block(f"{line.said:%Y-%m-%d %H:%M:%S}", speaker, line.text)


def shown(lines: Lines) -> Shown:
    return [(line.text, line.human, line.said) for line in lines]


async def _listened(events: AsyncIterable[TurnEvent]) -> None:
    async for _ in events:
        pass


def _rows(connection: Connection) -> list[tuple[object, ...]]:
    return connection.execute(
        "SELECT id, persona, thread_id, turn_id, role, timestamp, preamble, content, introduced_by FROM messages "
        "ORDER BY id"
    ).fetchall()


def _wordings(connection: Connection, thread_id: int) -> list[tuple[int, int | None]]:
    [persona] = connection.execute("SELECT persona FROM threads WHERE id = ?", (thread_id,)).fetchone()
    brought = operation_rows.said_elsewhere(connection, persona, thread_id)
    return connection.execute(
        "SELECT id, revises FROM messages WHERE (thread_id = ? OR id IN (SELECT value FROM json_each(?))) "
        "AND content <> ''",
        (thread_id, json.dumps(list(brought))),
    ).fetchall()


# What is expected of it

OTHER = {"chorus": "frodo", "frodo": "chorus"}
MOST_THREADS = 3
PAUSES = st.sampled_from(
    (
        timedelta(minutes=1),
        timedelta(minutes=40),
        timedelta(hours=3),
        timedelta(hours=7, minutes=59),
        timedelta(days=1),
        timedelta(days=5),
    )
)


@dataclass(frozen=True)
class Saved:
    """A session: what was in context in each thread, and the thread in front of the user."""

    lines: dict[int, Lines]
    active: int
    origin: str


@dataclass(frozen=True)
class Past:
    """What was in context at a moment."""

    slug: str
    thread: int
    moment: datetime
    lines: Lines


class ExpectingUser:
    """Compares what becomes of the contexts with what is expected."""

    def __init__(self, start: datetime = START) -> None:
        self.story = UserStory(start)
        self.personas = {"chorus": Expected([self.story.thread])}
        self.story.told("/persona new Frodo")
        self.personas["frodo"] = Expected([self.story.thread])
        self.story.told("/persona chorus")
        self.sessions: dict[tuple[str, str], Saved] = {}
        self.pasts: list[Past] = []
        self.words = 0
        self.said: list[str] = []
        self.sent: dict[tuple[str, str], str] = {}

    # Where and when

    def go_to_a_thread(self, data: st.DataObject) -> None:
        thread = data.draw(st.sampled_from(self.here.threads))
        self.story.told(f"/thread {self.story.number_of(thread)}")
        assert self.thread == thread

    def open_a_thread(self, _: st.DataObject) -> None:
        self._tick()
        if len(self.here.threads) < MOST_THREADS:
            self.story.told("/thread new")
            assert self.thread not in self.here.threads
            self.here.threads.append(self.thread)

    def turn_to_the_other(self, _: st.DataObject) -> None:
        other = OTHER[self.slug]
        self.story.told(f"/persona {other}")
        assert self.slug == other
        assert self.thread in self.here.threads

    def start_again(self, _: st.DataObject) -> None:
        place = (self.slug, self.thread)
        self.story.start_again()
        for persona in self.personas.values():
            persona.let_slide()
        assert (self.slug, self.thread) == place

    def let_time_pass(self, data: st.DataObject) -> None:
        for slug, persona in self.personas.items():
            self.pasts += [Past(slug, each, self.now, persona.past_view(each, self.now)) for each in persona.threads]
        self.story.clock.advance(data.draw(PAUSES))

    def look_back(self, data: st.DataObject) -> None:
        if not self.pasts:
            return
        past = self.pasts[data.draw(st.integers(0, len(self.pasts) - 1))]
        place, world = self.story.target(past.slug, past.thread), self.story.world
        then = self.story.run(world.context.past(place, past.moment))
        assert [row.content for row in then.view.messages if row.content] == [line.text for line in past.lines]

    # How it is done

    @property
    def slug(self) -> str:
        return self.story.slug

    @property
    def thread(self) -> int:
        return self.story.thread

    @property
    def now(self) -> datetime:
        return self.story.now

    @property
    def here(self) -> Expected:
        return self.personas[self.slug]

    def _tick(self) -> None:
        """Nobody does two things in one second."""
        self.story.clock.advance(timedelta(seconds=1))

    def _word(self) -> str:
        self.words += 1
        return f"word{self.words}"

    def _view(self) -> Lines:
        return self.here.view(self.thread, self.now)

    def _do(self, told: Told) -> None:
        self.here.do(told, 0 if told.kind == "say" else self.story.newest_operation())

    def _check_contexts(self, expected: dict[int, Lines]) -> None:
        """The contexts are as they were then, as far as the clock allows."""
        young = {thread: shown(self.here.young(lines, thread, self.now)) for thread, lines in expected.items()}
        assert self.story.seen(self.slug, list(expected)) == young

    def _check_request(self, expected: Sequence[str]) -> None:
        """The view was sent and nothing else, and each message in the words that it was always sent in."""
        asked = self.story.asked()
        assert [text for text, _ in asked] == list(expected)
        for text, content in asked:
            assert self.sent.setdefault((self.slug, text), content) == content

    # How a context is edited

    def _laid_out(self, text: str, expected: Sequence[Line]) -> tuple[list[Line], list[Line]]:
        """Return the messages above and below the line: nothing twice, each with its speaker and its own time."""
        above, below = self.story.laid_out(text)
        assert below == [self.story.block(line) for line in expected]
        known = self.here.known[self.thread] if above else {}
        older = [known[block.text] for block in above]
        assert above == [self.story.block(line) for line in older]
        assert len({block.text for block in (*above, *below)}) == len(above) + len(below)
        return older, list(expected)

    def _together(self, view: Lines, hidden: Sequence[Line], wanted: Sequence[Line]) -> list[Line]:
        """What was shown is as it was written; what was not keeps its place, unless it was the rest that moved."""
        line_of = {line.text: line for line in (*hidden, *wanted)}
        found = [line_of[text] for text, *_ in self.story.seen(self.slug, [self.thread])[self.thread]]
        assert [line for line in found if line not in hidden] == list(wanted)
        assert len(found) == len(hidden) + len(wanted)
        stayed = [line for line in wanted if line in view]
        if stayed == [line for line in view if line in stayed]:
            assert [line for line in found if line in view] == [line for line in view if line in found]
        return found

    # How a session is restored

    def _threads_of(self, session: Saved) -> dict[int, int]:
        """Find the thread that each of the session's has become, by what is in context there."""
        self.here.threads = self.story.open_threads()
        seen = self.story.seen(self.slug, self.here.threads)
        found = {
            each: [thread for thread in seen if seen[thread] == shown(lines)] for each, lines in session.lines.items()
        }
        thread_of: dict[int, int] = {}
        for each, threads in found.items():
            # A fork in which nothing was said yet has the same in context as its origin.
            likely = (each, self.thread) if each == session.active else (each,)
            free = [thread for thread in threads if thread not in thread_of.values()]
            thread_of[each] = next((thread for thread in likely if thread in free), free[0])
        return thread_of
