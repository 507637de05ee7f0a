"""A user who goes about in threads, personas and times, and what is to be expected in context there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import strategies as st

from tests.log.service.expected_contexts import Expected, Line, Lines, Told
from tests.log.service.user_story import UserStory, shown

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

    def __init__(self) -> None:
        self.story = UserStory()
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
