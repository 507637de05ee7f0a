"""``/attach`` and ``/paste``, and attachments in ``/context edit``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import StorageError
from chorus_cli.framework.command_line import completions
from chorus_cli.log.rules.attachments import Kind
from tests.attached_files import FILES, attachment, pdf
from tests.attachments.attached_talk import say

if TYPE_CHECKING:
    from pathlib import Path

    from tests.world import World


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with files, one of which has blanks in its name."""
    for name, data in {**FILES, "my paper.pdf": pdf()}.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_attached_files_wait_are_listed_and_taken_back(world: World) -> None:
    assert await world.told("/attach photo.png") == (
        "photo.png 68 bytes goes with your next message (~255 tokens). /attach clear takes it back."
    )
    assert "paper.pdf 247 bytes" in await world.told("/attach my paper.pdf")
    assert await world.told("/attach") == (
        "With your next message go:\n"
        "File          Size       Tokens\n"
        "photo.png     68 bytes   ~255\n"
        "my paper.pdf  247 bytes  ~6,000"
    )
    assert await world.told("/attach clear") == "photo.png and my paper.pdf no longer go with your next message."
    assert (await world.told("/attach")).startswith("Nothing is attached.")
    assert await world.told("/attach clear") == "Nothing was attached."


async def test_nothing_is_sent_by_attaching(world: World) -> None:
    await world.told("/attach photo.png")
    assert (await world.log(), world.model.requests) == ([], [])


async def test_a_picture_of_the_clipboard_goes_with_the_next_message(world: World) -> None:
    assert (await world.told("/paste")).startswith("clipboard.png 68 bytes goes with your next message")
    await say(world, "what is it?")
    assert [each.name for each in (await world.log())[0].attachments] == ["clipboard.png"]


async def test_it_waits_again_if_the_message_in_the_background_cannot_be_sent(world: World) -> None:
    await world.told("/attach photo.png")
    refused = "CREATE TEMP TRIGGER unwilling BEFORE INSERT ON threads BEGIN SELECT RAISE(ABORT, 'not today'); END"
    await world.store.write(lambda connection: connection.execute(refused) and None)
    with pytest.raises(StorageError, match="not today"):
        await world.carry_out("/bg look at it")
    assert [each.name for each in world.services.attachments.waiting] == ["photo.png"]


@pytest.mark.parametrize("typed", ["'{}/my paper.pdf'", "{}/my\\ paper.pdf", "file://{}/my%20paper.pdf"])
async def test_a_path_may_be_written_as_terminals_paste_it(world: World, folder: Path, typed: str) -> None:
    assert (await world.told(f"/attach {typed.format(folder)}")).startswith("my paper.pdf 247 bytes goes")


async def test_backslashes_may_stand_before_the_blanks_of_a_name(world: World) -> None:
    assert (await world.told("/attach my\\ paper.pdf")).startswith("my paper.pdf 247 bytes goes")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("/attach gone.png", "gone.png does not exist."),
        ("/attach .", ". is not a regular file."),
    ],
)
async def test_a_file_that_cannot_be_read_is_told(world: World, line: str, sentence: str) -> None:
    assert await world.told(line) == sentence


async def test_a_model_that_takes_no_pdf_says_so_at_once(world: World) -> None:
    world.model.accepted = frozenset({Kind.TEXT, Kind.PICTURE})
    assert await world.told("/attach paper.pdf") == (
        "openai/test takes no PDF files. Choose a model that does with /model NAME, or leave out paper.pdf; nothing "
        "was sent."
    )
    assert world.services.attachments.waiting == ()


async def test_paths_are_completed(world: World) -> None:
    found = completions(world.services.registry, world.services, "/attach pho")
    assert [each.text for each in found.candidates] == ["photo.jpg", "photo.png", "photo.webp"]


async def test_an_attachment_can_be_taken_out_of_the_context_in_the_editor(world: World) -> None:
    await say(world, "what is @photo.png?")
    world.editor.enqueue(
        lambda path: path.write_text(path.read_text().replace("\n[attachment: photo.png 68 bytes]", ""))
    )
    await world.told("/context edit")
    (question, _) = (await world.view()).messages
    assert (question.content, question.attachments) == ("what is @photo.png?", ())
    await world.told("/undo")
    assert (await world.view()).messages[0].attachments == (attachment("photo.png"),)


async def test_an_attachment_can_be_moved_to_another_message_in_the_editor(world: World) -> None:
    await say(world, "what is @photo.png?")
    await say(world, "and this?")
    line = "\n[attachment: photo.png 68 bytes]"
    world.editor.enqueue(
        lambda path: path.write_text(path.read_text().replace(line, "").replace("and this?", f"and this?{line}"))
    )
    await world.told("/context edit")
    attached = {row.content: len(row.attachments) for row in (await world.view()).messages}
    assert attached == {"what is @photo.png?": 0, "ok": 0, "and this?": 1}
    await say(world, "go on")
    assert [len(message.attachments) for message in world.model.requests[-1].messages] == [0, 0, 0, 1, 0, 0]
