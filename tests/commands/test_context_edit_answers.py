"""What ``/context edit`` answers: what was changed, and a question where a line may be more than text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.commands.edited_texts import LINE, changing

if TYPE_CHECKING:
    from tests.services.world import World


async def test_the_answer_counts_what_was_changed_by_its_kind(talk: World) -> None:
    def change(text: str) -> str:
        head, context = text.split(LINE + "\n")
        a1, b1, a2, _b2, *rest, end = context.split("\n\n")
        new = "[2026-02-12 14:00:00] Human: New"
        return head + LINE + "\n" + "\n\n".join([b1, a1, new, f"{a2}!", *rest, end])

    talk.editor.enqueue(changing(change))
    told = await talk.told("/context edit")
    assert told == "Context edited: 6 messages (1 reworded, 1 left out, 1 added, 1 moved). /undo reverts."
