"""Files in context that another model does not take, or whose bytes are gone: a retry is refused, the user is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.attachments.files import attachments as stored
from chorus_cli.core.errors import AttachmentError
from chorus_cli.log.rules.attachments import Kind
from tests.attached_files import FILES, attachment
from tests.attachments.attached_talk import say

if TYPE_CHECKING:
    from pathlib import Path

    from tests.world import World

UNTAKEN = "openai/test takes no pictures, so it is sent only the name of photo.png."


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with the files."""
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_a_retry_by_a_model_that_takes_no_pictures_is_refused(world: World) -> None:
    await say(world, "what is @photo.png?")
    world.model.accepted = frozenset({Kind.TEXT})
    with pytest.raises(AttachmentError) as refused:
        _ = [event async for event in world.conversation.retry(world.current.target())]
    assert str(refused.value) == (
        "openai/test takes no pictures. Choose a model that does with /model NAME, or leave out photo.png; nothing "
        "was sent."
    )
    assert len(world.model.requests) == 1
    assert await world.seen() == ["what is @photo.png?", "ok"]


async def test_a_retry_of_a_question_without_files_is_answered_by_any_model(world: World) -> None:
    await say(world, "what is @photo.png?")
    await say(world, "and now?")
    world.model.accepted = frozenset({Kind.TEXT})
    _ = [event async for event in world.conversation.retry(world.current.target())]
    assert len(world.model.requests) == 3


async def test_a_picture_in_context_that_a_model_does_not_take_is_told_once(world: World) -> None:
    await say(world, "what is @photo.png?")
    assert await world.notices("and now?") == []
    world.model.accepted = frozenset({Kind.TEXT})
    assert await world.notices("and now?") == [UNTAKEN]
    assert await world.notices("and now?") == []


async def test_it_is_told_again_of_another_model(world: World) -> None:
    await say(world, "what is @photo.png?")
    world.model.accepted = frozenset({Kind.TEXT})
    await world.say("and now?")
    await world.told("/model openai/gpt-5.4-mini --once")
    assert await world.notices("and now?") == [UNTAKEN.replace("openai/test", "openai/gpt-5.4-mini")]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            ["photo.png"],
            "The copy that Chorus kept of photo.png is gone; the model is sent only its name.",
        ),
        (
            ["photo.png", "paper.pdf"],
            "The copies that Chorus kept of photo.png and paper.pdf are gone; the model is sent only their names.",
        ),
    ],
)
async def test_files_that_are_gone_are_told_once(world: World, names: list[str], sentence: str) -> None:
    await say(world, "what are @photo.png and @paper.pdf?")
    for name in names:
        stored.path_of(world.folder / "attachments", attachment(name).sha256).unlink()
    assert await world.notices("and now?") == [sentence]
    assert await world.notices("and now?") == []
