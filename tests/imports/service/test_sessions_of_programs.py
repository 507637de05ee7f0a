"""Sessions of other programs for the terminal, from their files into the log."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chorus_cli.imports.service import ImportReport, Wanted
from chorus_cli.log.rules.messages import Role
from tests.imports.rules.sessions import claude_line, text, tool_result, tool_use
from tests.imports.service.foreign_talk import imports

if TYPE_CHECKING:
    from tests.world import World

SAMPLES = Path(__file__).parents[1] / "files" / "samples"
START = [claude_line("u1", None, "user", "Start"), claude_line("a1", "u1", "assistant", [text("Ready")])]
FIRST = [claude_line("b1", "a1", "user", "First try"), claude_line("b2", "b1", "assistant", [text("First answer")])]
SECOND = [claude_line("c1", "a1", "user", "Second try"), claude_line("c2", "c1", "assistant", [text("Second answer")])]
PICTURE = {"type": "image", "source": {"media_type": "image/png", "data": base64.b64encode(b"\x89PNG...").decode()}}


async def taken_in(world: World, *lines: dict[str, Any]) -> ImportReport:
    path = world.folder / "s1.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return await reported(world, path)


async def reported(world: World, path: Path) -> ImportReport:
    report = ImportReport(is_dry=False)
    await imports(world).take_in(Wanted([path], "chorus"), report, lambda _line: None)
    return report


async def test_a_rewind_after_the_first_import_moves_the_live_branch(world: World) -> None:
    await taken_in(world, *START, *FIRST)
    report = await taken_in(world, *START, *FIRST, *SECOND)
    assert (report.added.continued, report.added.messages) == (1, 2)
    assert [message.content for message in await world.log()] == [
        "Start",
        "Ready",
        "First try",
        "First answer",
        "Second try",
        "Second answer",
    ]
    assert report.off == 2


async def test_calls_pictures_and_times_come_into_the_log(world: World) -> None:
    question = claude_line("u1", None, "user", [text("What is it?"), PICTURE])
    call = claude_line("r1", "u1", "assistant", [text("I look."), tool_use("t1", path="cup.png")])
    result = claude_line("x1", "r1", "user", [tool_result("t1", "a cup")])
    await taken_in(world, question, call, result, claude_line("e1", "x1", "assistant", [text("A cup.")]))
    asked, words, use, answer, reply = await world.log()
    assert [asked.role, words.role, use.role, answer.role, reply.role] == [
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL_USE,
        Role.TOOL_RESULT,
        Role.ASSISTANT,
    ]
    assert [(each.name, each.media_type, each.size_bytes) for each in asked.attachments] == [
        ("image.png", "image/png", 7)
    ]
    assert (answer.tool_call_id, answer.content, reply.model) == ("t1", "a cup", "claude")
    assert {message.turn_id for message in (words, use, answer, reply)} == {asked.id}
    assert asked.timestamp.microsecond == 123_000


async def test_a_folder_of_several_programs_is_one_import_and_the_same_one_adds_nothing(world: World) -> None:
    folder = world.folder / "sessions"
    shutil.copytree(SAMPLES, folder)
    first, second = [await reported(world, folder) for _ in range(2)]
    assert dict(first.sources) == {"codex": 2, "gemini-cli": 1}
    assert (first.added.conversations, first.added.messages) == (3, 21)
    assert (second.added.conversations, second.added.messages, second.added.continued) == (0, 0, 0)
    assert len(await world.journal.entries(world.current.target())) == 1
    await world.carry_out("/context undo")
    assert not [entry for entry in await world.threads.all() if entry.title == "Please list something"]
