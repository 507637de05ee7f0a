"""``/editor``: a message from the editor, which is never lost."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import CommandError, EditorError
from chorus_cli.framework.command_line import resolve
from chorus_cli.framework.replies import Refill
from chorus_cli.threads.service.running_turn import RunningTurn
from tests.threads.service.slow_replies import unsent
from tests.world import World


async def begun(world: World) -> RunningTurn:
    """Run /editor and return the turn that it begins."""
    answer = await resolve(world.services.registry, "/editor", world.clock.now()).run(world.services)
    assert isinstance(answer, RunningTurn)
    return answer


def drafts(world: World) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in (world.folder / "drafts").glob("draft-*")]


async def test_what_is_saved_is_sent_without_the_line_ends_around_it_and_the_draft_is_gone(world: World) -> None:
    world.editor.enqueue("\n  /new is no command here\n\nsecond paragraph \n")
    assert len([event async for event in (await begun(world)).followed()]) > 0
    assert [message.content for message in await world.log()] == ["  /new is no command here\n\nsecond paragraph", "ok"]
    assert (drafts(world), await unsent(world)) == ([], [])
    assert world.editor.opened[0].suffix == ".md"


@pytest.mark.parametrize("saved", [None, "", " \n\n"])
async def test_an_empty_text_is_not_sent(world: World, saved: str | None) -> None:
    world.editor.enqueue(saved)
    assert await world.told("/editor") == "Nothing was sent: the message is empty."
    assert await world.log() == []
    assert drafts(world) == []


async def test_an_editor_that_ends_with_an_error_brings_the_text_to_the_prompt(world: World) -> None:
    world.editor.enqueue("half a thought\n", complaint="The editor ended with code 1.")
    answer = await world.carry_out("/editor")
    assert isinstance(answer, Refill)
    assert answer.typed == "half a thought"
    assert answer.text.startswith("The editor ended with code 1. Nothing was sent")
    assert drafts(world) == ["half a thought\n"]
    assert await world.log() == []


async def test_an_editor_that_returned_at_once_keeps_the_draft_for_its_window(world: World) -> None:
    world.editor.enqueue(None, seconds=0.1)
    assert f"The draft stays in {world.folder / 'drafts'}" in await world.told("/editor")
    assert drafts(world) == [""]


async def test_a_message_that_is_refused_is_kept(world: World) -> None:
    world.editor.enqueue("word " * 20_000)
    with pytest.raises(CommandError, match=r"too large.*Your text is kept; /rescue shows it\."):
        _ = [event async for event in (await begun(world)).followed()]
    assert (drafts(world), await unsent(world)) == ([], [("word " * 20_000).rstrip()])
    assert await world.log() == []


async def test_without_an_editor_there_is_a_sentence(world: World) -> None:
    world.editor.enqueue(EditorError("No editor was found."))
    assert await world.told("/editor") == "No editor was found."
