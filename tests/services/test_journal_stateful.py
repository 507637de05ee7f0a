"""Whatever a user says, does and takes back, in whatever order and in which threads: the contexts are as expected.

Commands are carried out as they are typed, on all services and a real store; ``expected_contexts`` says what must come
of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from chorus_cli.core.errors import JournalError
from chorus_cli.services.context_past import context_at
from chorus_cli.services.context_report import context_report
from tests.services.edited_lines import edited_lines
from tests.services.expected_contexts import DEFAULT_HOURS, Deed, Expected, Line, Lines, Told
from tests.services.user_story import Ending, UserStory, shown
from tests.services.world import World

OTHER = {"chorus": "frodo", "frodo": "chorus"}
MOST_THREADS = 3
NAMES = {
    "clear": "new conversation",
    "edit": "edit of the context, ",
    "restore": "restored session, ",
    "retry": "another reply to the last message",
    "window": "window ",
}
UNEDITED = ("Nothing was changed", "The context is the same", "No message is left")
ENDINGS: st.SearchStrategy[Ending] = st.sampled_from(("reply", "reply", "reply", "reply", "nothing", "stopped"))
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


class UserMachine(RuleBasedStateMachine):
    """Does as a user does, and compares what becomes of the contexts with what is expected."""

    def __init__(self) -> None:
        super().__init__()
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
        self.rows: list[tuple[object, ...]] = []

    def teardown(self) -> None:
        self.story.end()

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Most of what can go wrong needs something said, a session, and a second thread."""
        self._say("reply")
        self._say("reply")
        self.save(data)
        self.open_a_thread(data)
        self._say("reply")

    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        # Rules of their own would be chosen alike, and some not at all in a story.
        data.draw(st.sampled_from(ACTS), "act")(self, data)

    # What is said

    def say(self, data: st.DataObject) -> None:
        self._say(data.draw(ENDINGS))

    def _say(self, ending: Ending) -> None:
        self._tick()
        view, question, reply = self._view(), self._word(), self._word()
        self.story.say(question, ending, reply)
        self._check_request([*(line.text for line in view), question])
        self.here.hold(self.thread, self.now)
        turn = (self.here.next_number, 0)
        texts = (question, reply) if ending == "reply" else (question,)
        lines = tuple(Line(text, text == question, self.now, self.now, turn) for text in texts)
        self.said += texts
        self._do(Told("say", self.thread, self.now, {self.thread: lines}))

    def retry(self, data: st.DataObject) -> None:
        """Ask again: what follows the last question makes room, unless nothing comes."""
        self._tick()
        view, reply, ending = self._view(), self._word(), data.draw(ENDINGS)
        asked = max((index for index, line in enumerate(view) if line.human), default=None)
        if asked is None:
            with pytest.raises(JournalError):
                self.story.run(anext(self.story.world.conversation.retry(self.story.place())))
            return
        self.story.retry(ending, reply)
        self._check_request([line.text for line in view[: asked + 1]])
        self.here.hold(self.thread, self.now)
        if ending == "reply":
            line = Line(reply, human=False, said=self.now, entered=self.now, turn=view[asked].turn)
            replaced = frozenset(line.text for line in view[asked + 1 :])
            self._do(Told("retry", self.thread, self.now, {self.thread: (line,)}, replaced))
        else:
            self.here.let_slide(self.thread)

    # What is done

    def clear(self, _: st.DataObject) -> None:
        self._tick()
        self.story.told("/new")
        self._do(Told("clear", None, self.now))

    def change_the_window(self, data: st.DataObject) -> None:
        before = DEFAULT_HOURS if self.here.hours is None else self.here.hours
        by = data.draw(st.integers(1, 5))
        hours = data.draw(st.sampled_from((1, 2, 8, 24, 168)))
        commands: dict[str, int | None] = {
            f"/context {hours}h": hours,
            f"/context add {by}h": min(168, before + by),
            f"/context sub {by}h": max(1, before - by),
            "/context reset": None,
        }
        command = data.draw(st.sampled_from(sorted(commands)))
        self._tick()
        self.story.told(command)
        if commands[command] != self.here.hours:
            self._do(Told("window", None, self.now, hours=(self.here.hours, commands[command])))

    def edit(self, data: st.DataObject) -> None:
        self._tick()
        view, hours = self._view(), data.draw(st.sampled_from((None, None, None, 1, 4)))
        since = self.now - timedelta(hours=hours) if hours else None
        opened = self.story.run(self.story.world.commands.context_editing.open(self.story.place(), since))
        hidden = [line for line in view if since and line.said <= since]
        above, below = self._laid_out(opened.sheet.text, [line for line in view if line not in hidden])
        wanted_above, wanted = edited_lines(data, above, below, self._word)
        self.story.world.editor.enqueue(self.story.written(opened.sheet.text, wanted_above, wanted))
        answer = self.story.told(f"/context edit {hours}h" if hours else "/context edit")
        if wanted == below or not (wanted or hidden):
            assert answer.startswith(UNEDITED), answer
            return
        together = self.here.edited(self._together(view, hidden, wanted), self.now)
        assert answer.startswith(f"[PRIOR_CONTEXT_PROVIDED] {len(together)} message"), answer
        self._do(Told("edit", self.thread, self.now, {self.thread: together}))

    def edit_while_something_is_said(self, data: st.DataObject) -> None:
        """The message comes from another window; it follows what was edited."""
        self._tick()
        number, view, editing = self.here.next_number, self._view(), self.story.world.commands.context_editing
        opened = self.story.run(editing.open(self.story.place()))
        kept = [line for line in view if data.draw(st.booleans())]
        self._say("reply")
        self._tick()
        self.story.run(editing.save(opened, self.story.written(opened.sheet.text, [], kept)))
        if kept and kept != list(view):
            self._do(
                Told("edit", self.thread, self.now, {self.thread: self.here.edited(kept, self.now)}, opened=number)
            )

    def save(self, _: st.DataObject) -> None:
        self._tick()
        word = self._word()
        saved = {thread: view for thread in self.here.threads if (view := self.here.view(thread, self.now))}
        if not saved:
            assert self.story.told(f"/context save {word}").startswith("There is nothing to save")
            return
        self.story.model.say("A summary.")
        assert self.story.told(f"/context save {word}").startswith("Saved session ")
        self.sessions[self.slug, f"{self.now:%Y-%m-%d}_{word}"] = Saved(saved, self.thread, self.slug)

    def restore(self, data: st.DataObject) -> None:
        names = sorted(name for slug, name in self.sessions if slug == self.slug)
        if names:
            self._restore(data.draw(st.sampled_from(names)))

    def restore_what_the_other_saved(self, data: st.DataObject) -> None:
        """A session's file is put into the folder of the other persona, whose log knows nothing of it."""
        slug, name = data.draw(st.sampled_from(sorted(self.sessions)))
        mine, theirs = (
            self.story.folder / "personas" / each / "sessions" / f"{name}.json" for each in (slug, OTHER[slug])
        )
        theirs.parent.mkdir(exist_ok=True)
        document = json.loads(mine.read_text(encoding="utf-8"))
        theirs.write_text(json.dumps({**document, "persona": OTHER[slug]}), encoding="utf-8")
        self.sessions[OTHER[slug], name] = self.sessions[slug, name]
        if self.slug == slug:
            self.turn_to_the_other(data)
        self._restore(name)

    def _restore(self, name: str) -> None:
        self._tick()
        session = self.sessions[self.slug, name]
        assert self.story.told(f"/context restore {name}").startswith(f"Restored session {name}")
        thread_of = self._threads_of(session)
        if session.origin == self.slug:
            assert thread_of == {thread: thread for thread in session.lines}
            assert self.thread == session.active
        elif session.active in thread_of:
            assert self.thread == thread_of[session.active]
        lines = {
            thread_of[each]: self.here.restored(thread_of[each], said, self.now) for each, said in session.lines.items()
        }
        self._do(Told("restore", None, self.now, lines))

    # What is taken back

    def undo(self, _: st.DataObject) -> None:
        self._tick()
        self._undo("/undo", self.here.undoable(self.thread, self.now))

    def undo_an_operation(self, _: st.DataObject) -> None:
        self._tick()
        self._undo("/context undo", self.here.undoable_operation(self.thread))

    def undo_by_number(self, data: st.DataObject) -> None:
        deeds = [deed for deed in self.here.deeds() if deed.operation and deed.concerns(self.thread)]
        if deeds:
            self._tick()
            deed = data.draw(st.sampled_from(deeds))
            self._undo(f"/context undo {deed.operation}", None if deed.taken_back else deed)

    def _undo(self, command: str, deed: Deed | None) -> None:
        answer = self.story.told(command)
        if deed is None or not self.here.may_undo(deed):
            assert not answer.startswith("Undone"), answer
            return
        assert answer.startswith(f"Undone: {_named(deed)}"), answer
        alone = {thread: lines for thread, lines in deed.before.items() if self.here.is_all_there_is(deed, thread)}
        self.here.undo(deed)
        self._check_contexts(alone)

    def redo(self, _: st.DataObject) -> None:
        self._tick()
        deed = self.here.redoable(self.thread)
        answer = self.story.told("/redo")
        if deed is None or not self.here.may_redo(deed):
            assert not answer.startswith("Redone"), answer
            return
        assert answer.startswith(f"Redone: {_named(deed)}"), answer
        alone = {thread: lines for thread, lines in deed.after.items() if self.here.is_all_there_is(deed, thread)}
        self.here.redo(deed)
        self._check_contexts(alone)

    def undo_and_redo_after_a_look_elsewhere(self, data: st.DataObject) -> None:
        self.undo(data)
        self.go_to_a_thread(data)
        if data.draw(st.booleans()):
            self._say("reply")
        self.go_to_a_thread(data)
        self.redo(data)

    def restore_what_was_just_changed(self, data: st.DataObject) -> None:
        self.save(data)
        data.draw(st.sampled_from((UserMachine.retry, UserMachine.undo, UserMachine.edit)))(self, data)
        self.restore(data)

    # Where and when

    def go_to_a_thread(self, data: st.DataObject) -> None:
        thread = data.draw(st.sampled_from(self.here.threads))
        self.story.told(f"/thread {thread}")
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
        place, world = self.story.place(past.slug, past.thread), self.story.world
        then = self.story.run(context_at(world.context, place, past.moment))
        assert [row.content for row in then.messages if row.content] == [line.text for line in past.lines]

    # What always holds

    @invariant()
    def every_context_is_as_expected(self) -> None:
        for slug, persona in self.personas.items():
            expected = {thread: shown(persona.view(thread, self.now)) for thread in persona.threads}
            assert self.story.seen(slug, persona.threads) == expected

    @invariant()
    def each_message_is_in_the_request_or_left_out_once(self) -> None:
        """Whatever its wordings, unless the user has put two of them into the context side by side."""
        story = self.story
        report = story.run(context_report(story.world.context, story.clock, story.place()))
        left_out = sum(omission.messages for omission in report.omissions)
        first = story.messages_of_thread()
        in_view = [first[row.id] for row in (*report.view.messages, *report.view.taken_back) if row.content]
        side_by_side = len(in_view) - len(set(in_view))
        assert len(report.prompt.sent) + left_out == len(set(first.values())) + side_by_side

    @invariant()
    def the_log_keeps_everything(self) -> None:
        rows = self.story.rows()
        assert rows[: len(self.rows)] == self.rows
        assert [content for *_, content, introduced_by in rows if content and introduced_by is None] == self.said
        self.rows = rows

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
        self.here.threads = [thread.id for thread in self.story.run(self.story.world.focus.threads())]
        seen = self.story.seen(self.slug, self.here.threads)
        found = {
            each: [thread for thread in seen if seen[thread] == shown(lines)] for each, lines in session.lines.items()
        }
        assert all(len(threads) == 1 for threads in found.values())
        return {each: threads[0] for each, threads in found.items()}


def _named(deed: Deed) -> str:
    if deed.told.kind != "say":
        return NAMES[deed.told.kind]
    (lines,) = deed.told.lines.values()
    return f'your message "{lines[0].text}" and its reply'


WEIGHTS: dict[Callable[[UserMachine, st.DataObject], None], int] = {
    UserMachine.say: 9,
    UserMachine.retry: 7,
    UserMachine.clear: 3,
    UserMachine.change_the_window: 4,
    UserMachine.edit: 9,
    UserMachine.edit_while_something_is_said: 2,
    UserMachine.save: 3,
    UserMachine.restore: 5,
    UserMachine.restore_what_the_other_saved: 4,
    UserMachine.undo: 12,
    UserMachine.undo_an_operation: 3,
    UserMachine.undo_by_number: 4,
    UserMachine.redo: 12,
    UserMachine.undo_and_redo_after_a_look_elsewhere: 6,
    UserMachine.restore_what_was_just_changed: 4,
    UserMachine.go_to_a_thread: 6,
    UserMachine.open_a_thread: 2,
    UserMachine.turn_to_the_other: 3,
    UserMachine.start_again: 2,
    UserMachine.let_time_pass: 5,
    UserMachine.look_back: 3,
}
ACTS = tuple(act for act, weight in WEIGHTS.items() for _ in range(weight))


@pytest.mark.timeout(900)  # only for finding the shortest story that fails
def test_the_contexts_are_as_expected() -> None:
    run_state_machine_as_test(UserMachine, settings=settings(max_examples=18, stateful_step_count=40, deadline=None))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_contexts_are_as_expected_through_long_stories() -> None:
    run_state_machine_as_test(UserMachine, settings=settings(max_examples=400, stateful_step_count=60, deadline=None))


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
