"""The answers of ``/context edit``: the changes, and a question about a line that may be more than text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import CommandError
from chorus_cli.framework.replies import Question, plain
from tests.editing.commands.edited_texts import LINE, changing, replacing

if TYPE_CHECKING:
    from tests.world import World


async def test_the_answer_counts_what_was_changed_by_its_kind(turns: World) -> None:
    def change(text: str) -> str:
        head, context = text.split(LINE + "\n")
        a1, b1, a2, _b2, *rest, end = context.split("\n\n")
        new = "[2026-02-12 14:00:00] Human: New"
        return head + LINE + "\n" + "\n\n".join([b1, a1, new, f"{a2}!", *rest, end])

    turns.editor.enqueue(changing(change))
    told = await turns.told("/context edit")
    assert told == "Context edited: 6 messages (1 reworded, 1 left out, 1 added, 1 moved). /undo reverts."


# The header of the last message but one loses its bracket, and would join the one above.
SLIP = replacing("[2026-02-12 14:32:00] Human: A3", "2026-02-12 14:32:00] Human: A3")


async def test_a_line_that_looks_like_a_header_and_is_none_is_asked_about(turns: World) -> None:
    turns.editor.enqueue(SLIP)
    question = await turns.asked_back("/context edit")
    (number,) = [i for i, line in enumerate(turns.editor.opened[0].read_text().split("\n"), 1) if line[:4] == "2026"]
    assert question.text.startswith(f"Line {number}: this looks like the beginning of a message, but is none; ")
    assert question.text.endswith("\nEdit again?")
    assert list(question.choices) == ["y", "n", "t", "d"]
    assert await turns.seen() == ["A1", "B1", "A2", "B2", "A3", "B3"]


async def test_it_is_edited_again_kept_as_text_or_discarded(turns: World) -> None:
    edited, kept, discarded = [await asked(turns) for _ in range(3)]
    assert discarded.discarded is not None
    assert plain(await discarded.discarded()) == "The context is unchanged; your edit was discarded."
    turns.editor.enqueue(replacing("2026-02-12 14:32:00] Human: A3", "[2026-02-12 14:32:00] Human: A three"))
    assert plain(await edited.confirmed()) == "Context edited: 6 messages (1 reworded). /undo reverts."
    await turns.told("/undo")
    assert kept.kept_as_text is not None
    with pytest.raises(CommandError, match="changed in the meantime"):
        await kept.kept_as_text()
    again = await asked(turns)
    assert again.kept_as_text is not None
    assert plain(await again.kept_as_text()) == "Context edited: 5 messages (1 reworded, 1 left out). /undo reverts."
    assert await turns.seen() == ["A1", "B1", "A2", "B2\n\n2026-02-12 14:32:00] Human: A3", "B3"]
    turns.editor.enqueue(None)
    assert await turns.told("/context edit") == "Nothing was changed."
    assert "\n\\2026-02-12 14:32:00] Human: A3\n" in turns.editor.shown[-1]


async def asked(turns: World) -> Question:
    turns.editor.enqueue(SLIP)
    return await turns.asked_back("/context edit")


async def test_after_another_visit_to_the_editor_such_a_line_is_asked_about_anew(turns: World) -> None:
    question = await asked(turns)
    turns.editor.enqueue(None)
    once_more = await question.confirmed()
    assert isinstance(once_more, Question)
    assert "t" in once_more.choices
