"""Several threads at once: contexts, states, rows, drafts and requests are always as a naive model says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from chorus_cli.log.rows import thread_rows
from chorus_cli.log.rules.threads import ThreadState
from tests.threads.service.threads_story import shown
from tests.threads.service.threads_user import ThreadsUser

WEIGHTS: dict[Callable[[ThreadsUser, st.DataObject], None], int] = {
    ThreadsUser.say: 8,
    ThreadsUser.start: 9,
    ThreadsUser.let_finish: 7,
    ThreadsUser.stop: 3,
    ThreadsUser.new: 3,
    ThreadsUser.switch: 6,
    ThreadsUser.rename: 1,
    ThreadsUser.fork: 6,
    ThreadsUser.kill_one: 3,
    ThreadsUser.kill_all: 1,
    ThreadsUser.clear: 3,
    ThreadsUser.edit: 6,
    ThreadsUser.save: 4,
    ThreadsUser.restore: 6,
    ThreadsUser.undo: 7,
    ThreadsUser.undo_by_number: 5,
    ThreadsUser.redo: 6,
    ThreadsUser.redo_by_number: 4,
    ThreadsUser.reopen: 1,
    ThreadsUser.be_killed: 2,
}
ACTS = tuple(act for act, weight in WEIGHTS.items() for _ in range(weight))


class ThreadsMachine(RuleBasedStateMachine):
    """Has a user act, and compares what there is then with the model."""

    def __init__(self) -> None:
        super().__init__()
        self.user = ThreadsUser()

    def teardown(self) -> None:
        self.user.story.end()

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.user.begin(data)

    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        # Rules of their own would be chosen alike, and some not at all in a story.
        self.user.tick()
        data.draw(st.sampled_from(ACTS), "act")(self.user, data)

    @invariant()
    def every_context_is_as_expected(self) -> None:
        story, model = self.user.story, self.user.model
        expected = {number: [line.shown for line in model.view(number)] for number in model.threads}
        found = story.views(model.threads)
        assert {number: [shown(row) for row in rows] for number, rows in found.items()} == expected

    @invariant()
    def the_threads_are_listed_as_expected(self) -> None:
        story, model = self.user.story, self.user.model
        listed = story.run(story.world.services.threads.listed(closed=True))
        # An empty thread is an idle one here, because the model does not count rows.
        idle = {ThreadState.EMPTY: ThreadState.IDLE}
        found = {each.thread.number: (idle.get(each.state, each.state), each.in_view, each.waiting) for each in listed}
        assert found == {
            number: (model.state(number), len(model.view(number)), len(thread.waiting))
            for number, thread in model.threads.items()
        }
        assert [each.thread.number for each in listed] == [*range(1, len(listed) + 1)]
        assert [each.thread.title for each in listed] == [thread.title for thread in model.threads.values()]
        assert story.world.current.thread_number == model.current

    @invariant()
    def the_log_has_what_was_said_where_it_was_said(self) -> None:
        story, model = self.user.story, self.user.model
        number_of = story.run(story.store.read(thread_rows.numbers, "chorus"))
        rows = story.run(story.world.log())
        said = [(number_of[row.thread_id], shown(row)) for row in rows if row.introduced_by is None]
        lines = ((turn.thread, line.shown) for turn in model.turns() for each in turn.lines.values() for line in each)
        assert said == [*lines]
        assert len(rows) == len(said) + model.inserted

    @invariant()
    def each_message_that_waits_has_a_draft(self) -> None:
        model = self.user.model
        waiting = [text for thread in model.threads.values() for text in thread.waiting]
        assert self.user.story.drafts() == sorted(waiting + model.kept)


@pytest.mark.timeout(600)  # only for finding the shortest story that fails
def test_the_threads_are_as_expected() -> None:
    # The same stories in each run; those under the mark slow are always others.
    few = settings(max_examples=7, stateful_step_count=30, derandomize=True, database=None)
    run_state_machine_as_test(ThreadsMachine, settings=few)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_threads_are_as_expected_through_long_stories() -> None:
    run_state_machine_as_test(ThreadsMachine, settings=settings(max_examples=400, stateful_step_count=60))
