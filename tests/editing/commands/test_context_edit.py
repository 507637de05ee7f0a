"""``/context edit``: the context after an edited text, the answers and questions, and how any text is edited."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.context.rules.plan import BROKEN_OFF
from chorus_cli.core.errors import CommandError, EditorError
from chorus_cli.editing.service.context import OvertakenError
from chorus_cli.framework.drafts import Edited, Editing
from chorus_cli.framework.replies import plain
from chorus_cli.log.rules.messages import Role, Status
from chorus_cli.machine.editor import UserEditor
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.storage import drafts
from tests.fakes import FakeClock, ScriptedEditor
from tests.world import World

LINE = "--- context starts here ---\n"


def changing(change: Callable[[str], str]) -> Callable[[Path], object]:
    return lambda path: path.write_text(change(path.read_text()))


def without(*words: str) -> Callable[[Path], object]:
    """Delete the messages that begin with these words, header and all."""

    def change(text: str) -> str:
        blocks = text.split("\n\n")
        return "\n\n".join(block for block in blocks if not any(f": {word}" in block for word in words))

    return changing(change)


def replacing(old: str, new: str) -> Callable[[Path], object]:
    return changing(lambda text: text.replace(old, new))


async def test_the_history_and_the_context_are_laid_out_with_a_line_between(turns: World) -> None:
    await turns.told("/new")
    await turns.say("Fresh")
    await turns.told("/context edit")
    (text,) = turns.editor.shown
    above, below = text.split(LINE)
    spoken = [f"{speaker}: {word}{number}" for number in "123" for speaker, word in (("Human", "A"), ("chorus", "B"))]
    assert [line.partition("] ")[2] for line in above.splitlines() if line.startswith("[")] == spoken
    assert "Human: Fresh" in below


async def test_deleted_messages_leave_and_the_rest_keeps_its_rows_and_is_sent_with_nothing_else(turns: World) -> None:
    before = await turns.log()
    turns.editor.enqueue(without("B1", "A2"))
    assert await turns.told("/context edit") == "Context edited: 4 messages (2 left out). /undo reverts."
    assert await turns.seen() == ["A1", "B2", "A3", "B3"]
    assert await turns.log() == before
    await turns.say("Next")
    assert [content for _, content in turns.asked()] == ["A1", "B2", "A3", "B3", "Next"]
    for _ in range(2):
        await turns.told("/undo")
    assert await turns.seen() == ["A1", "B1", "A2", "B2", "A3", "B3"]


async def test_a_zero_byte_becomes_a_sign_as_in_a_typed_message(turns: World) -> None:
    turns.editor.enqueue(replacing("B3", "B\0"))
    await turns.told("/context edit")
    assert (await turns.seen())[-1] == "B\u2400"


async def test_a_character_and_its_user_may_have_their_names_in_an_edited_text(turns: World) -> None:
    turns.configure('{"name": "Mira Tallow", "nickname": "Mira", "aliases": ["Mi"], "user_name": "Jonas"}')
    (turns.personas.folder / "chorus" / "card.json").write_text("{}")
    added = "".join(f"\n[2026-02-12 14:30:00] {name}: by {name}\n" for name in ("Jonas", "human", "Mira", "MI"))
    turns.editor.enqueue(replacing("\n--- end of messages", f"{added}\n--- end of messages"))
    assert await turns.told("/context edit") == "Context edited: 10 messages (4 added). /undo reverts."
    assert [(row.role, row.content) for row in (await turns.view()).messages[-4:]] == [
        (Role.USER, "by Jonas"),
        (Role.USER, "by human"),
        (Role.ASSISTANT, "by Mira"),
        (Role.ASSISTANT, "by MI"),
    ]


async def test_the_editor_says_how_a_reply_that_broke_off_is_sent(turns: World) -> None:
    turns.editor.enqueue(lambda _path: None)
    await turns.told("/context edit")
    comments = " ".join(line.removeprefix("# ") for line in turns.editor.shown[-1].partition("---")[0].splitlines())
    assert f"A reply that broke off is sent with {BROKEN_OFF} at its end" in comments


async def test_edited_members_leave_together_when_the_window_has_passed(turns: World) -> None:
    turns.clock.advance(timedelta(hours=7))
    turns.editor.enqueue(without("A2"))
    await turns.told("/context edit")
    turns.clock.advance(timedelta(hours=7, minutes=59))
    assert await turns.seen() == ["A1", "B1", "B2", "A3", "B3"]
    turns.clock.advance(timedelta(minutes=2))
    assert await turns.seen() == []
    gone = "Your edit of 5 messages is now older than 8h. /context 9h brings it back."
    (notice,) = await turns.current.notices()
    assert "the 8h window holds 0 of 5 messages. /context 9h brings all back." in notice
    assert await turns.notices("Hello?") == [gone]
    assert await turns.notices("Hello again?") == []
    await turns.told("/context 9h")
    assert (await turns.seen())[:5] == ["A1", "B1", "B2", "A3", "B3"]


async def test_a_reply_still_running_when_the_editor_opens_follows_too(turns: World) -> None:
    may_end = asyncio.Event()
    turns.model.enqueue(TextDelta("B"), may_end, TextDelta("4"), ReplyEnd("stop"))
    turn = asyncio.create_task(turns.say("A4"))
    await turns.log_row_with_status(7, Status.STREAMING)
    editing = turns.services.context_editing
    opened = await editing.open(turns.current.target())
    assert "A4" not in opened.sheet.text
    may_end.set()
    await turn
    assert await editing.save(opened, opened.sheet.text.replace("Human: A2", "Human: A two")) is not None
    assert await turns.seen() == ["A1", "B1", "A two", "B2", "A3", "B3", "A4", "B4"]


async def retry(turns: World) -> None:
    _ = [event async for event in turns.conversation.retry(turns.current.target())]


@pytest.mark.parametrize(("meanwhile", "seen"), [(retry, ["B3 again"]), (lambda turns: turns.told("/new"), [])])
async def test_what_was_done_meanwhile_is_not_overwritten(
    turns: World, meanwhile: Callable[[World], Awaitable[object]], seen: list[str]
) -> None:
    editing = turns.services.context_editing
    opened = await editing.open(turns.current.target())
    turns.model.say("B3 again")
    await meanwhile(turns)
    with pytest.raises(OvertakenError):
        await editing.save(opened, opened.sheet.text.replace("Human: A2", "Human: A two"))
    assert (await turns.seen())[-1:] == seen


async def test_while_a_retry_runs_the_context_cannot_be_edited(turns: World) -> None:
    may_end = asyncio.Event()
    turns.model.enqueue(TextDelta("B"), may_end, TextDelta("3!"), ReplyEnd("stop"))
    running = asyncio.create_task(retry(turns))
    await turns.log_row_with_status(6, Status.STREAMING)
    refused = "The last message is being answered again. Edit the context when the reply is done."
    assert await turns.told("/context edit") == refused
    may_end.set()
    await running
    assert (await turns.seen())[-1] == "B3!"


@pytest.mark.parametrize(
    ("change", "reply"),
    [
        (None, "Nothing was changed."),
        ("", "Nothing was changed: the saved text is empty."),
        (without("A", "B"), "Nothing was changed: the text has no messages left. /new empties the context."),
        (changing(lambda text: text + "\n"), "Nothing was changed: the context is the same as before."),
    ],
)
async def test_endings_that_change_nothing_say_so(turns: World, change: Callable[[Path], object], reply: str) -> None:
    turns.editor.enqueue(change)
    assert await turns.told("/context edit") == reply
    assert await turns.journal.entries(turns.current.target()) == []


async def test_a_text_that_cannot_be_read_is_told_with_its_line_where_the_editor_is_opened_again(turns: World) -> None:
    await turns.told("/new")
    await turns.say("Fresh")
    turns.editor.enqueue(replacing("Human: Fresh", "Humn: Fresh"))
    question = await turns.asked_back("/context edit")
    start, mistake = turns.editor.lines[0], int(re.findall(r"\ALine (\d+): ", question.text)[0])
    assert start is not None
    assert turns.editor.shown[0].splitlines()[start - 1].endswith("chorus: ok")
    assert question.text.endswith("\nEdit again?")
    assert list(question.choices) == ["y", "n", "d"]
    assert await turns.seen() == ["Fresh", "ok"]
    turns.editor.enqueue(replacing("Humn: Fresh", "Human: Fresher"))
    assert plain(await question.confirmed()) == "Context edited: 2 messages (1 reworded). /undo reverts."
    assert turns.editor.lines == [start, mistake]
    assert turns.editor.shown[1].splitlines()[mistake - 1].endswith("Humn: Fresh")
    assert await turns.seen() == ["Fresher", "ok"]


@pytest.mark.parametrize("complaint", ["", "nano ended with status 1."])
async def test_an_edit_that_is_not_used_is_kept_or_discarded(turns: World, complaint: str) -> None:
    for _ in range(2):
        turns.editor.enqueue(replacing("Human: A2", "Humn: A2"), complaint=complaint)
    kept, discarded = [await turns.asked_back("/context edit") for _ in range(2)]
    assert plain(kept.declined) == f"The context is unchanged; your text is kept in {turns.editor.opened[0]}."
    assert discarded.discarded is not None
    assert plain(await discarded.discarded()) == "The context is unchanged; your edit was discarded."
    assert [path.exists() for path in turns.editor.opened] == [True, False]
    assert await turns.journal.entries(turns.current.target()) == []


async def test_the_answer_counts_what_was_changed_by_its_kind(turns: World) -> None:
    def change(text: str) -> str:
        head, context = text.split(LINE + "\n")
        a1, b1, a2, _b2, *rest, end = context.split("\n\n")
        new = "[2026-02-12 14:00:00] Human: New"
        return head + LINE + "\n" + "\n\n".join([b1, a1, new, f"{a2}!", *rest, end])

    turns.editor.enqueue(changing(change))
    told = await turns.told("/context edit")
    assert told == "Context edited: 6 messages (1 reworded, 1 left out, 1 added). /undo reverts."


async def test_an_edit_that_comes_too_late_is_refused_and_its_text_is_kept(turns: World) -> None:
    turns.editor.enqueue(replacing("Human: A3", "Humn: A3"))
    question = await turns.asked_back("/context edit")
    await turns.told("/new")
    turns.editor.enqueue(replacing("Humn: A3", "Human: A three"))
    with pytest.raises(CommandError, match=r"changed in the meantime.* Your text is kept in "):
        await question.confirmed()


# How any text goes into the editor and comes back, or stays in its draft

AT_ONCE = "The editor returned at once"


@pytest.fixture
def editor(clock: FakeClock) -> ScriptedEditor:
    return ScriptedEditor(clock)


@pytest.fixture
def editing(editor: ScriptedEditor, clock: FakeClock, tmp_path: Path) -> Editing:
    return Editing(editor, lambda: tmp_path / "drafts", clock)


def kept(editing: Editing) -> list[Path]:
    return sorted(editing.folder().iterdir())


async def test_the_user_changes_the_text_and_the_draft_goes_when_it_is_finished(
    editing: Editing, editor: ScriptedEditor
) -> None:
    editor.enqueue("new")
    edited = await editing.edit("system.jsonc", "old")
    assert edited == Edited(edited.path, "old", "new")
    assert edited.changed
    assert (editor.shown, editor.opened, kept(editing)) == (["old"], [edited.path], [edited.path])
    assert edited.path.name.endswith("system.jsonc")
    editing.finish(edited)
    assert kept(editing) == []


async def test_a_text_that_was_looked_at_and_left_is_unchanged_without_a_doubt(editing: Editing) -> None:
    edited = await editing.edit("text.md", "old\r\n")
    assert (edited.changed, edited.text, edited.doubt) == (False, "old\r\n", "")


@pytest.mark.parametrize(
    ("act", "complaint", "seconds", "doubt"),
    [
        (None, "", 0.1, AT_ONCE),
        (None, "", 1.9, AT_ONCE),
        (None, "", 2.0, ""),
        ("new", "", 0.1, ""),
        ("new", "nano ended with status 1.", 60.0, "nano ended with status 1."),
        (None, "vim ended with status 1.", 0.1, "vim ended with status 1."),
        (None, "vim was ended by signal 9 (Killed).", 60.0, "vim was ended by signal 9 (Killed)."),
    ],
)
async def test_a_bad_end_is_doubtful_and_so_is_coming_back_at_once_with_nothing(
    editing: Editing, editor: ScriptedEditor, act: str | None, complaint: str, seconds: float, doubt: str
) -> None:
    editor.enqueue(act, complaint=complaint, seconds=seconds)
    edited = await editing.edit("text.md", "old")
    assert edited.text == (act or "old")
    assert edited.doubt.startswith(doubt)
    assert bool(edited.doubt) == bool(doubt)


async def test_editing_again_goes_on_with_the_draft_and_still_knows_the_first_text(
    editing: Editing, editor: ScriptedEditor
) -> None:
    editor.enqueue("second", complaint="nano ended with status 1.")
    edited = await editing.edit("text.md", "first")
    editor.enqueue("third")
    again = await editing.edit_again(edited)
    assert again == Edited(edited.path, "first", "third")
    editor.enqueue("first")
    assert not (await editing.edit_again(again)).changed
    assert editor.shown == ["first", "second", "third"]


async def test_coming_back_at_once_from_editing_again_is_judged_by_what_was_there_then(
    editing: Editing, editor: ScriptedEditor
) -> None:
    editor.enqueue("second")
    edited = await editing.edit("text.md", "first")
    editor.enqueue(None, seconds=0.1)
    again = await editing.edit_again(edited)
    assert again.changed
    assert again.doubt.startswith(AT_ONCE)


async def test_the_editor_is_told_where_to_open_the_text(editing: Editing, editor: ScriptedEditor) -> None:
    edited = await editing.edit("text.md", "old", 17)
    await editing.edit_again(edited, 4)
    await editing.edit_again(edited)
    assert editor.lines == [17, 4, None]


async def test_a_draft_is_kept_from_the_eyes_of_others_while_its_process_lives(
    editor: ScriptedEditor, clock: FakeClock, tmp_path: Path
) -> None:
    editor.enqueue("new")
    edited = await Editing(editor, lambda: tmp_path, clock, "4711-0a1b2c3d").edit("text.md", "old")
    alive = {"4711-0a1b2c3d"}
    assert drafts.kept(tmp_path, clock.now(), lambda run: run in alive) == ()
    alive.clear()
    assert drafts.kept(tmp_path, clock.now(), lambda run: run in alive) == (edited.path,)


async def test_without_an_editor_no_draft_is_left_behind(editing: Editing, editor: ScriptedEditor) -> None:
    editor.enqueue(EditorError("There is no editor."))
    with pytest.raises(EditorError, match=r"^There is no editor\.$"):
        await editing.edit("text.md", "text")
    assert kept(editing) == []


async def test_without_an_editor_for_the_second_time_the_draft_is_kept_and_named(
    editing: Editing, editor: ScriptedEditor
) -> None:
    editor.enqueue("new")
    edited = await editing.edit("text.md", "old")
    editor.enqueue(EditorError("There is no editor."))
    with pytest.raises(EditorError) as refusal:
        await editing.edit_again(edited)
    assert str(refusal.value) == f"There is no editor. Your text is kept in {edited.path}."
    assert edited.path.read_text() == "new"


async def test_what_cannot_be_read_back_is_kept_and_named(editing: Editing, editor: ScriptedEditor) -> None:
    editor.enqueue(lambda path: path.write_bytes(b"d\xe9j\xe0"))
    with pytest.raises(EditorError) as refusal:
        await editing.edit("text.md", "text")
    [path] = kept(editing)
    assert path.read_bytes() == b"d\xe9j\xe0"
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize(
    ("original", "saved", "text"),
    [
        ("one", "\ufeffone", "one"),
        ("\ufeffone", "\ufeffone", "\ufeffone"),
        ("\ufeffone", "one", "one"),
        ("one", "\ufeff\ufefftwo", "\ufefftwo"),
    ],
)
async def test_a_byte_order_mark_counts_only_if_it_was_there_before(
    editing: Editing, editor: ScriptedEditor, original: str, saved: str, text: str
) -> None:
    editor.enqueue(saved)
    edited = await editing.edit("text.md", original)
    assert (edited.text, edited.changed) == (text, text != original)


@dataclass
class PatientEditor(UserEditor):
    """Is open until the test closes it."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    complaint: str = "nano ended with status 1."
    asked_to_end: bool = False

    async def open(self, _path: Path, _line: int | None = None) -> str:
        self.opened.set()
        await self.closed.wait()
        return self.complaint

    def stays_in_terminal(self) -> bool:
        return True

    def end(self) -> None:
        self.asked_to_end = True


async def test_who_is_cancelled_meanwhile_waits_for_the_editor_and_keeps_the_draft(
    tmp_path: Path, clock: FakeClock
) -> None:
    editor = PatientEditor()
    editing = Editing(editor, lambda: tmp_path / "drafts", clock)
    task = asyncio.create_task(editing.edit("text.md", "text"))
    await editor.opened.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    editor.closed.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [path.read_text() for path in kept(editing)] == ["text"]
    assert editor.asked_to_end


@pytest.mark.parametrize(
    ("complaint", "doubt"),
    [("", "The chat ended, and the editor with it."), ("nano ended with status 1.", "nano ended with status 1.")],
)
async def test_what_an_editor_saved_that_was_ended_is_doubtful_and_more_may_come(
    tmp_path: Path, clock: FakeClock, complaint: str, doubt: str
) -> None:
    editor = PatientEditor(complaint=complaint)
    editing = Editing(editor, lambda: tmp_path / "drafts", clock)
    task = asyncio.create_task(editing.edit("text.md", "text"))
    await editor.opened.wait()
    editing.end()
    editor.closed.set()
    edited = await task
    assert (edited.doubt, edited.may_be_open) == (doubt, True)
