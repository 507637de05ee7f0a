"""Exports and sessions of other programs come into the log: with branches, files and times, once; then what is new."""

from __future__ import annotations

import base64
import json
import re
import shutil
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.attachments.files import attachments
from chorus_cli.context.service.report import context_report
from chorus_cli.imports.service import ImportReport, Wanted
from tests.imports.rules.exports import chatgpt, chatgpt_node
from tests.imports.rules.sessions import claude_line, text, tool_result, tool_use
from tests.imports.service.foreign_talk import previewed, took_in
from tests.world import World

LOOK = {
    "content_type": "multimodal_text",
    "parts": ["look", {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-ab1"}],
}
QUESTION = chatgpt_node("a", None, "user", LOOK)
FIRST = chatgpt_node("b", "a", "assistant", "A pot.")
SECOND = chatgpt_node("c", "a", "assistant", "A teapot.")
LATER = chatgpt_node("d", "b", "user", "Why a pot?")
EXPORT, GROWN = chatgpt(QUESTION, FIRST, SECOND), chatgpt(QUESTION, FIRST, SECOND, LATER)
OTHER = chatgpt(chatgpt_node("z", None, "user", "new"), conversation_id="talk-9")
TAVERN: list[dict[str, Any]] = [
    {"user_name": "Ann", "character_name": "Mara", "create_date": "2024-7-12@01h31m37s", "chat_metadata": {}},
    {"name": "Mara", "send_date": "2024-07-12T01:31:00Z", "mes": "Hi.", "swipes": ["Hi.", "Ho."], "swipe_id": 0},
    {"name": "Ann", "is_user": True, "send_date": "2024-07-12T01:32:00Z", "mes": "Hello."},
]


def zipped(folder: Path, conversations: list[Any], **files: bytes) -> Path:
    path = folder / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations-000.json", json.dumps(conversations))
        for name, data in files.items():
            archive.writestr(name.replace("__", "-") + ".png", data)
    return path


async def test_chatgpt_moves_in_with_branches_and_pictures(world: World) -> None:
    report = await took_in(world, zipped(world.folder, [EXPORT], file__ab1=b"PNG"))
    assert (report.added.conversations, report.added.messages, report.attachments) == (1, 3, 1)
    told = [(row.role.value, row.content, row.superseded) for row in await world.log()]
    assert told == [("user", "look", False), ("assistant", "A pot.", True), ("assistant", "A teapot.", False)]
    (picture,) = (await world.log())[0].attachments
    assert attachments.AttachmentFolder(world.folder / "attachments").read(picture.sha256) == b"PNG"
    assert (await world.threads.all())[-1].title == "Tea"


@pytest.mark.parametrize(("files", "found", "lost"), [({"file__ab1": b"PNG"}, 1, 0), ({}, 0, 1)])
async def test_a_dry_run_tells_of_attachments_as_the_import_does(
    world: World, files: dict[str, bytes], found: int, lost: int
) -> None:
    path = zipped(world.folder, [EXPORT], **files)
    for report in (await previewed(world, path), await took_in(world, path)):
        assert (report.attachments, report.skipped["attachment whose content is not in the export"]) == (found, lost)


async def test_an_older_export_brings_back_no_newer_import_that_was_undone(world: World) -> None:
    await took_in(world, zipped(world.folder, [EXPORT], file__ab1=b"PNG"))
    await took_in(world, zipped(world.folder, [GROWN, OTHER], file__ab1=b"PNG"))
    await world.carry_out("/context undo")
    report = await took_in(world, zipped(world.folder, [EXPORT], file__ab1=b"PNG"))
    assert (report.added.redone, report.added.messages) == (0, 0)
    assert "new" not in [entry.title for entry in await world.threads.all()]
    assert (await took_in(world, zipped(world.folder, [GROWN, OTHER], file__ab1=b"PNG"))).added.redone == 1


async def test_a_later_export_adds_what_is_new(world: World) -> None:
    await took_in(world, zipped(world.folder, [EXPORT], file__ab1=b"PNG"))
    assert (await took_in(world, zipped(world.folder, [EXPORT], file__ab1=b"PNG"))).added.messages == 0
    report = await took_in(world, zipped(world.folder, [GROWN, OTHER, {"mapping": {}}], file__ab1=b"PNG"))
    assert (report.added.conversations, report.added.messages) == (1, 2)
    assert dict(report.skipped) == {"conversation without messages": 1}
    assert [row.content for row in await world.log()] == ["look", "A pot.", "A teapot.", "Why a pot?", "new"]


async def test_a_message_that_silly_tavern_hid_is_called_hidden_unless_it_is_shown_again(world: World) -> None:
    path = world.folder / "Mara.jsonl"
    now = world.clock.now()

    async def told(*more: object, hidden: bool) -> list[str]:
        times = [f"{now - timedelta(minutes=number):%Y-%m-%dT%H:%M:%SZ}" for number in (3, 2, 1)]
        lines = [{**each, "send_date": time} for each, time in zip(TAVERN, times, strict=True)]
        path.write_text("\n".join(map(json.dumps, [*lines[:-1], {**lines[-1], "is_system": hidden}, *more])))
        await took_in(world, path)
        await world.carry_out("/thread mara")
        report = await context_report(world.context, world.current.target(), now)
        reasons = [each.reason for each in report.omissions]
        marks = [line for line in (await world.told("/thread history")).splitlines() if "Hello." in line]
        return [*reasons, *(re.findall(r"\[([a-z].*?)\]", marks[0]))]

    replaced, hidden = "replaced by another reply or greeting", "hidden in the program it came from"
    assert await told(hidden=True) == [replaced, hidden, hidden]
    later = [{**TAVERN[2], "mes": said, "send_date": f"{now:%Y-%m-%dT%H:%M:%SZ}"} for said in ("Well?", "Yes?")]
    assert await told(later[0], hidden=False) == [replaced]
    assert await told(*later, hidden=True) == [replaced, hidden, hidden]


async def test_a_message_shown_again_and_then_replaced_by_a_swipe_is_no_longer_called_hidden(world: World) -> None:
    path = world.folder / "Mara.jsonl"
    marks: list[list[str]] = []
    more: list[dict[str, Any]] = []
    for hidden, said in ((True, "Hello."), (False, "Hello."), (False, "Hey.")):
        last = {**TAVERN[-1], "swipes": ["Hello.", "Hey."], "swipe_id": ["Hello.", "Hey."].index(said)}
        path.write_text("\n".join(map(json.dumps, [*TAVERN[:-1], {**last, "is_system": hidden, "mes": said}, *more])))
        more.append({**TAVERN[1], "mes": f"{len(more)}"})
        await took_in(world, path)
        history = (await world.told(f"/thread history {(await world.threads.all())[-1].number}")).splitlines()
        marks.append([mark for line in history if "Hello." in line for mark in re.findall(r"\[([a-z].*?)\]", line)])
    assert marks == [["hidden in the program it came from"], [], ["replaced"]]


@pytest.mark.parametrize(
    ("persona", "goes_to"), [(None, "mara"), ("chorus", "chorus")], ids=["to the character", "to another"]
)
async def test_a_chat_with_a_character_goes_to_the_persona_of_that_name(
    world: World, persona: str | None, goes_to: str
) -> None:
    await world.persona_admin.create("Mara")
    path = world.folder / "2024.jsonl"
    path.write_text("\n".join(map(json.dumps, TAVERN)))
    imports, wanted = world.services.imports, Wanted([path], "chorus", persona)
    before, report, after = (ImportReport(is_dry=each) for each in (True, False, True))
    await imports.preview(wanted, before)
    await imports.take_in(wanted, report, lambda _line: None)
    await imports.preview(wanted, after)
    assert dict(before.personas) == dict(report.personas) == {goes_to: 1}
    assert (before.known, report.added.messages, after.known) == (0, 3, 3)


SAMPLES = Path(__file__).parents[1] / "files" / "samples"
PICTURE = {"type": "image", "source": {"media_type": "image/png", "data": base64.b64encode(b"\x89PNG...").decode()}}


async def took_in_lines(world: World, *lines: dict[str, Any]) -> ImportReport:
    path = world.folder / "s1.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return await took_in(world, path)


async def test_calls_pictures_and_times_come_into_the_log(world: World) -> None:
    question = claude_line("u1", None, "user", [text("What is it?"), PICTURE])
    call = claude_line("r1", "u1", "assistant", [text("I look."), tool_use("t1", path="cup.png")])
    result = claude_line("x1", "r1", "user", [tool_result("t1", "a cup")])
    await took_in_lines(world, question, call, result, claude_line("e1", "x1", "assistant", [text("A cup.")]))
    asked, words, use, answer, reply = await world.log()
    roles = [row.role.value for row in (asked, words, use, answer, reply)]
    assert roles == ["user", "assistant", "tool_use", "tool_result", "assistant"]
    (picture,) = asked.attachments
    assert (picture.name, picture.media_type, picture.size_bytes) == ("image.png", "image/png", 7)
    assert (answer.tool_call_id, answer.content, reply.model) == ("t1", "a cup", "claude")
    assert {message.turn_id for message in (words, use, answer, reply)} == {asked.id}
    assert asked.timestamp.microsecond == 123_000


async def test_a_folder_of_several_programs_is_one_import_and_the_same_one_adds_nothing(world: World) -> None:
    folder = world.folder / "sessions"
    shutil.copytree(SAMPLES, folder)
    first, second = [await took_in(world, folder) for _ in range(2)]
    assert dict(first.sources) == {"codex": 2, "gemini-cli": 1}
    assert (first.added.conversations, first.added.messages) == (3, 21)
    assert (second.added.conversations, second.added.messages, second.added.continued) == (0, 0, 0)
    assert len(await world.journal.entries(world.current.target())) == 1
    await world.carry_out("/context undo")
    assert not [entry for entry in await world.threads.all() if entry.title == "Please list something"]
