"""Whatever a user says, does and takes back, in whatever order and in which threads: the contexts are as expected."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from chorus_cli.context.service.report import context_report
from chorus_cli.core.errors import JournalError
from chorus_cli.log.rules.acts import Way
from chorus_cli.log.rules.messages import is_written
from tests.log.service.expected_contexts import ADDED, DEFAULT_HOURS, Deed, Line, Told
from tests.log.service.user_story import MOST_THREADS, OTHER, Ending, ExpectingUser, Saved, shown
from tests.world import World

NAMES = {
    "clear": "new conversation",
    "edit": "edit of ",
    "restore": "restored session, ",
    "fork": "fork of thread #",
    "retry": "another reply to the last message",
    "continue": "continuation of the last reply",
    "reword": "edit of message #",
    "window": "window ",
}
UNEDITED = "Nothing was changed"
ENDINGS: st.SearchStrategy[Ending] = st.sampled_from(("reply", "reply", "reply", "reply", "nothing", "stopped"))

_EDITS = st.sampled_from(("delete", "reword", "put below", "put below", "put above", "reorder", "add", "move line"))
_ANCIENT = datetime(2020, 1, 1, tzinfo=UTC)


def edited_lines(
    data: st.DataObject, above: Sequence[Line], below: Sequence[Line], new_word: Callable[[], str]
) -> tuple[list[Line], list[Line]]:
    """Delete, reword, move, reorder or add some; return what then stands above the line and what below it."""
    older, context = list(above), list(below)
    laid_out = {line.text for line in (*above, *below)}
    for act in data.draw(st.lists(_EDITS, min_size=1, max_size=3)):
        place = data.draw(st.integers(0, len(context)))
        chosen = context[place : place + 1]
        if act == "add":
            context.insert(place, _added(new_word(), human=data.draw(st.booleans())))
        elif act == "put below" and older:
            context.insert(place, older.pop(data.draw(st.integers(0, len(older) - 1))))
        elif act == "move line":
            together, line = [*older, *context], data.draw(st.integers(0, len(older)))
            older, context = together[:line], together[line:]
        elif act == "reorder":
            context = data.draw(st.permutations(context))
        elif act == "reword":
            context[place : place + 1] = [replace(line, text=new_word()) for line in chosen]
        elif act in {"delete", "put above"}:
            older += chosen if act == "put above" else []
            del context[place : place + 1]
    # New words would be refused above the line.
    return [line for line in older if line.text in laid_out], context


def _added(word: str, *, human: bool) -> Line:
    """Return a line with a time that no other has."""
    said = _ANCIENT + timedelta(seconds=int(word.removeprefix("word")))
    return Line(word, human, said, said, ADDED)


class ActingUser(ExpectingUser):
    """Does as a user does; each act draws what it needs."""

    def begin(self, data: st.DataObject) -> None:
        """Most of what can go wrong needs something said, a session, and a second thread."""
        self._say("reply")
        self._say("reply")
        self.save(data)
        self.open_a_thread(data)
        self._say("reply")

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
                self.story.run(anext(self.story.world.conversation.retry(self.story.target())))
            return
        self.story.retry(ending, reply)
        self._check_request([line.text for line in view[: asked + 1]])
        self.here.hold(self.thread, self.now)
        if ending == "reply":
            line = Line(reply, human=False, said=self.now, entered=self.now, turn=view[asked].turn)
            replies = view[asked + 1 :]
            replaced = frozenset(line.text for line in replies)
            replaced |= self.here.others_of(replies[-1], self.thread, view) if replies else frozenset()
            self._do(Told("retry", self.thread, self.now, {self.thread: (line,)}, replaced))
        else:
            self.here.let_slide(self.thread)

    def go_on(self, data: st.DataObject) -> None:
        """Let the last reply go on: a longer one takes its place, unless nothing comes."""
        self._tick()
        view, more, ending = self._view(), self._word(), data.draw(ENDINGS)
        if not any(line.human for line in view) or view[-1].human:
            with pytest.raises(JournalError):
                self.story.run(anext(self.story.world.conversation.retry(self.story.target(), Way.CONTINUE)))
            return
        self.story.retry(ending, more, Way.CONTINUE)
        self._check_request([line.text for line in view])
        self.here.hold(self.thread, self.now)
        if ending == "reply":
            line = replace(view[-1], text=view[-1].text + more, said=self.now, entered=self.now)
            replaced = self.here.others_of(view[-1], self.thread, view) | {view[-1].text}
            self._do(Told("continue", self.thread, self.now, {self.thread: (line,)}, replaced))
        else:
            self.here.let_slide(self.thread)

    # What is done

    def edit_message(self, data: st.DataObject) -> None:
        """Edit one message alone: the last of a turn in its place, another as with all messages in the editor."""
        view = self._view()
        if not view:
            return
        self._tick()
        place, word = data.draw(st.integers(0, len(view) - 1)), self._word()
        seen = self.story.run(self.story.world.view())
        row = next(row for row in seen.messages if row.content == view[place].text)
        self.story.world.editor.enqueue(word)
        answer = self.story.told(f"/edit {row.id}")
        worded = [replace(line, text=word) if line is view[place] else line for line in view]
        put_in = seen.boundary.members if seen.boundary else ()
        of_turn = [each for each in seen.messages if each.turn_id == row.turn_id and is_written(each)]
        if row == of_turn[-1] and row.id not in put_in:
            assert answer == f"Message edited. /undo reverts.\n\n{word}"
            line, replaced = worded[place], self.here.others_of(view[place], self.thread, view) | {view[place].text}
            self._do(Told("reword", self.thread, self.now, {self.thread: (line,)}, replaced))
        else:
            assert answer.startswith("Message edited. As after /context edit, the context is now exactly")
            self._do(Told("edit", self.thread, self.now, {self.thread: self.here.edited(worded, self.now)}))

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
        opened = self.story.run(self.story.world.services.context_editing.open(self.story.target(), since))
        hidden = [line for line in view if since and line.said <= since]
        above, below = self._laid_out(opened.sheet.text, [line for line in view if line not in hidden])
        wanted_above, wanted = edited_lines(data, above, below, self._word)
        self.story.world.editor.enqueue(self.story.written(opened.sheet.text, wanted_above, wanted))
        answer = self.story.told(f"/context edit {hours}h" if hours else "/context edit")
        if wanted == below or not (wanted or hidden):
            assert answer.startswith(UNEDITED), answer
            return
        together = self.here.edited(self._together(view, hidden, wanted), self.now)
        assert answer.startswith(f"Context edited: {len(together):,} message"), answer
        self._do(Told("edit", self.thread, self.now, {self.thread: together}))

    def edit_while_something_is_said(self, data: st.DataObject) -> None:
        """The message comes from another Chorus; it follows what was edited."""
        self._tick()
        number, view, editing = self.here.next_number, self._view(), self.story.world.services.context_editing
        opened = self.story.run(editing.open(self.story.target()))
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

    def fork(self, _: st.DataObject) -> None:
        """Go on in a thread that begins with what is in context here."""
        if len(self.here.threads) > MOST_THREADS:
            return
        self._tick()
        origin, view = self.thread, self._view()
        answer = self.story.told("/thread fork")
        if not view:
            assert answer.startswith("There is nothing to fork"), answer
            return
        assert self.thread not in self.here.threads
        self.here.threads.append(self.thread)
        lines = tuple(replace(line, entered=self.now) for line in view)
        self._do(Told("fork", self.thread, self.now, {self.thread: lines}, origin=origin))

    # What is taken back

    def undo(self, _: st.DataObject) -> None:
        self._tick()
        self._undo("/undo", self.here.undoable(self.thread))

    def undo_an_operation(self, _: st.DataObject) -> None:
        self._tick()
        self._undo("/context undo", self.here.undoable_operation(self.thread))

    def undo_by_number(self, data: st.DataObject) -> None:
        deeds = [deed for deed in self.here.deeds() if deed.is_listed(self.thread)]
        if deeds:
            self._tick()
            deed = data.draw(st.sampled_from(deeds))
            self._undo(f"/context undo {deed.operation}", None if deed.taken_back else deed)

    def _undo(self, command: str, deed: Deed | None) -> None:
        answer = self.story.insisted(command)
        if deed is None or not self.here.may_undo(deed):
            assert not answer.startswith("Undone"), answer
            return
        assert answer.startswith(f"Undone: {_named(deed)}"), answer
        alone = {thread: lines for thread, lines in deed.before.items() if self.here.is_all_there_is(deed, thread)}
        self.here.undo(deed)
        self._follow(deed)
        self._check_contexts(alone)

    def redo(self, _: st.DataObject) -> None:
        self._tick()
        self._redo("/redo", self.here.redoable(self.thread))

    def redo_by_number(self, data: st.DataObject) -> None:
        deeds = [deed for deed in self.here.deeds() if deed.is_listed(self.thread)]
        if deeds:
            self._tick()
            deed = data.draw(st.sampled_from(deeds))
            self._redo(f"/context redo {deed.operation}", deed if deed.taken_back else None)

    def _redo(self, command: str, deed: Deed | None) -> None:
        answer = self.story.told(command)
        if deed is None or not self.here.may_redo(deed):
            assert not answer.startswith("Redone"), answer
            return
        assert answer.startswith(f"Redone: {_named(deed)}"), answer
        alone = {thread: lines for thread, lines in deed.after.items() if self.here.is_all_there_is(deed, thread)}
        self.here.redo(deed)
        self._follow(deed)
        self._check_contexts(alone)

    def _follow(self, deed: Deed) -> None:
        """An undo of a fork closes its thread and leads back, a redo leads to it again."""
        if deed.told.kind != "fork":
            return
        was_open, origin = set(self.here.threads), deed.told.origin
        self.here.threads = self.story.open_threads()
        assert (deed.told.thread in self.here.threads) == (not deed.taken_back)
        if not deed.taken_back:
            assert self.thread == deed.told.thread
        elif origin in was_open:
            assert self.thread == origin

    def undo_and_redo_after_a_look_elsewhere(self, data: st.DataObject) -> None:
        self.undo(data)
        self.go_to_a_thread(data)
        if data.draw(st.booleans()):
            self._say("reply")
        self.go_to_a_thread(data)
        self.redo(data)

    def restore_what_was_just_changed(self, data: st.DataObject) -> None:
        self.save(data)
        data.draw(st.sampled_from((ActingUser.retry, ActingUser.undo, ActingUser.edit)))(self, data)
        self.restore(data)


def _named(deed: Deed) -> str:
    if deed.told.kind != "say":
        return NAMES[deed.told.kind]
    (lines,) = deed.told.lines.values()
    return f'your message "{lines[0].text}"' + (" and its reply" if len(lines) > 1 else "")


WEIGHTS: dict[Callable[[ActingUser, st.DataObject], None], int] = {
    ActingUser.say: 9,
    ActingUser.retry: 7,
    ActingUser.go_on: 5,
    ActingUser.edit_message: 6,
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
        first, view = story.messages_of_thread(), report.plan.snapshot.view
        reworded = {row.revises for row in (*view.messages, *view.taken_back)}
        taken_back = [row for row in view.taken_back if row.id not in reworded]
        in_view = [first[row.id] for row in (*view.messages, *taken_back) if row.content]
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


@pytest.mark.parametrize(
    ("way", "there"),
    [
        (None, ["Elsewhere", "ok", "And then?", "ok"]),
        (Way.AGAIN, ["Elsewhere", "ok"]),
        (Way.CONTINUE, ["Elsewhere", "okok"]),
    ],
)
async def test_what_concerns_every_thread_is_not_put_back_under_what_was_said_in_another(
    world: World, way: Way | None, there: list[str]
) -> None:
    await world.told("/thread new")
    await world.say("Elsewhere")
    await world.told("/thread 1")
    await world.told("/new")
    await world.told("/undo")
    await world.told("/thread 2")
    target, conversation = world.current.target(), world.conversation
    events = conversation.answer(target, "And then?") if way is None else conversation.retry(target, way)
    async for _ in events:
        pass
    await world.told("/thread 1")
    assert (await world.told("/redo")).startswith("Nothing was undone just now;")
    await world.told("/thread 2")
    assert await world.seen() == there
