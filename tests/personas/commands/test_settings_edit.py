"""/settings edit: the file and the draft after every kind of editor."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.core.errors import CommandError, EditorError
from chorus_cli.framework.replies import Question, plain
from chorus_cli.log.rules.acts import Window
from tests.personas.commands.settings_desk import TEXT, Desk


async def test_what_is_edited_and_saved_holds_and_its_changes_are_told(desk: Desk) -> None:
    desk.editor.enqueue('{ "temperature": 0.9, "context_hours": 24,\n"mine": 1, "model": "chorus/eliza" }')
    reply = (await desk.text("/settings edit")).splitlines()
    assert desk.editor.shown == [TEXT]
    assert reply[:5] == [
        f"Saved {desk.path}.",
        "aliases: a, b → not set",
        "model: not set → chorus/eliza",
        "temperature: 0.2 → 0.9",
        "context_hours: not set → 24",
    ]
    assert f'{desk.path}:2: unknown setting "mine"' in reply
    assert "Context window set to 24h" in reply
    assert "Model: chorus/eliza (set by /model)" in reply
    assert await desk.windows() == [Window(None, 24)]
    assert desk.path.with_name("system.jsonc.bak").read_text() == TEXT
    assert desk.kept() == []


@pytest.mark.parametrize(
    ("draft", "reply"),
    [
        (None, "Nothing was changed."),
        ("", "Nothing was changed: the saved text is empty."),
        (" \n", "Nothing was changed: the saved text is empty."),
    ],
)
async def test_what_was_left_unchanged_or_empty_changes_nothing(desk: Desk, draft: str | None, reply: str) -> None:
    desk.editor.enqueue(draft)
    assert await desk.text("/settings edit") == reply
    assert desk.world.settings_text() == TEXT
    assert desk.kept() == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"temperature" 1}', "system.jsonc:1:16: expected ':', found '1'."),
        ('{"temperature": 5}', "system.jsonc:1: temperature is 5; it must be a number from 0 to 2."),
    ],
)
async def test_a_broken_file_that_was_left_unchanged_is_still_said_to_be_broken(
    desk: Desk, text: str, error: str
) -> None:
    desk.world.configure(text)
    assert await desk.text("/settings edit") == f"Nothing was changed. The file still has an error: {error}"


async def test_an_editor_that_ended_badly_without_a_change_leaves_no_draft(desk: Desk) -> None:
    desk.editor.enqueue(None, complaint="nano ended with status 1.", seconds=0.1)
    assert await desk.text("/settings edit") == "nano ended with status 1. Nothing was changed."
    assert desk.kept() == []


async def test_a_window_that_may_still_be_open_keeps_its_draft(desk: Desk) -> None:
    desk.editor.enqueue(None, seconds=0.1)
    reply = await desk.text("/settings edit")
    assert reply.startswith("The editor returned at once; if it opens a window of its own, have it wait: code --wait")
    assert f"Nothing was changed. The draft stays in {desk.drafts}" in reply
    assert desk.kept() == [TEXT]


async def test_only_a_comment_that_is_edited_is_saved_too(desk: Desk) -> None:
    desk.editor.enqueue(TEXT.replace("calm", "lively"))
    assert await desk.text("/settings edit") == f"Saved {desk.path}; no setting was changed."
    assert desk.world.settings_text() == TEXT.replace("calm", "lively")


async def test_a_mistake_is_told_with_its_place_and_can_be_mended_in_the_same_draft(desk: Desk) -> None:
    desk.editor.enqueue('{\n  "temperature" 1\n}')
    desk.editor.enqueue('{\n  "temperature": 5\n}')
    desk.editor.enqueue('{\n  "temperature": 1\n}')
    question = await desk.ask("/settings edit")
    assert question.text == "system.jsonc:2:17: expected ':', found '1'.\nEdit again?"
    again = await question.confirmed()
    assert isinstance(again, Question)
    assert again.text == "system.jsonc:2: temperature is 5; it must be a number from 0 to 2.\nEdit again?"
    assert plain(await again.confirmed()).startswith(f"Saved {desk.path}.")
    assert desk.editor.shown == [TEXT, '{\n  "temperature" 1\n}', '{\n  "temperature": 5\n}']
    assert len(set(desk.editor.opened)) == 1
    assert desk.kept() == []


async def test_a_mistake_that_is_not_mended_leaves_the_file_and_keeps_the_draft(desk: Desk) -> None:
    desk.editor.enqueue('{ "temperature": 1')
    question = await desk.ask("/settings edit")
    assert question.declined.text == (f"{desk.path} is unchanged; your text is kept in {desk.editor.opened[0]}.")
    assert desk.world.settings_text() == TEXT
    assert desk.kept() == ['{ "temperature": 1']


async def test_an_editor_that_ended_badly_with_changes_is_asked_about(desk: Desk) -> None:
    for _ in range(2):
        desk.editor.enqueue('{ "tools": false }', complaint="vim was killed.")
    question = await desk.ask("/settings edit")
    assert question.text == "vim was killed.\nUse what was saved?"
    assert desk.world.settings_text() == TEXT
    assert desk.kept() == ['{ "tools": false }']
    assert plain(await question.confirmed()).startswith(f"Saved {desk.path}.")
    assert desk.kept() == []


async def test_a_file_that_somebody_else_changed_meanwhile_is_left_and_the_draft_is_kept(desk: Desk) -> None:
    def edit(draft: Path) -> None:
        draft.write_text('{ "temperature": 1 }')
        desk.world.configure('{ "temperature": 2 }')

    desk.editor.enqueue(edit)
    with pytest.raises(CommandError) as refusal:
        await desk.type("/settings edit")
    draft = desk.editor.opened[0]
    assert str(refusal.value) == (
        f"{desk.path} was changed by another program in the meantime and was not overwritten. "
        f"Your text is kept in {draft}."
    )
    assert desk.world.settings_text() == '{ "temperature": 2 }'
    assert desk.kept() == ['{ "temperature": 1 }']


async def test_without_an_editor_nothing_is_left_behind(desk: Desk) -> None:
    desk.editor.enqueue(EditorError("There is no editor."))
    with pytest.raises(EditorError, match=r"There is no editor\."):
        await desk.type("/settings edit")
    assert desk.kept() == []
