"""A text goes into the editor and comes back, or stays in its draft."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chorus_cli.core.errors import EditorError
from chorus_cli.framework.drafts import Edited, Editing
from chorus_cli.machine.editor import UserEditor
from chorus_cli.storage import drafts
from tests.fakes import FakeClock, ScriptedEditor

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
    [("", "The editor was ended along with the chat."), ("nano ended with status 1.", "nano ended with status 1.")],
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
