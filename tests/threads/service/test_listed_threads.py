"""The list of threads: states and numbers in view, against a naive model and against the view itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.acts import Subject, Undo
from chorus_cli.log.rules.messages import Status
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.log.rules.threads import ThreadState
from chorus_cli.personas.rules.persona import Target
from tests.imports.service.foreign_talk import ROME, WHERE, taken_in
from tests.log.service.user_story import UserStory
from tests.world import World

STATES = {
    "complete": ThreadState.IDLE,
    "interrupted": ThreadState.INTERRUPTED,
    "truncated": ThreadState.INTERRUPTED,
    "failed": ThreadState.INTERRUPTED,
    "streaming by dead": ThreadState.INTERRUPTED,
    "streaming by other": ThreadState.RUNNING,
}
ENDINGS = st.sampled_from([*STATES])


@dataclass
class Turns:
    """A thread as a child would keep it: the ids and endings of the turns that count."""

    is_closed: bool = False
    counting: list[tuple[int, str]] = field(default_factory=list)
    running: bool = False
    is_empty: bool = True

    @property
    def state(self) -> ThreadState:
        if self.is_closed:
            return ThreadState.CLOSED
        if self.running:
            return ThreadState.RUNNING
        if self.is_empty:
            return ThreadState.EMPTY
        return STATES[self.counting[-1][1]] if self.counting else ThreadState.IDLE


class ListingUser(RuleBasedStateMachine):
    """A user whose replies end in every way, who undoes, clears, closes, opens again and waits for days."""

    def __init__(self) -> None:
        super().__init__()
        self.story = UserStory()
        self.threads = {1: Turns()}

    def teardown(self) -> None:
        self.story.end()

    @property
    def here(self) -> Turns:
        return self.threads[self.story.world.current.thread_number]

    def told(self, line: str) -> str:
        return self.story.run(self.story.world.told(line))

    @precondition(lambda self: not self.here.running)
    @rule(ending=ENDINGS)
    def say(self, ending: str) -> None:
        self.story.run(self.story.world.say("Hello"))
        status, _, run = ending.partition(" by ")
        reply = self.story.run(self.story.store.read(message_rows.newest_id))
        self.story.run(
            self.story.store.write(
                lambda log: log.execute("UPDATE messages SET status = ?, run = ? WHERE id = ?", (status, run, reply))
            )
        )
        self.here.counting.append((reply - 1, ending))
        self.here.is_empty = False
        self.here.running |= run == "other"

    @precondition(lambda self: self.here.counting and not self.here.running)
    @rule()
    def undo(self) -> None:
        turn_id, _ = self.here.counting.pop()
        target = self.story.world.current.target()
        undo = Undo(Subject(turn_id=turn_id))
        new = NewOperation(target.persona.slug, undo, self.story.clock.now(), target.thread_id)
        self.story.run(self.story.store.write(operation_rows.introduce, new))

    @precondition(lambda self: not any(each.running for each in self.threads.values()))
    @rule()
    def clear(self) -> None:
        self.told("/new")
        for each in self.threads.values():
            each.counting.clear()

    @rule()
    def open_another(self) -> None:
        self.told("/thread new")
        self.threads[max(self.threads) + 1] = Turns()

    @rule(number=st.integers(1, 5))
    def switch(self, number: int) -> None:
        self.told(f"/thread {number}")
        if number in self.threads:
            self.threads[number].is_closed = False

    @rule(number=st.integers(1, 5))
    def close(self, number: int) -> None:
        self.told(f"/thread kill {number}")
        if number not in self.threads:
            return
        self.threads[number].is_closed = True
        if all(each.is_closed for each in self.threads.values()):
            self.threads[max(self.threads) + 1] = Turns()

    @rule(hours=st.sampled_from([1, 5, 200]))
    def wait(self, hours: int) -> None:
        self.story.clock.advance(timedelta(hours=hours))

    @invariant()
    def the_states_are_those_of_the_model(self) -> None:
        listed = self.story.run(self.story.world.services.threads.listed(closed=True))
        assert {each.thread.number: each.state for each in listed} == {
            number: each.state for number, each in self.threads.items()
        }

    @invariant()
    def as_many_are_in_view_as_the_view_has(self) -> None:
        world = self.story.world
        for each in self.story.run(world.services.threads.listed(closed=True)):
            target: Target = world.current.target()._replace(thread_id=each.thread.id)
            view = self.story.run(world.context.snapshot(target, self.story.clock.now())).view
            assert each.in_view == sum(row.status is not Status.STREAMING for row in view.messages)


async def test_an_operation_that_was_copied_with_other_threads_leaves_this_one_in_context(world: World) -> None:
    await world.say("Hello")
    await world.told("/new")
    await world.store.write(lambda log: log.execute("""UPDATE operations SET detail = '{"only": [[9, 9]]}'"""))
    assert [each.in_view for each in await world.threads.listed(closed=False)] == [2]


async def test_a_thread_of_an_undone_import_is_unknown(world: World) -> None:
    await taken_in(world, ROME, WHERE)
    await world.told("/context undo")
    await world.current.look_into(2)
    assert (await world.told("/thread history")).startswith("There is no thread #2 here.")


TestListingUser = ListingUser.TestCase
TestListingUser.settings = settings(max_examples=15, stateful_step_count=12)
