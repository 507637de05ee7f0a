"""Several threads at once: contexts, states, rows, drafts and requests are always as a naive model says."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from chorus_cli.log.rows import thread_rows
from chorus_cli.log.rules.messages import Status, is_written
from chorus_cli.log.rules.threads import ThreadState
from tests.storage.schemas import SERVER
from tests.threads.service.naive_threads import Deed, Line, NaiveThreads, Session, reworded
from tests.threads.service.threads_story import ThreadsStory, half, shown, whole

MOST_THREADS = 5


class ThreadsUser:
    """Does as a user does; each act draws what it needs."""

    def __init__(self) -> None:
        self.story, self.model = ThreadsStory(), NaiveThreads()
        self.sessions: dict[str, Session] = {}
        self.requests: dict[str, list[str]] = {}
        self.words = 0

    def begin(self, data: st.DataObject) -> None:
        """Most of what can go wrong needs something said, a session, and a second thread with a reply in progress."""
        self.say(data)
        self.save(data)
        self.new(data)
        self._send(self.model.current)

    # What is said

    def say(self, _: st.DataObject) -> None:
        """Say something here and wait for the reply; to a busy thread, only say it."""
        is_free = not self.model.here.running
        self._send(self.model.current)
        if is_free:
            self._finish(self.model.current)

    def start(self, data: st.DataObject) -> None:
        self._send(data.draw(st.sampled_from(self.model.open)))

    def let_finish(self, data: st.DataObject) -> None:
        if running := self._running():
            self._finish(data.draw(st.sampled_from(running)))

    def stop(self, data: st.DataObject) -> None:
        """Stop a reply, as Ctrl-C does; the next message that waits is sent."""
        if running := self._running():
            number = data.draw(st.sampled_from(running))
            self.story.stop(number)
            self.model.end(number, half(self._question(number)), Status.INTERRUPTED)
            self._expect_request(number)

    def _send(self, number: int) -> None:
        text = self._word()
        self.story.send(number, text)
        self.model.send(number, text)
        self._expect_request(number)

    def _finish(self, number: int) -> None:
        self.story.let_finish(number)
        self.model.end(number, whole(self._question(number)))
        self._expect_request(number)

    def _expect_request(self, number: int) -> None:
        """A turn that has just begun was asked with what was in context before it."""
        if self.model.threads[number].running and (question := self._question(number)) not in self.requests:
            before = [line.text for line in self.model.settled(number)]
            self.requests[question] = before
            assert self.story.model.asked[question] == before

    # Which threads there are

    def new(self, _: st.DataObject) -> None:
        if len(self.model.threads) < MOST_THREADS:
            self.story.told("/thread new")
            self.model.new()

    def switch(self, data: st.DataObject) -> None:
        """Go to any thread; a closed one is open again."""
        number = data.draw(st.sampled_from([*self.model.threads]))
        self.story.told(f"/thread {number}")
        self.model.go_to(number)

    def rename(self, data: st.DataObject) -> None:
        number, title = data.draw(st.sampled_from([*self.model.threads])), self._word()
        assert f"is now called {title}" in self.story.told(f"/thread rename {number} {title}")
        self.model.threads[number].title = title

    def fork(self, data: st.DataObject) -> None:
        """Fork the thread, whole or up to the turn of a message."""
        if len(self.model.threads) >= MOST_THREADS:
            return
        view, running = self.model.view(self.model.current), self.model.here.running
        position = data.draw(st.none() | st.integers(0, len(view) - 1)) if view else None
        message = (
            "" if position is None else f" {self.story.views([self.model.current])[self.model.current][position].id}"
        )
        lines = _through(view, position)
        answer = self.story.told(f"/thread fork{message}")
        if position is not None and view[position].turn is running:
            assert "is still being answered" in answer
            return
        lines = [line for line in lines if line.turn is not running]
        if not any(line.text for line in lines):
            assert answer.startswith("There is nothing to fork"), answer
            return
        assert "It begins as a fork" in answer, answer
        self.model.fork(lines)
        self._follow_title()

    def kill_one(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self.model.open))
        self._close([number], self.story.told(f"/thread kill {number}"))

    def kill_all(self, _: st.DataObject) -> None:
        self._close(self.model.open, self.story.told("/thread kill all"))

    def _close(self, numbers: Sequence[int], answer: str) -> None:
        assert answer.startswith("Closed "), answer
        self._break_off(numbers)
        self.model.close(numbers)

    def _break_off(self, numbers: Sequence[int], *, is_killed: bool = False) -> None:
        for number in numbers:
            reply = half(self._question(number)) if number in self._running() else ""
            if is_killed and reply:
                # Whether the half was written before the kill is a matter of time.
                found = self.story.newest_reply(number)
                assert found in {"", reply}
                reply = found
            self.model.break_off(number, reply)

    def _follow_title(self) -> None:
        """The title of a fork is none of the model's business."""
        thread = self.story.run(self.story.world.services.threads.current())
        self.model.here.title = thread.title

    # What is done to the contexts

    def clear(self, _: st.DataObject) -> None:
        self.story.told("/new")
        self.model.clear()

    def edit(self, data: st.DataObject) -> None:
        """Delete, reword and reorder some messages."""
        settled = self.model.settled(self.model.current)
        chosen = [line for line in data.draw(st.permutations(settled)) if data.draw(st.integers(0, 3))]
        if data.draw(st.booleans()):
            chosen.sort(key=settled.index)
        changed = [(line, self._word() if data.draw(st.integers(0, 3)) == 3 else line.text) for line in chosen]
        answer = self.story.edited([(line.text, text) for line, text in changed])
        lines = [line if text == line.text else reworded(line, text) for line, text in changed]
        if not lines or lines == settled:
            assert answer.startswith("Nothing was changed"), answer
            return
        assert answer.startswith("Context edited"), answer
        self.model.inserted += sum(line not in settled for line in lines)
        self.model.edit(lines)

    def save(self, _: st.DataObject) -> None:
        word = self._word()
        found = {number: self._saved(number) for number in self.model.open}
        answer = self.story.told(f"/context save {word}")
        if any(found.values()):
            assert answer.startswith("Saved session"), answer
            lines = {number: saved for number, saved in found.items() if saved}
            self.sessions[f"{self.story.clock.now():%Y-%m-%d}_{word}"] = Session(lines, self.model.current)
        else:
            assert answer.startswith("There is nothing to save"), answer

    def _saved(self, number: int) -> list[Line]:
        in_progress = Status.STREAMING
        return [line for line in self.model.view(number) if line.text and line.status is not in_progress]

    def restore(self, data: st.DataObject) -> None:
        if self.sessions:
            name = data.draw(st.sampled_from(sorted(self.sessions)))
            answer = self.story.told(f"/context restore {name}")
            assert answer.startswith(f"Restored session {name}"), answer
            self.model.restore(self.sessions[name])

    # What is taken back

    def undo(self, _: st.DataObject) -> None:
        if self.model.here.waiting:
            taken = self.model.here.waiting.pop()
            assert self.story.told("/undo") == f"Not sent: {taken}"
        else:
            self._undo("/undo", self.model.undoable())

    def undo_by_number(self, data: st.DataObject) -> None:
        if events := self._listed():
            deed, number = data.draw(st.sampled_from(events))
            is_undoable = deed.number == number and not deed.undone_at
            self._undo(f"/context undo {number}", deed if is_undoable else None)

    def redo(self, _: st.DataObject) -> None:
        self._redo("/redo", self.model.redoable())

    def redo_by_number(self, data: st.DataObject) -> None:
        """Put something back by its own number, or by that of the undo."""
        if events := self._listed():
            deed, number = data.draw(st.sampled_from(events))
            is_redo = any(each.what == "redo" and each.number == number for each in self.model.events)
            self._redo(f"/context redo {number}", deed if deed.undone_at and not is_redo else None)

    def _listed(self) -> list[tuple[Deed, int]]:
        """Return the operations that concern this thread, each as its deed and its number."""
        here = self.model.current
        events = self.model.operations()
        turns = {event.deed: event.deed.thread == here for event in events if event.deed.kind == "said"}
        return [(each.deed, each.number) for each in events if turns.get(each.deed, each.deed.is_listed(here))]

    def _undo(self, command: str, deed: Deed | None) -> None:
        answer = self.story.told(command)
        assert answer.startswith("Undone: ") == (deed is not None), answer
        if deed is not None:
            if deed.kind == "fork" and deed.thread:
                self._break_off([deed.thread])
            self.model.undo(deed)
            here = self.model.current
            if deed.kind == "said" and here in self._running() and self.model.threads[here].running is deed:
                self.model.end(here, half(self._question(here)), Status.INTERRUPTED)

    def _redo(self, command: str, deed: Deed | None) -> None:
        answer = self.story.told(command)
        assert answer.startswith("Redone: ") == (deed is not None), answer
        if deed is not None:
            self.model.redo(deed)

    # Coming and going

    def reopen(self, _: st.DataObject) -> None:
        self.story.reopen()
        self._start_again(is_killed=False)

    def be_killed(self, _: st.DataObject) -> None:
        self.story.kill()
        self._start_again(is_killed=True)

    def _start_again(self, *, is_killed: bool) -> None:
        self._break_off([*self.model.threads], is_killed=is_killed)
        assert sorted(self.story.offered()) == sorted(self.model.kept)
        self.model.start_again()

    def tick(self) -> None:
        """Nobody does two things in one second."""
        self.story.clock.advance(timedelta(seconds=1))

    def _running(self) -> list[int]:
        return [number for number, thread in self.model.threads.items() if thread.running]

    def _question(self, number: int) -> str:
        turn = self.model.threads[number].running
        assert turn
        return turn.lines[number][0].text

    def _word(self) -> str:
        self.words += 1
        return f"word{self.words}"


def _through(view: Sequence[Line], position: int | None) -> Sequence[Line]:
    """Return a context up to the end of the turn that a message stands in."""
    if position is None:
        return view
    end = position
    while end < len(view) and view[end].turn is view[position].turn:
        end += 1
    return view[:end]


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
if SERVER in os.environ:
    # Files can be left as they are at a moment, the rows of a server cannot.
    del WEIGHTS[ThreadsUser.be_killed]
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
        # Only the rows tell whether a reply that broke off has words.
        sent = {
            number: sum(is_written(row) and row.status is not Status.STREAMING for row in rows)
            for number, rows in story.views(model.threads).items()
        }
        # An empty thread is an idle one here, because the model does not count rows.
        idle = {ThreadState.EMPTY: ThreadState.IDLE}
        found = {each.thread.number: (idle.get(each.state, each.state), each.in_view, each.waiting) for each in listed}
        assert found == {
            number: (model.state(number), sent[number], len(thread.waiting)) for number, thread in model.threads.items()
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
