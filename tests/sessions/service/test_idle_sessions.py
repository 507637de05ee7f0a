"""Sessions that are saved by themselves, after a silence."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from chorus_cli.core.errors import ModelError
from chorus_cli.sessions.rules.format import FAILED
from tests.sessions.service.saved_sessions import file_of, folder, restore, save, save_idle, sql, unsaved
from tests.world import World

if TYPE_CHECKING:
    from chorus_cli.core.json.jsonc import JsonValue


async def test_nothing_said_since_the_last_save_is_nothing_to_save(talked: World) -> None:
    assert await unsaved(talked) == ["Hello", "Hi there", "How are you?", "ok"]
    await save(talked)
    assert await unsaved(talked) == []
    assert await save_idle(talked) is None
    await talked.journal.clear(talked.current.target())
    await restore(talked)
    assert await save_idle(talked) is None
    await talked.say("More")
    assert await unsaved(talked) == ["More", "Idle."]
    assert await save_idle(talked) is not None


async def test_an_empty_context_is_not_saved_by_itself(world: World) -> None:
    assert await save_idle(world) is None
    assert not folder(world).exists()


async def test_the_last_idle_session_is_extended_and_its_summary_made_from_the_old_one_and_the_new_messages(
    talked: World,
) -> None:
    first = await save_idle(talked, "They met.", "Hello")
    assert first is not None
    assert (first.row.session_id, first.row.trigger) == ("2026-02-12_hello", "idle")
    await talked.say("What now?")
    second = await save_idle(talked, "They met and went on.", "What now?")
    assert second is not None
    assert (second.row.session_id, second.row.description, second.row.message_count) == ("2026-02-12_hello", "Hello", 6)
    assert second.row.summary == "They met and went on."
    asked = talked.model.requests[-1].messages[1].content
    assert "They met.\n" in asked
    assert "Human: What now?" in asked
    assert "Human: Hello" not in asked
    assert len((await talked.sessions.listing("chorus")).rows) == 1


async def test_what_has_left_the_context_by_age_stays_in_the_session_and_what_was_taken_back_does_not(
    talked: World,
) -> None:
    await save_idle(talked)
    talked.clock.advance(timedelta(hours=5))
    await talked.say("Later")
    await save_idle(talked)
    talked.clock.advance(timedelta(hours=4))
    await talked.say("Last")
    assert "Last" in await talked.told("/undo")
    await talked.say("Instead")
    saved = await save_idle(talked)
    assert saved is not None
    messages = cast("list[dict[str, JsonValue]]", file_of(talked, saved.row.session_id)["messages"])
    said = [each["content"] for each in messages if each["role"] == "user"]
    assert said == ["Hello", "How are you?", "Later", "Instead"]
    assert saved.row.window_start is not None
    assert f"{saved.row.window_start:%H:%M}" == "06:40"


async def test_a_new_conversation_begins_a_new_idle_session(talked: World) -> None:
    first = await save_idle(talked)
    await talked.journal.clear(talked.current.target())
    await talked.say("Afresh")
    second = await save_idle(talked)
    assert first is not None
    assert second is not None
    assert second.row.session_id != first.row.session_id
    assert len((await talked.sessions.listing("chorus")).rows) == 2


async def test_a_purge_of_a_message_in_an_idle_session_begins_a_new_one(talked: World) -> None:
    await save_idle(talked)
    await (await talked.asked_back("/purge message 1")).confirmed()
    assert await unsaved(talked) == []
    await talked.say("Afresh")
    saved = await save_idle(talked, "All of it.")
    assert saved is not None
    assert (saved.row.session_id, saved.row.message_count) == ("2026-02-12_silence-2", 5)
    assert (await talked.sessions.listing("chorus")).rows[-1].message_count == 3


async def test_a_damaged_idle_session_is_left_alone_and_a_new_one_made(talked: World) -> None:
    await save_idle(talked)
    path = folder(talked) / "2026-02-12_silence.json"
    path.write_text("{")
    await talked.say("More")
    saved = await save_idle(talked)
    assert saved is not None
    assert saved.row.session_id == "2026-02-12_silence-2"
    assert path.read_text() == "{"


async def test_what_a_failing_summary_missed_is_in_the_next_one(talked: World) -> None:
    await save_idle(talked, "They met.")
    await talked.say("Second")
    talked.model.enqueue(ModelError("no"))
    assert await talked.sessions.save_idle(talked.current.target(), "") is not None
    await talked.say("Third")
    await save_idle(talked, "All of it.")
    asked = talked.model.requests[-1].messages[1].content
    assert all(text in asked for text in ("They met.", "Human: Second", "Human: Third"))
    assert "Human: Hello" not in asked


async def test_of_two_windows_that_fall_silent_at_once_one_saves(talked: World) -> None:
    talked.model.say("Summary.")
    talked.model.say("Summary.")
    saving = talked.sessions
    both = await asyncio.gather(*(saving.save_idle(talked.current.target(), "silence") for _ in range(2)))
    assert sorted(saved is None for saved in both) == [False, True]
    assert len((await talked.sessions.listing("chorus")).rows) == 1


async def test_a_failing_summary_leaves_the_old_one_and_a_failed_one_is_made_anew_from_everything(
    talked: World,
) -> None:
    await save_idle(talked, "They met.")
    await talked.say("More")
    talked.model.enqueue(ModelError("no"))
    saved = await talked.sessions.save_idle(talked.current.target(), "")
    assert saved is not None
    assert (saved.row.summary, saved.problem) == ("They met.", "no")
    await sql(talked, "UPDATE sessions SET summary = ?", FAILED)
    path = folder(talked) / "2026-02-12_silence.json"
    path.write_text(path.read_text().replace("They met.", FAILED))
    await talked.say("Even more")
    again = await save_idle(talked, "All of it.")
    assert again is not None
    assert again.row.summary == "All of it."
    assert "Human: Hello" in talked.model.requests[-1].messages[1].content


async def test_a_silence_clears_nothing_once_something_was_said_after_what_it_saved(world: World) -> None:
    await world.say("Hello")
    saved = (await world.log())[-1].id
    await world.say("I am back")
    assert not await world.journal.clear_unless_spoken("chorus", saved)
    assert await world.seen() == ["Hello", "ok", "I am back", "ok"]
    assert await world.journal.clear_unless_spoken("chorus", saved + 2)
    assert await world.seen() == []
