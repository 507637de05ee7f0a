"""A purge of one persona's words leaves the others alone, and nothing that began before it brings its texts back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import SessionError
from chorus_cli.imports.service import Exports
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from tests.attached_files import pdf
from tests.attachments.attached_talk import say
from tests.stores.service.canary_talk import CANARY, holding

if TYPE_CHECKING:
    from tests.world import World


async def purged(world: World, line: str) -> None:
    await (await world.asked_back(line)).confirmed()


async def test_a_search_limited_to_a_persona_leaves_the_sessions_of_others(world: World) -> None:
    await world.say(f"Keep {CANARY}")
    await world.told("/context save first")
    await world.carry_out("/persona new Frodo")
    await world.say(f"The ring of {CANARY} lies there")
    await world.told("/context save second")
    before = holding(world.folder / "personas" / "chorus")
    assert before
    assert len(holding(world.folder / "personas")) == 2
    await purged(world, f"/purge search {CANARY} --persona frodo")
    assert holding(world.folder / "personas" / "chorus") == before
    assert holding(world.folder / "personas" / "frodo") == []


async def test_an_old_export_brings_no_file_of_a_purged_message_back(world: World) -> None:
    note = world.folder / "note.txt"
    note.write_text(f"{CANARY} in a file", encoding="utf-8")
    await say(world, f"Look at this: @{note}")
    note.unlink()
    out = world.folder.with_name("out")
    exports = Exports(world.store, world.clock, world.folder / "attachments")
    await exports.export_all(out, "jsonl", None, lambda _sentence: None)
    assert holding(out)
    await purged(world, "/purge message 1")
    assert holding(world.folder) == []
    await world.told(f"/import {out}")
    assert holding(world.folder) == []


@pytest.mark.parametrize("is_idle", [False, True])
async def test_a_save_that_began_before_a_purge_writes_no_file(world: World, *, is_idle: bool) -> None:
    await world.say(f"Keep {CANARY}")
    hold = asyncio.Event()
    world.model.enqueue(hold, TextDelta("A talk."), ReplyEnd("stop"))
    saving = world.sessions
    save = saving.save_idle if is_idle else saving.save
    running = asyncio.create_task(save(world.current.target(), "late"))
    while len(world.model.requests) < 2:  # noqa: ASYNC110 - the summary has no other sign of having begun
        await asyncio.sleep(0.001)
    await purged(world, "/purge message 1")
    hold.set()
    if is_idle:
        assert await running is None
    else:
        with pytest.raises(SessionError, match="purged while the session was being saved"):
            await running
    assert holding(world.folder) == []


async def test_nothing_is_captured_from_a_message_that_was_purged_meanwhile(world: World) -> None:
    said = "Hello"
    await world.say(said)
    await purged(world, "/purge message 1")
    persona = world.current.target().persona
    code = f"```\n{CANARY}\nsecond\nthird\n```"
    assert (await world.services.memory.capture(persona, code, 1)).operation is None
    assert holding(world.folder) == []
    assert (await world.services.memory.capture(persona, code, 2)).operation is not None


@pytest.mark.parametrize(("line", "number"), [("", 2), (" --persona chorus", 1), (" --persona frodo", 0)])
async def test_pdfs_are_not_searched_and_counted(world: World, line: str, number: int) -> None:
    names = ("sent.pdf", "purged.pdf", "unsent.pdf", "sent.txt", "unsent.txt")
    sent, purged_too, unsent, note, other_note = (world.folder.with_name(name) for name in names)
    for path in (sent, purged_too, unsent):
        path.write_bytes(pdf(1) + path.name.encode())
    for path in (note, other_note):
        path.write_text(path.name, encoding="utf-8")
    await say(world, f"The word is {CANARY}: @{sent} @{purged_too}")
    await say(world, f"Look at this again: @{sent} @{note}")
    for path in (unsent, other_note):
        await world.told(f"/attach {path}")
    await world.carry_out("/persona new Frodo")
    await world.say(f"It is {CANARY}.")
    sentence = (
        f"{number} PDF{'s were' if number > 1 else ' was'} not searched; if one has the words, purge its message."
    )
    told = await world.told(f"/purge search {CANARY}{line} --dry-run")
    assert (sentence in told, "PDF" in told) == (number > 0, number > 0), told
    found = await world.told(f"/purge search zyx{line}")
    assert found.startswith("There is nothing of that; nothing was purged.")
    assert ("PDF" in found) is (number > 0)
    assert "PDF" not in await world.told("/purge message 1 --dry-run")


async def test_a_search_finds_a_message_by_the_text_of_a_file_that_was_sent_with_it(world: World) -> None:
    note = world.folder / "note.txt"
    note.write_text(f"{CANARY.upper()} in a file", encoding="utf-8")
    await say(world, f"Look at this: @{note}")
    note.unlink()
    assert holding(world.folder, CANARY.upper())
    await purged(world, f"/purge search {CANARY}")
    assert [row.id for row in await world.log()] == [2]
    assert holding(world.folder, CANARY.upper()) == []
