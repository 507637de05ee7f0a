"""Attachments wherever a message is shown: context, log, search, export, sessions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from chorus_cli.context.service.report import context_report
from chorus_cli.framework.replies import plain
from chorus_cli.log.rules.attachments import Kind
from chorus_cli.sessions.rules import format as session_format
from tests.attached_files import FILES, attachment
from tests.attachments.attached_talk import say

if TYPE_CHECKING:
    from pathlib import Path

    from tests.world import World

LINE = "[attachment: photo.png 68 bytes]"


@pytest.fixture(autouse=True)
async def asked(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask about a picture."""
    (tmp_path / "photo.png").write_bytes(FILES["photo.png"])
    monkeypatch.chdir(tmp_path)
    await say(world, "what is @photo.png?")


async def test_context_and_why_name_them_with_their_tokens(world: World) -> None:
    assert "attachments    255" in await world.told("/context")
    assert "attachments    255     photo.png 68 bytes" in await world.told("/why")


async def test_parts_with_attachments_add_up_to_the_whole(world: World) -> None:
    report = await context_report(world.context, world.current.target(), world.clock.now())
    assert sum(part.tokens for part in report.parts) == report.plan.meter.tokens
    shown = json.loads(json.dumps(report.as_json()))
    assert shown["messages"][1]["attachments"][0]["sha256"] == attachment("photo.png").sha256


async def test_why_says_that_only_the_name_is_sent(world: World) -> None:
    world.model.accepted = frozenset({Kind.TEXT})
    assert "photo.png 68 bytes (only its name)" in await world.told("/why")


async def test_search_finds_a_message_by_the_name_of_its_file(world: World) -> None:
    await world.say("nothing of the kind")
    found = await world.told("/search photo png bytes")
    assert LINE in found.replace("«", "").replace("»", "")


@pytest.mark.parametrize("file", ["talk.md", "talk.json"])
async def test_an_export_names_them(world: World, tmp_path: Path, file: str) -> None:
    await world.told(f"/export {tmp_path / file}")
    written = (tmp_path / file).read_text()
    assert (LINE if file.endswith(".md") else attachment("photo.png").sha256) in written


async def test_a_session_keeps_them_and_its_restore_brings_them_back(world: World) -> None:
    world.model.say("A talk about a picture.")
    await world.told("/context save")
    await world.told("/new")
    session = (await world.sessions.listing(world.current.slug)).rows[0].session_id
    await world.told(f"/context restore {session}")
    (question, _) = (await world.view()).messages
    assert question.attachments == (attachment("photo.png"),)


async def test_a_session_is_restored_where_the_log_has_none_of_it(world: World) -> None:
    world.model.say("A talk about a picture.")
    await world.told("/context save")
    (file,) = (world.personas.folder / "chorus" / "sessions").glob("*.json")
    session = session_format.read(file.read_text())
    assert session.messages[0].attachments == (attachment("photo.png"),)
    assert session_format.text_of(session) == file.read_text()


async def test_a_history_of_a_thread_shows_them(world: World) -> None:
    assert LINE in plain(await world.carry_out("/thread history 1"))
