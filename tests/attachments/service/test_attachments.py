"""Messages with files: stored once, sent again word for word, and refused before anything is sent."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import AttachmentError, MessageRefusedError
from chorus_cli.log.rules.attachments import Kind
from chorus_cli.models.rules.events import Notice
from tests.attached_files import FILES, attachment, pdf, png
from tests.attachments.attached_talk import say

if TYPE_CHECKING:
    from pathlib import Path

    from tests.world import World


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with the files."""
    folder = tmp_path / "files"
    folder.mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    monkeypatch.chdir(folder)
    return folder


def names(world: World) -> list[str]:
    return [each.name for each in world.services.attachments.waiting]


async def test_a_picture_is_stored_with_its_message_and_sent(world: World) -> None:
    await say(world, "what is @photo.png?")
    question = (await world.log())[0]
    assert question.attachments == (attachment("photo.png"),)
    assert question.content == "what is @photo.png?"
    sent = world.model.requests[0].messages[-1]
    assert (sent.content, sent.attachments) == ("what is @photo.png?", question.attachments)


async def test_the_files_of_a_message_are_named_once_it_is_stored(world: World) -> None:
    await world.told("/attach notes.txt")
    target = world.current.target()
    message = await world.services.attachments.prepared("what is @photo.png?", target.choice.model)
    events = [event async for event in world.conversation.answer(target, *message)]
    assert [event.text for event in events if isinstance(event, Notice)] == ["+ notes.txt 16 bytes, photo.png 68 bytes"]


async def test_the_same_picture_in_ten_turns_is_stored_once_and_the_prefix_holds(world: World) -> None:
    for number in range(10):
        await say(world, f"{number}: @photo.png")
    (kept,) = (path for path in (world.folder / "attachments").rglob("*") if path.is_file())
    assert (kept.name, kept.read_bytes()) == (attachment("photo.png").sha256, FILES["photo.png"])
    requests = [request.messages for request in world.model.requests]
    for before, after in pairwise(requests):
        assert after[: len(before)] == before


async def test_waiting_attachments_go_with_the_next_message_once(world: World) -> None:
    attachments = world.services.attachments
    attachments.wait([await attachments.of_file("photo.png"), await attachments.of_file("photo.png")])
    assert names(world) == ["photo.png"]
    await say(world, "look, and @notes.txt too")
    await say(world, "and again")
    assert [[each.name for each in row.attachments] for row in await world.log()] == [
        ["photo.png", "notes.txt"],
        [],
        [],
        [],
    ]
    assert names(world) == []


async def test_a_model_that_takes_no_pictures_is_told_of_first(world: World) -> None:
    attachments = world.services.attachments
    world.model.accepted = frozenset({Kind.TEXT})
    attachments.wait([await attachments.of_file("photo.png")])
    with pytest.raises(AttachmentError) as refused:
        await say(world, "what is it?")
    assert str(refused.value) == (
        "openai/test takes no pictures. Choose a model that does with /model NAME, or leave out photo.png; nothing "
        "was sent."
    )
    assert (names(world), await world.log(), world.model.requests) == (["photo.png"], [], [])


@pytest.mark.parametrize("name", ["broken.png", "large.png", "gone.png"])
async def test_a_file_of_no_use_is_told_of_and_nothing_is_sent(world: World, folder: Path, name: str) -> None:
    (folder / "broken.png").write_bytes(png()[:40])
    (folder / "large.png").write_bytes(png(filling=bytes(20_000_001)))
    if name == "gone.png":
        await say(world, f"see @{name}")
        assert (await world.log())[0].attachments == ()
        return
    with pytest.raises(AttachmentError, match=f"^{name} "):
        await say(world, f"see @{name}")
    assert (await world.log(), world.model.requests) == ([], [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("see @/nope.png", "There is no file /nope.png, so it is not attached."),
        ("see @a.png and @./b/c?", "There are no files a.png and ./b/c, so they are not attached."),
        (
            "@1.md @2.md @3.md @4.md @photo.png",
            "There are no files 1.md, 2.md, 3.md and 1 other, so they are not attached.",
        ),
        ("see @./folder/", "There is no file ./folder/, so it is not attached."),
        ("see @/dev/zero.", "There is no file /dev/zero, so it is not attached."),
        ("see @photo.png, @ada", ""),
    ],
)
async def test_a_path_of_no_file_is_told_of_and_the_message_is_sent(
    world: World, folder: Path, text: str, told: str
) -> None:
    (folder / "folder").mkdir()
    heard: list[str] = []
    with world.services.notifier.heard_by(heard.append, heard.append):
        await say(world, text)
    assert (heard, (await world.log())[0].content) == ([told] if told else [], text)


async def test_a_text_called_png_is_sent_as_text(world: World, folder: Path) -> None:
    (folder / "words.png").write_text("only words")
    await say(world, "read @words.png")
    assert [each.kind for each in (await world.log())[0].attachments] == [Kind.TEXT]


async def test_tokens_of_attachments_count(world: World) -> None:
    await say(world, "two words")
    await say(world, "two words @photo.png")
    plain, _, attached, _ = [row.token_count or 0 for row in await world.log()]
    assert attached - plain == 1 + 255


async def test_a_picture_that_another_model_does_not_take_is_named_to_it(world: World) -> None:
    await say(world, "what is @photo.png?")
    world.model.accepted = frozenset({Kind.TEXT})
    await world.say("and now?")
    first = world.model.requests[-1].messages[1]
    assert first.attachments == ()
    assert first.content == "what is @photo.png?\n[attachment: photo.png 68 bytes]"


async def test_an_undone_message_has_its_attachments_again(world: World) -> None:
    attachments = world.services.attachments
    for name in ("photo.png", "photo.jpg"):
        attachments.wait([await attachments.of_file(name)])
        await say(world, f"what is {name}?")
    await world.told("/undo")
    assert names(world) == ["photo.jpg"]
    await world.told("/undo")
    assert names(world) == ["photo.png"]
    await say(world, "what is it?")
    assert [each.name for each in (await world.log())[-2].attachments] == ["photo.png"]


async def test_a_retry_sends_the_attachments_again(world: World) -> None:
    await say(world, "what is @photo.png?")
    _ = [event async for event in world.conversation.retry(world.current.target())]
    first, second = world.model.requests
    assert second.messages == first.messages


async def test_a_document_that_does_not_fit_is_refused_before_anything_is_stored(world: World, folder: Path) -> None:
    (folder / "long.pdf").write_bytes(pdf(10_000))
    with pytest.raises(MessageRefusedError, match="The message is too large for openai/test"):
        await say(world, "read @long.pdf")
    assert await world.log() == []
