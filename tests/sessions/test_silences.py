"""A talk that falls silent: when a silence begins and is over, what is kept of it, and what is said and cleared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from chorus_cli.core.errors import ModelError, StorageError, UnknownPersonaError
from chorus_cli.log.rules.messages import Message, Role
from chorus_cli.personas.rules.persona import Persona
from chorus_cli.sessions.rows import SessionRow
from chorus_cli.sessions.rules.format import described
from chorus_cli.sessions.service.idle import LONGEST_SLEEP_SECONDS, IdleActions, IdleTimer
from chorus_cli.sessions.service.sessions import Saved
from chorus_cli.settings.rules.table import Settings
from tests.fakes import START, FakeClock
from tests.world import World

HALF_AN_HOUR = timedelta(minutes=30)
ALMOST = timedelta(minutes=29, seconds=59)
A_SECOND = timedelta(seconds=1)
FULL = StorageError("The disk is full.")


class PatientClock(FakeClock):
    """Time in which a sleeper sleeps until a test lets its time pass; ``suspend`` is what a laptop does."""

    def __init__(self) -> None:
        super().__init__()
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        sleeper = (self.monotonic() + seconds, asyncio.Event())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1].wait()
        finally:
            self._sleepers.remove(sleeper)

    async def pass_by(self, elapsed: timedelta) -> None:
        """Let time pass and wake everybody at the due moment, in turn."""
        end = self.monotonic() + elapsed.total_seconds()
        await settled()
        while (due := min((moment for moment, _ in self._sleepers), default=float("inf"))) <= end:
            self.advance(timedelta(seconds=due - self.monotonic()))
            for moment, wake in self._sleepers:
                if moment <= due:
                    wake.set()
            await settled()
        self.advance(timedelta(seconds=end - self.monotonic()))
        await settled()

    def suspend(self, elapsed: timedelta) -> None:
        """Have the machine sleep: only the wall clock goes on."""
        self._now += elapsed


async def settled() -> None:
    """Let every task go as far as it can without time passing."""
    for _ in range(30):
        await asyncio.sleep(0)


def watches() -> list[str]:
    """Return the tasks of timers that are not done."""
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("idle")]


def message(id_: int, content: str, role: Role = Role.USER, at: datetime = START) -> Message:
    return Message(id_, "chorus", 1, id_, role, content, at)


@dataclass
class Talk:
    """What is said to some personas, the sessions that are saved of it, and the timer that does so."""

    clock: PatientClock
    personas: dict[str, Persona] = field(default_factory=lambda: {"chorus": Persona("chorus", Settings())})
    in_focus: str = "chorus"
    log: dict[str, list[Message]] = field(default_factory=dict)
    saved_through: dict[str, int] = field(default_factory=dict)
    elsewhere: dict[str, datetime] = field(default_factory=dict)
    saved: list[tuple[str, str]] = field(default_factory=list)
    cleared: list[tuple[str, int]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    fails: dict[str, Exception] = field(default_factory=dict)
    summary: asyncio.Event = field(default_factory=asyncio.Event)
    timer: IdleTimer = field(init=False)

    def __post_init__(self) -> None:
        self.summary.set()
        self.timer = self.restarted()

    def restarted(self, tell: Callable[[str], None] | None = None) -> IdleTimer:
        """Make a timer as another process would, which knows only what was stored."""
        tell = tell or self.told.append
        return IdleTimer(self.clock, SilentTalk(self), lambda: self.in_focus, tell)

    async def restart(self, tell: Callable[[str], None] | None = None) -> None:
        await self.timer.close()
        self.timer = self.restarted(tell)

    def set(self, slug: str = "chorus", **chosen: int | str) -> None:
        known = self.personas.get(slug, Persona(slug, Settings()))
        # The names are those of the settings, which the callers of a test write down.
        self.personas[slug] = known._replace(settings=known.settings._replace(**chosen))  # type: ignore[arg-type]

    def say(self, *lines: str) -> None:
        """Say something to the persona in focus, as the chat does: busy while it answers."""
        with self.timer.busy():
            for line in lines:
                self.log.setdefault(self.in_focus, []).append(message(self.newest() + 1, line, at=self.clock.now()))

    def turn_to(self, slug: str) -> None:
        with self.timer.busy():
            self.in_focus = slug

    def newest(self) -> int:
        return max((said.id for talk in self.log.values() for said in talk), default=0)

    async def silence_while_saving(self, *lines: str) -> None:
        """Say something and fall silent; the summary of the session is being written until it is set."""
        self.summary.clear()
        self.say(*lines)
        await self.clock.pass_by(HALF_AN_HOUR)

    async def saved_after(self, elapsed: timedelta) -> list[str]:
        """Return how all sessions are described once time has passed."""
        await self.clock.pass_by(elapsed)
        return [description for _, description in self.saved]


class SilentTalk(IdleActions):
    """What a timer does about a talk; ``fails`` of the talk says what fails."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk

    def _fail(self, action: str) -> None:
        if action in self.talk.fails:
            raise self.talk.fails[action]

    async def persona(self, slug: str) -> Persona:
        self._fail("persona")
        if slug not in self.talk.personas:
            raise UnknownPersonaError(slug, ())
        return self.talk.personas[slug]

    async def last_spoken(self, slug: str) -> datetime | None:
        self._fail("last_spoken")
        here = [said.timestamp for said in self.talk.log.get(slug, ())]
        return max([*here, *([self.talk.elsewhere[slug]] if slug in self.talk.elsewhere else [])], default=None)

    async def save(self, slug: str) -> Saved | None:
        unsaved = [said for said in self.talk.log.get(slug, ()) if said.id > self.talk.saved_through.get(slug, 0)]
        if not unsaved:
            return None
        through, description = self.talk.newest(), described(unsaved)
        await self.talk.summary.wait()
        self._fail("save")
        self.talk.saved.append((slug, description))
        self.talk.saved_through[slug] = through
        summary = f"they spoke of {description}."
        return Saved(SessionRow("id", slug, START, description, summary, 1, 1, None, None, through, "idle"), 0)

    async def clear(self, slug: str, message_id: int) -> bool:
        self._fail("clear")
        if self.talk.newest() > message_id:
            return False
        self.talk.cleared.append((slug, message_id))
        self.talk.log[slug] = []
        return True


def told_after(silence: str, name: str) -> str:
    return f"Saved a session with {name} after {silence} of silence: they spoke of hello. /context history lists it."


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    talk = Talk(PatientClock())
    yield talk
    await talk.timer.close()
    assert watches() == []


# When it is over


async def test_idle_timer_triggers_after_timeout(talk: Talk) -> None:
    talk.say("hello")
    assert await talk.saved_after(ALMOST) == []
    assert await talk.saved_after(A_SECOND) == ["hello"]
    assert talk.cleared == []


async def test_idle_timer_resets_on_message(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(ALMOST)
    talk.say("are you there?")
    assert await talk.saved_after(ALMOST) == []
    assert await talk.saved_after(A_SECOND) == ["hello"]


@pytest.mark.parametrize("minutes", [1, 5, 1440])
async def test_idle_timer_configurable_timeout(talk: Talk, minutes: int) -> None:
    talk.set(idle_minutes=minutes)
    talk.say("hello")
    assert await talk.saved_after(timedelta(minutes=minutes) - A_SECOND) == []
    assert await talk.saved_after(A_SECOND) == ["hello"]


async def test_nothing_is_kept_while_a_reply_streams_and_the_silence_begins_after_it(talk: Talk) -> None:
    talk.say("hello")
    with talk.timer.busy():
        assert await talk.saved_after(3 * HALF_AN_HOUR) == []
    assert await talk.saved_after(ALMOST) == []
    assert await talk.saved_after(A_SECOND) == ["hello"]


async def test_nothing_is_kept_until_the_last_of_several_occupations_has_ended_or_failed(talk: Talk) -> None:
    talk.set("frodo")
    talk.say("hello")
    talk.turn_to("frodo")
    with talk.timer.busy():
        with talk.timer.busy():
            await talk.clock.pass_by(HALF_AN_HOUR)
        with pytest.raises(StorageError), talk.timer.busy():
            raise FULL
        assert await talk.saved_after(HALF_AN_HOUR) == []
    await settled()
    assert talk.saved == [("chorus", "hello")]


async def test_each_persona_has_a_silence_of_its_own(talk: Talk) -> None:
    talk.set("frodo", name="Frodo")
    talk.set(on_idle="save+clear")
    talk.say("hello")
    await talk.clock.pass_by(timedelta(minutes=20))
    talk.turn_to("frodo")
    talk.say("the ring")
    assert await talk.saved_after(timedelta(minutes=10)) == ["hello"]
    await talk.clock.pass_by(timedelta(minutes=20))
    assert talk.saved == [("chorus", "hello"), ("frodo", "the ring")]
    assert talk.told[0].splitlines() == [
        "Saved a session with chorus after 30 m of silence: they spoke of hello. /context history chorus lists it.",
        "The context is cleared; /persona chorus, then /context undo, brings it back.",
    ]
    assert talk.told[1].startswith("Saved a session with Frodo after 30 m of silence: ")


async def test_turning_to_a_persona_begins_its_silence(talk: Talk) -> None:
    talk.set("frodo")
    talk.log["frodo"] = [message(1, "left from yesterday")]
    talk.turn_to("frodo")
    assert await talk.saved_after(HALF_AN_HOUR) == ["left from yesterday"]


async def test_settings_are_read_when_the_silence_is_due_and_before(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(ALMOST)
    talk.set(idle_minutes=60)
    assert await talk.saved_after(ALMOST) == []
    assert await talk.saved_after(2 * A_SECOND) == ["hello"]
    talk.say("once more")
    await talk.clock.pass_by(timedelta(minutes=10))
    talk.set(idle_minutes=5)
    assert await talk.saved_after(timedelta(seconds=LONGEST_SLEEP_SECONDS)) == ["hello", "once more"]
    talk.say("and again")
    talk.set(on_idle="off")
    assert await talk.saved_after(timedelta(hours=9)) == ["hello", "once more"]


async def test_what_is_said_in_another_window_breaks_the_silence(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(timedelta(minutes=20))
    talk.elsewhere["chorus"] = talk.clock.now()
    assert await talk.saved_after(ALMOST) == []
    assert await talk.saved_after(A_SECOND) == ["hello"]


async def test_a_laptop_that_slept_for_hours_finds_the_silence_over_at_the_next_look(talk: Talk) -> None:
    talk.say("hello")
    await talk.clock.pass_by(timedelta(minutes=5))
    talk.clock.suspend(timedelta(hours=9))
    await talk.clock.pass_by(timedelta(seconds=LONGEST_SLEEP_SECONDS))
    assert talk.told == [told_after("9 h 6 m", "chorus")]


@pytest.mark.parametrize("hours", [-1, 3])
async def test_a_clock_that_is_set_delays_a_save_by_no_more_than_that(talk: Talk, hours: int) -> None:
    talk.say("hello")
    await talk.clock.pass_by(A_SECOND)
    talk.clock.suspend(timedelta(hours=hours))
    assert await talk.saved_after(HALF_AN_HOUR + max(timedelta(), timedelta(hours=-hours))) == ["hello"]


# What is kept and told


async def test_idle_timer_auto_save_creates_session(talk: Talk) -> None:
    talk.say("\n  let us  refactor\nthe login", "and then the rest")
    assert await talk.saved_after(HALF_AN_HOUR) == ["let us refactor"]


async def test_idle_timer_posts_summary_to_channel(talk: Talk) -> None:
    talk.set(name="Chorus the Great")
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.told == [told_after("30 m", "Chorus the Great")]


async def test_idle_timer_no_trigger_when_context_empty(talk: Talk) -> None:
    talk.timer.arm()
    await talk.clock.pass_by(3 * HALF_AN_HOUR)
    assert (talk.saved, talk.told) == ([], [])


async def test_each_silence_is_kept_once_however_long_it_lasts_and_only_if_something_was_said(talk: Talk) -> None:
    talk.say("hello")
    assert await talk.saved_after(timedelta(days=2)) == ["hello"]
    talk.timer.arm()
    assert await talk.saved_after(2 * HALF_AN_HOUR) == ["hello"]
    talk.say("once more")
    assert await talk.saved_after(HALF_AN_HOUR) == ["hello", "once more"]
    assert len(talk.told) == 2


async def test_a_save_that_a_message_comes_into_is_finished_and_the_next_silence_kept(talk: Talk) -> None:
    await talk.silence_while_saving("hello")
    talk.say("I am back")
    talk.summary.set()
    assert await talk.saved_after(ALMOST) == ["hello"]
    assert await talk.saved_after(A_SECOND) == ["hello", "I am back"]


async def test_while_a_reply_streams_what_was_saved_is_neither_told_nor_cleared(talk: Talk) -> None:
    talk.set(on_idle="save+clear")
    await talk.silence_while_saving("hello")
    with talk.timer.busy():
        talk.summary.set()
        await settled()
        assert (len(talk.saved), talk.told) == (1, [])
    await settled()
    assert (len(talk.told), talk.cleared) == (1, [])


@pytest.mark.parametrize(
    ("action", "failure"),
    [
        ("save", FULL),
        ("last_spoken", StorageError("The disk is gone.")),
    ],
)
async def test_a_failure_is_told_once_when_the_user_is_silent_and_ends_nothing(
    talk: Talk, action: str, failure: Exception
) -> None:
    talk.set(on_idle="save+clear")
    talk.fails[action] = failure
    for _ in range(3):
        talk.say("hello")
        await talk.clock.pass_by(A_SECOND)
    assert talk.told == []
    await talk.clock.pass_by(5 * HALF_AN_HOUR)
    assert talk.told == [f"Chorus could not save the conversation with chorus after its idle time: {failure}"]
    assert (talk.saved, talk.cleared) == ([], [])
    talk.fails.clear()
    talk.say("once more")
    assert await talk.saved_after(HALF_AN_HOUR) == ["hello"]


async def test_a_terminal_that_is_gone_when_something_is_to_be_told_ends_nothing(talk: Talk) -> None:
    def gone(_line: str) -> None:
        raise BrokenPipeError

    await talk.restart(gone)
    talk.say("hello")
    await talk.clock.pass_by(HALF_AN_HOUR)
    talk.say("once more")
    assert await talk.saved_after(HALF_AN_HOUR) == ["hello", "once more"]


async def test_a_persona_put_away_meanwhile_is_left_alone_without_a_word(talk: Talk) -> None:
    talk.say("hello")
    del talk.personas["chorus"]
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert (talk.saved, talk.told) == ([], [])


async def over() -> None:
    """Wait until every silence has been seen to."""
    for _ in range(5000):
        if not watches():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("a silence lasts on")


async def test_a_second_silence_rewrites_the_session_of_the_first_and_a_restart_nothing(world: World) -> None:
    # The world's clock passes by itself whenever somebody sleeps, so each silence is over at once.
    told: list[str] = []
    timer = replace(world.services.idle_timer)
    with world.services.notifier.heard_by(told.append, told.append):
        for text in ("let us talk", "of something else"):
            await world.say(text)
            timer.arm()
            await over()
    IdleTimer(world.clock, timer.actions, lambda: world.current.slug, told.append).arm()
    await over()
    assert told == ["Saved a session with chorus after 30 m of silence: ok /context history lists it."] * 2
    [row] = (await world.sessions.listing("chorus")).rows
    assert (row.session_id, row.message_count) == ("2026-02-12_let-us-talk", 4)


@pytest.mark.parametrize("problem", ["", "The key is wrong."])
async def test_of_a_session_saved_by_itself_the_user_reads_the_summary_or_why_it_has_none(
    world: World, problem: str
) -> None:
    told: list[str] = []
    await world.say("let us talk")
    if problem:
        world.model.enqueue(ModelError(problem))
    world.model.say("One point of many.\n" * 20)
    with world.services.notifier.heard_by(told.append, told.append):
        replace(world.services.idle_timer).arm()
        await over()
    end = f", but could not summarise it: {problem}" if problem else f": {'One point of many. ' * 20}".rstrip()
    assert told == [f"Saved a session with chorus after 30 m of silence{end} /context history lists it."]
    [row] = (await world.sessions.listing("chorus")).rows
    assert row.summary.count("One point of many.") == (0 if problem else 20)


@pytest.mark.parametrize(
    ("said", "description"),
    [
        ([(Role.USER, "  hello   there \nsecond line")], "hello there"),
        ([(Role.USER, "\n\r\n \t\nfirst words")], "first words"),
        ([(Role.USER, "x" * 80)], "x" * 80),
        ([(Role.USER, "x" * 81)], "x" * 79 + "…"),
        ([(Role.ASSISTANT, "an answer"), (Role.USER, "a question")], "a question"),
        ([(Role.ASSISTANT, "the end of an answer")], "the end of an answer"),
        ([(Role.USER, " \n ")], ""),
        ([], ""),
    ],
)
def test_a_session_is_described_by_the_first_line_that_the_user_says(
    said: list[tuple[Role, str]], description: str
) -> None:
    messages = [message(position, content, role, datetime.now(UTC)) for position, (role, content) in enumerate(said)]
    assert described(messages) == description


# What is cleared


@pytest.mark.parametrize(
    ("fails", "cleared", "told"),
    [
        ({}, [("chorus", 2)], "The context is cleared; /context undo brings it back."),
        ({"clear": FULL}, [], "The context could not be cleared: The disk is full."),
    ],
)
async def test_what_was_saved_is_cleared_and_how_that_went_is_told_beside_the_session(
    talk: Talk, fails: dict[str, Exception], cleared: list[tuple[str, int]], told: str
) -> None:
    talk.set(on_idle="save+clear")
    talk.fails.update(fails)
    talk.say("hello", "goodbye")
    await talk.clock.pass_by(HALF_AN_HOUR)
    assert talk.cleared == cleared
    assert talk.told == [f"{told_after('30 m', 'chorus')}\n{told}"]


@pytest.mark.parametrize(
    "return_", [lambda talk: talk.say("back"), lambda talk: talk.log["chorus"].append(message(2, "elsewhere"))]
)
async def test_what_was_said_before_the_save_is_done_is_not_cleared(
    talk: Talk, return_: Callable[[Talk], object]
) -> None:
    talk.set(on_idle="save+clear")
    await talk.silence_while_saving("hello")
    return_(talk)
    talk.summary.set()
    await settled()
    assert (len(talk.saved), talk.cleared) == (1, [])
    assert "cleared" not in talk.told[0]


# Leaving


async def test_leaving_ends_every_wait_at_once(talk: Talk) -> None:
    await talk.timer.close()
    talk.timer = talk.restarted()
    talk.say("hello")
    talk.turn_to("frodo")
    await settled()
    await talk.timer.close()
    talk.timer.arm()
    assert watches() == []
    await talk.clock.pass_by(3 * HALF_AN_HOUR)
    assert (talk.saved, talk.told) == ([], [])


@pytest.mark.parametrize("is_saved_before", [True, False])
async def test_leaving_waits_for_a_save_but_not_for_the_silence_that_follows_it(
    talk: Talk, *, is_saved_before: bool
) -> None:
    await talk.silence_while_saving("hello")
    talk.say("I am back")
    if is_saved_before:
        talk.summary.set()
        await settled()
    leaving = asyncio.create_task(talk.timer.close(patience_seconds=60))
    await settled()
    talk.summary.set()
    async with asyncio.timeout(2):
        await leaving
    assert talk.saved == [("chorus", "hello")]


async def test_leaving_waits_for_a_save_in_progress_that_is_soon_done(talk: Talk) -> None:
    talk.set(on_idle="save+clear")
    await talk.silence_while_saving("hello")
    leaving = asyncio.create_task(talk.timer.close())
    await settled()
    assert not leaving.done()
    talk.summary.set()
    await leaving
    assert (len(talk.saved), len(talk.told), talk.cleared) == (1, 1, [])


async def test_leaving_abandons_a_save_in_progress_that_takes_too_long(talk: Talk) -> None:
    await talk.silence_while_saving("hello")
    async with asyncio.timeout(2):
        await talk.timer.close(patience_seconds=0.01)
    talk.summary.set()
    await settled()
    assert (talk.saved, talk.told) == ([], [])
