"""Messages with files: attached by ``/attach``, ``/paste`` and an at sign, stored once, and shown with the message."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from chorus_cli.attachments.files import attachments as stored
from chorus_cli.context.service.report import context_report
from chorus_cli.core.errors import AttachmentError, MessageRefusedError, StorageError
from chorus_cli.framework.command_line import completions
from chorus_cli.log.rules.attachments import Kind
from chorus_cli.models.rules.events import Notice
from chorus_cli.sessions.rules import format as session_format
from tests.attached_files import FILES, attachment, pdf, png
from tests.attachments.attached_talk import say
from tests.storage.database import refuse
from tests.threads.service.slow_replies import sent, slow_reply
from tests.world import World


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with files, one of which has blanks in its name."""
    for name, data in {**FILES, "my paper.pdf": pdf()}.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(world: World) -> list[str]:
    return [each.name for each in world.services.attachments.waiting]


async def test_attached_files_wait_are_listed_and_taken_back(world: World) -> None:
    assert await world.told("/attach photo.png") == (
        "Attached photo.png (68 bytes, ~255 tokens) to your next message. /attach clear removes it."
    )
    assert "paper.pdf (247 bytes" in await world.told("/attach my paper.pdf")
    assert await world.told("/attach") == (
        "Attached to your next message:\n"
        "File          Size       Tokens\n"
        "photo.png     68 bytes   ~255\n"
        "my paper.pdf  247 bytes  ~6,000"
    )
    assert await world.told("/attach clear") == "Removed photo.png and my paper.pdf from your next message."
    assert (await world.told("/attach")).startswith("Nothing is attached.")
    assert await world.told("/attach clear") == "There was no file to remove."
    assert (await world.log(), world.model.requests) == ([], [])


async def test_bytes_that_wait_already_are_told_with_their_name(world: World, folder: Path) -> None:
    (folder / "copy.png").write_bytes(FILES["photo.png"])
    await world.told("/attach photo.png")
    assert await world.told("/attach copy.png") == "copy.png is attached already, as photo.png."
    assert names(world) == ["photo.png"]


async def test_a_picture_of_the_clipboard_goes_with_the_next_message(world: World) -> None:
    assert (await world.told("/paste")).startswith("Attached clipboard.png (68 bytes")
    await say(world, "what is it?")
    assert [each.name for each in (await world.log())[0].attachments] == ["clipboard.png"]


async def test_it_waits_again_if_the_message_in_the_background_cannot_be_sent(world: World) -> None:
    await world.told("/attach photo.png")
    await world.store.write(refuse, "INSERT ON threads")
    with pytest.raises(StorageError, match="not today"):
        await world.carry_out("/bg look at it")
    assert names(world) == ["photo.png"]


async def test_it_waits_again_if_the_message_from_the_editor_cannot_be_kept(world: World) -> None:
    slow_reply(world, "half")
    await sent(world, world.current.target(), "first")
    await world.told("/attach photo.png")
    await world.store.write(refuse, "INSERT ON outbox")
    world.editor.enqueue("look at it")
    assert "Your text is at the prompt" in await world.told("/editor")
    assert names(world) == ["photo.png"]
    await world.services.replies.close()


@pytest.mark.parametrize(
    "typed", ["'{}/my paper.pdf'", "{}/my\\ paper.pdf", "file://{}/my%20paper.pdf", "my\\ paper.pdf"]
)
async def test_a_path_may_be_written_as_terminals_paste_it(world: World, folder: Path, typed: str) -> None:
    assert (await world.told(f"/attach {typed.format(folder)}")).startswith("Attached my paper.pdf (247 bytes, ")


async def test_a_file_that_cannot_be_read_is_told(world: World) -> None:
    assert await world.told("/attach gone.png") == "gone.png cannot be read: No such file or directory."
    assert await world.told("/attach .") == ". cannot be read: Is a directory."


async def test_a_model_that_takes_no_pdf_says_so_at_once(world: World) -> None:
    world.model.accepted = frozenset({Kind.TEXT, Kind.PICTURE})
    told = REFUSED.replace("pictures", "PDF files").replace("photo.png", "paper.pdf")
    assert await world.told("/attach paper.pdf") == told
    assert world.services.attachments.waiting == ()


async def test_paths_are_completed(world: World) -> None:
    found = completions(world.services.registry, world.services, "/attach pho")
    assert [each.text for each in found.candidates] == ["photo.jpg", "photo.png", "photo.webp"]


async def test_an_attachment_can_be_moved_to_another_message_in_the_editor(world: World) -> None:
    await say(world, "what is @photo.png?")
    await say(world, "and this?")
    world.editor.enqueue(
        lambda path: path.write_text(
            path.read_text().replace(f"\n{LINE}", "").replace("and this?", f"and this?\n{LINE}")
        )
    )
    await world.told("/context edit")
    attached = {row.content: len(row.attachments) for row in (await world.view()).messages}
    assert attached == {"what is @photo.png?": 0, "ok": 0, "and this?": 1}
    await say(world, "go on")
    assert [len(message.attachments) for message in world.model.requests[-1].messages] == [0, 0, 0, 1, 0, 0]


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
    for _ in range(2):
        await world.told("/attach photo.png")
    assert names(world) == ["photo.png"]
    await say(world, "look, and @notes.txt too")
    await say(world, "and again")
    attached = [[each.name for each in row.attachments] for row in await world.log()]
    assert attached == [["photo.png", "notes.txt"], [], [], []]
    assert names(world) == []


async def test_a_model_that_takes_no_pictures_is_told_of_first(world: World) -> None:
    await world.told("/attach photo.png")
    world.model.accepted = frozenset({Kind.TEXT})
    with pytest.raises(AttachmentError) as refused:
        await say(world, "what is it?")
    assert str(refused.value) == REFUSED
    assert (names(world), await world.log(), world.model.requests) == (["photo.png"], [], [])


@pytest.mark.parametrize("name", ["broken.png", "large.png"])
async def test_a_file_of_no_use_is_told_of_and_nothing_is_sent(world: World, folder: Path, name: str) -> None:
    (folder / "broken.png").write_bytes(png()[:40])
    (folder / "large.png").write_bytes(png(filling=bytes(20_000_001)))
    with pytest.raises(AttachmentError, match=f"^{name} "):
        await say(world, f"see @{name}")
    assert (await world.log(), world.model.requests) == ([], [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("see @/nope.png, @photo.png and @./b/c?", "/nope.png and ./b/c"),
        ("see @/dev/zero.", "/dev/zero"),
        ("see @photo.png, @ada", ""),
    ],
)
async def test_a_path_of_no_file_is_told_of_and_the_message_is_sent(world: World, text: str, told: str) -> None:
    heard: list[str] = []
    with world.services.notifier.heard_by(heard.append, heard.append):
        await say(world, text)
    told = f"Not attached, because there is no such file: {told}. A folder cannot be attached." if told else ""
    assert (heard, (await world.log())[0].content) == ([told] if told else [], text)


async def test_tokens_of_attachments_count(world: World) -> None:
    await say(world, "two words")
    await say(world, "two words @photo.png")
    plain, _, attached, _ = [row.token_count or 0 for row in await world.log()]
    assert attached - plain == 1 + 255


async def test_an_undone_message_has_its_attachments_again(world: World) -> None:
    for name in ("photo.png", "photo.jpg"):
        await world.told(f"/attach {name}")
        await say(world, f"what is {name}?")
    await world.told("/undo")
    assert names(world) == ["photo.jpg"]
    await world.told("/undo")
    assert names(world) == ["photo.png"]
    await world.told("/redo")
    assert names(world) == []
    await world.told("/undo")
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


LINE = "[attachment: photo.png 68 bytes]"
REFUSED = (
    "openai/test takes no pictures. Choose another model with /model NAME, or leave out photo.png; nothing was sent."
)
UNTAKEN = "openai/test takes no pictures, so Chorus sends it only the name of photo.png."


async def test_a_retry_by_a_model_that_takes_no_pictures_is_refused(world: World) -> None:
    await say(world, "what is @photo.png?")
    world.model.accepted = frozenset({Kind.TEXT})
    with pytest.raises(AttachmentError) as refused:
        _ = [event async for event in world.conversation.retry(world.current.target())]
    assert str(refused.value) == REFUSED
    assert len(world.model.requests) == 1
    assert await world.seen() == ["what is @photo.png?", "ok"]


async def test_a_retry_of_a_question_without_files_is_answered_by_any_model(world: World) -> None:
    await say(world, "what is @photo.png?")
    await say(world, "and now?")
    world.model.accepted = frozenset({Kind.TEXT})
    _ = [event async for event in world.conversation.retry(world.current.target())]
    assert len(world.model.requests) == 3


async def test_a_picture_in_context_that_a_model_does_not_take_is_told_once_of_each_model(world: World) -> None:
    await say(world, "what is @photo.png?")
    assert await world.notices("and now?") == []
    world.model.accepted = frozenset({Kind.TEXT})
    assert await world.notices("and now?") == [UNTAKEN]
    first = world.model.requests[-1].messages[1]
    assert (first.content, first.attachments) == (f"what is @photo.png?\n{LINE}", ())
    assert await world.notices("and now?") == []
    await world.told("/model openai/gpt-5.4-mini --once")
    assert await world.notices("and now?") == [UNTAKEN.replace("openai/test", "openai/gpt-5.4-mini")]


async def test_files_that_are_gone_are_told_once(world: World) -> None:
    names = ["photo.png", "paper.pdf"]
    await say(world, "what are @photo.png and @paper.pdf?")
    for name in names:
        stored.path_of(world.folder / "attachments", attachment(name).sha256).unlink()
    advice = "chorus doctor looks for it in the backups."
    if world.store.server:
        advice = "Attach it again."
        await world.store.write(lambda connection: connection.execute("DELETE FROM attachment_files"))
    lost = f"Chorus has lost photo.png and paper.pdf, so the model gets only the name. {advice}"
    assert await world.notices("and now?") == [lost]
    assert await world.notices("and now?") == []


@pytest.fixture
async def asked(world: World) -> World:
    await say(world, "what is @photo.png?")
    return world


async def test_context_why_and_history_name_them(asked: World) -> None:
    assert "attachments    255" in await asked.told("/context")
    assert LINE in await asked.told("/thread history 1")
    assert re.search(r"attachments +255 .* photo\.png 68 bytes", await asked.told("/why"))
    asked.model.accepted = frozenset({Kind.TEXT})
    assert "photo.png 68 bytes (only its name)" in await asked.told("/why")


async def test_parts_with_attachments_add_up_to_the_whole(asked: World) -> None:
    report = await context_report(asked.context, asked.current.target(), asked.clock.now())
    assert sum(part.tokens for part in report.parts) == report.plan.meter.tokens
    shown = json.loads(json.dumps(report.as_json()))
    assert shown["messages"][1]["attachments"][0]["sha256"] == attachment("photo.png").sha256


async def test_search_finds_a_message_by_the_name_of_its_file(asked: World) -> None:
    await asked.say("nothing of the kind")
    found = await asked.told("/search photo png bytes")
    assert LINE in found.replace("«", "").replace("»", "")


@pytest.mark.parametrize("file", ["talk.md", "talk.json"])
async def test_an_export_names_them(asked: World, tmp_path: Path, file: str) -> None:
    await asked.told(f"/export {tmp_path / file}")
    written = (tmp_path / file).read_text()
    assert (LINE if file.endswith(".md") else attachment("photo.png").sha256) in written


async def test_a_session_keeps_them_and_its_restore_brings_them_back(asked: World) -> None:
    asked.model.say("A talk about a picture.")
    await asked.told("/context save")
    (file,) = (asked.personas.folder / "chorus" / "sessions").glob("*.json")
    kept = session_format.read(file.read_text())
    assert kept.messages[0].attachments == (attachment("photo.png"),)
    assert session_format.text_of(kept) == file.read_text()
    await asked.told("/new")
    session = (await asked.sessions.listing(asked.current.slug)).rows[0].session_id
    await asked.told(f"/context restore {session}")
    (question, _) = (await asked.view()).messages
    assert question.attachments == (attachment("photo.png"),)
