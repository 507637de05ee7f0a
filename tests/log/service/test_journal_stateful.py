"""Whatever a user says, does and takes back, in whatever order and in which threads: the contexts are as expected.

Commands are carried out as they are typed, on all services and a real store; ``expected_contexts`` says what must come
of them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from chorus_cli.context.service.report import context_report
from tests.log.service.acting_user import ActingUser
from tests.log.service.user_story import shown
from tests.world import World

WEIGHTS: dict[Callable[[ActingUser, st.DataObject], None], int] = {
    ActingUser.say: 9,
    ActingUser.retry: 7,
    ActingUser.clear: 3,
    ActingUser.change_the_window: 4,
    ActingUser.edit: 9,
    ActingUser.edit_while_something_is_said: 2,
    ActingUser.save: 3,
    ActingUser.restore: 5,
    ActingUser.restore_what_the_other_saved: 4,
    ActingUser.undo: 12,
    ActingUser.undo_an_operation: 3,
    ActingUser.undo_by_number: 4,
    ActingUser.redo: 12,
    ActingUser.redo_by_number: 4,
    ActingUser.undo_and_redo_after_a_look_elsewhere: 6,
    ActingUser.restore_what_was_just_changed: 4,
    ActingUser.go_to_a_thread: 6,
    ActingUser.open_a_thread: 2,
    ActingUser.fork: 5,
    ActingUser.turn_to_the_other: 3,
    ActingUser.start_again: 2,
    ActingUser.let_time_pass: 5,
    ActingUser.look_back: 3,
}
ACTS = tuple(act for act, weight in WEIGHTS.items() for _ in range(weight))


class UserMachine(RuleBasedStateMachine):
    """Has a user act, and compares what becomes of the contexts with what is expected."""

    def __init__(self) -> None:
        super().__init__()
        self.user = ActingUser()
        self.rows: list[tuple[object, ...]] = []

    def teardown(self) -> None:
        self.user.story.end()

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.user.begin(data)

    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        # Rules of their own would be chosen alike, and some not at all in a story.
        data.draw(st.sampled_from(ACTS), "act")(self.user, data)

    @invariant()
    def every_context_is_as_expected(self) -> None:
        for slug, persona in self.user.personas.items():
            expected = {thread: shown(persona.view(thread, self.user.now)) for thread in persona.threads}
            assert self.user.story.seen(slug, persona.threads) == expected

    @invariant()
    def each_message_is_in_the_request_or_left_out_once(self) -> None:
        """Whatever its wordings, unless the user has put two of them into the context side by side."""
        story = self.user.story
        report = story.run(context_report(story.world.context, story.target(), story.now))
        left_out = sum(omission.messages for omission in report.omissions)
        first = story.messages_of_thread()
        in_view = [
            first[row.id]
            for row in (*report.plan.snapshot.view.messages, *report.plan.snapshot.view.taken_back)
            if row.content
        ]
        side_by_side = len(in_view) - len(set(in_view))
        assert len(report.plan.sent) + left_out == len(set(first.values())) + side_by_side

    @invariant()
    def the_log_keeps_everything(self) -> None:
        rows = self.user.story.rows()
        assert rows[: len(self.rows)] == self.rows
        assert [content for *_, content, introduced_by in rows if content and introduced_by is None] == self.user.said
        self.rows = rows


@pytest.mark.timeout(900)  # only for finding the shortest story that fails
def test_the_contexts_are_as_expected() -> None:
    run_state_machine_as_test(UserMachine, settings=settings(max_examples=3, stateful_step_count=40))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_contexts_are_as_expected_through_long_stories() -> None:
    run_state_machine_as_test(UserMachine, settings=settings(max_examples=400, stateful_step_count=60))


async def test_a_turn_is_put_back_whatever_was_said_in_another_thread(world: World) -> None:
    await world.say("One")
    await world.told("/undo")
    await world.told("/thread new")
    await world.say("Elsewhere")
    await world.told("/thread 1")
    assert await world.told("/redo") == 'Redone: your message "One" and its reply'
    assert await world.seen() == ["One", "ok"]


async def test_what_concerns_every_thread_is_not_put_back_under_what_was_said_in_another(world: World) -> None:
    await world.told("/thread new")
    await world.say("Elsewhere")
    await world.told("/thread 1")
    await world.told("/new")
    await world.told("/undo")
    await world.told("/thread 2")
    await world.say("And then?")
    await world.told("/thread 1")
    assert (await world.told("/redo")).startswith("There is nothing to redo.")
    await world.told("/thread 2")
    assert await world.seen() == ["Elsewhere", "ok", "And then?", "ok"]
