"""Changing the window, clearing, and taking either back."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.context.service.report import context_report
from chorus_cli.core.errors import JournalError, ModelError, SettingsError
from chorus_cli.core.time import timespan
from chorus_cli.core.time.timespan import Span
from chorus_cli.log.rules.acts import Window
from chorus_cli.models.rules import budget
from chorus_cli.models.rules.budget import Calibration
from chorus_cli.storage import meta_rows
from tests.sessions.service.saved_sessions import sql
from tests.world import World, built


def span(text: str, world: World) -> Span:
    return timespan.parse(text, world.clock.now())


async def test_rolling_window_configurable(world: World) -> None:
    world.configure('{\n  // far\n  "context_hours": 12,\n}\n')
    state = await world.window.set(span("2 days", world))
    assert (state.hours, state.warning) == (48, None)
    assert state.since == world.clock.now() - timedelta(hours=48)
    assert world.settings_text() == '{\n  // far\n  "context_hours": 48,\n}\n'


async def test_a_wider_window_brings_older_messages_back(world: World) -> None:
    await world.say("Old")
    world.clock.advance(timedelta(hours=10))
    assert await world.seen() == []
    await world.window.set(span("24h", world))
    assert await world.seen() == ["Old", "ok"]


async def test_the_window_is_clamped_with_a_warning(world: World) -> None:
    assert (
        await world.window.set(span("200h", world))
    ).warning == "Warning: 200h is more than 168h (7 days); using 168h"
    assert (await world.window.shift(span("1000h", world), -1)).hours == 1


async def test_of_two_changes_at_once_none_is_lost(world: World) -> None:
    await asyncio.gather(*(world.window.shift(span("1h", world), 1) for _ in range(5)))
    assert (await world.window.state()).hours == 13


async def test_reset_removes_the_key_and_the_default_of_all_personas_holds(world: World) -> None:
    world.configure('{"name": "C", "context_hours": 20}')
    (world.folder / "config.jsonc").write_text('{"defaults": {"context_hours": 30}}', encoding="utf-8")
    assert (await world.window.reset()).hours == 30
    assert world.settings_text() == '{"name": "C"}'


async def test_undo_and_redo_of_the_window_write_the_file(world: World) -> None:
    await world.window.set(span("24h", world))
    await world.window.shift(span("1 day", world), 1)
    place = world.current.target()
    assert isinstance((await world.journal.undo(place, None)).act, Window)
    assert (await world.window.state()).hours == 24
    await world.journal.undo(place, None)
    assert "context_hours" not in world.settings_text()
    await world.journal.redo(place)
    await world.journal.redo(place)
    assert (await world.window.state()).hours == 48


async def test_an_edit_of_the_file_by_hand_is_taken_back_like_any_change(world: World) -> None:
    await world.window.set(span("12h", world))
    world.configure('{ "context_hours": 10, "tools": true }')
    await world.current.turn_to(world.current.slug)
    assert (await world.journal.undo(world.current.target(), None)).act == Window(12, 10)
    assert world.settings_text() == '{ "context_hours": 12, "tools": true }'
    await world.journal.redo(world.current.target())
    assert world.settings_text() == '{ "context_hours": 10, "tools": true }'
    await world.journal.undo(world.current.target(), 2)
    await world.journal.undo(world.current.target(), 1)
    assert "context_hours" not in world.settings_text()


async def test_undo_refuses_when_the_file_was_changed_since(world: World) -> None:
    await world.window.set(span("24h", world))
    world.configure('{"context_hours": 99}')
    with pytest.raises(SettingsError, match="says 99 for context_hours by now, not 24"):
        await world.journal.undo(world.current.target(), None)
    assert world.settings_text() == '{"context_hours": 99}'


async def test_the_same_window_again_is_no_operation(world: World) -> None:
    for _ in range(2):
        await world.window.set(span("24h", world))
    assert len(await world.journal.entries(world.current.target())) == 1


async def test_a_broken_file_is_never_overwritten(world: World) -> None:
    world.configure('{"context_hours": 24,, }')
    with pytest.raises(SettingsError, match=r"system\.jsonc:1:22.*/settings edit opens the file to mend it"):
        await world.window.set(span("48h", world))
    assert world.settings_text() == '{"context_hours": 24,, }'
    assert (await world.window.state()).hours == 8
    assert "nothing in this file counts until it is mended" in world.current.target().persona.warnings[0]


async def test_redo_is_over_once_something_was_said(world: World) -> None:
    await world.say("Before")
    place = world.current.target()
    await world.journal.clear(place)
    await world.journal.undo(place, None)
    await world.say("Now")
    with pytest.raises(JournalError, match="nothing to redo"):
        await world.journal.redo(place)


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (None, "There is nothing to undo here."),
        (7, "There is no operation 7 here."),
        (2, "Operation 2 only takes something back or puts it back."),
        (1, "Operation 1 is undone already."),
    ],
)
async def test_what_cannot_be_undone_is_said(world: World, number: int | None, sentence: str) -> None:
    place = world.current.target()
    await world.journal.clear(place)
    await world.journal.undo(place, 1)
    with pytest.raises(JournalError, match=sentence):
        await world.journal.undo(place, number)


async def test_clear_time_survives_restart(world: World, tmp_path: Path) -> None:
    await world.say("Before")
    await world.journal.clear(world.current.target())
    again = await built(tmp_path / "elsewhere", world.store, world.clock, world.model, limit_tokens=10_000)
    assert await again.seen() == []


async def test_the_report_names_every_part_and_what_stays_out(world: World) -> None:
    await world.say("Cleared away")
    await world.journal.clear(world.current.target())
    await world.say("Too old")
    world.clock.advance(timedelta(hours=9))
    await world.say("In view")
    report = await context_report(world.context, world.current.target(), world.clock.now())
    assert [part.name for part in report.parts] == ["system prompt", "documents", "messages"]
    assert sum(part.tokens for part in report.parts) == report.plan.tokens
    assert [(omission.reason, omission.messages) for omission in report.omissions] == [
        ("before the boundary", 2),
        ("older than the window", 2),
    ]
    assert [message["role"] for message in report.as_json()["messages"]] == ["system", "user", "assistant"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("factor", [0.897, 1.0, 1.36])
async def test_parts_of_the_report_add_up_also_when_estimates_are_corrected(world: World, factor: float) -> None:
    key = meta_rows.CALIBRATION + world.current.target().choice.model
    await world.store.write(meta_rows.store, key, budget.written_calibration(Calibration(factor, 0.0)))
    await world.say("one two three four five six seven " * 7)
    report = await context_report(world.context, world.current.target(), world.clock.now())
    assert sum(part.tokens for part in report.parts) == report.plan.meter.tokens
    assert report.plan.meter.tokens == report.plan.snapshot.budget.corrected(report.plan.tokens)


async def _left_out(world: World) -> dict[str, int]:
    report = await context_report(world.context, world.current.target(), world.clock.now())
    return {omission.reason: omission.messages for omission in report.omissions}


async def test_what_an_undone_restore_had_put_in_is_counted_apart(world: World) -> None:
    await world.say("One")
    await world.told("/context save talk")
    [path] = (world.folder / "personas" / "chorus" / "sessions").glob("*.json")
    path.write_text(path.read_text(encoding="utf-8").replace('"ok"', '"words of another log"'), encoding="utf-8")
    await world.told("/new")
    await world.told(f"/context restore {path.stem}")
    assert await _left_out(world) == {"before the boundary": 1}
    await world.told("/context undo")
    assert await _left_out(world) == {"before the boundary": 2, "put in by an undone operation": 1}


async def test_another_reply_is_counted_whether_it_is_in_context_or_taken_back(world: World) -> None:
    await world.say("One")
    async for _ in world.conversation.retry(world.current.target()):
        pass
    assert await _left_out(world) == {"taken back": 1}
    await world.told("/undo")
    assert await _left_out(world) == {"taken back": 1}
    await world.told("/new")
    assert await _left_out(world) == {"before the boundary": 3}


async def test_a_reply_that_never_came_is_not_counted(world: World) -> None:
    world.model.enqueue(ModelError("It is down.", status_code=400))
    await world.say("One")
    await world.told("/undo")
    assert await _left_out(world) == {"taken back": 1}


async def test_a_call_of_a_tool_without_its_result_is_counted_apart(world: World) -> None:
    await world.say("One")
    insert = (
        "INSERT INTO messages(persona, thread_id, turn_id, role, tool_calls, tool_call_id, timestamp) "
        "VALUES ('chorus', 1, 1, 'tool_use', '[]', 'x', ?)"
    )
    await sql(world, insert, "2026-02-12T14:30:00Z")
    assert await _left_out(world) == {"blank, or half of a tool's call": 1}


async def test_a_past_window_that_the_setting_does_not_take_counts_as_the_default(talked: World) -> None:
    talked.configure('{"context_hours": 100000000000}')
    await talked.told("/context 24h")
    assert "with a window of 8h" in await talked.told("/context at 1m")


async def test_an_edit_by_hand_in_an_open_chat_is_listed_and_undone(world: World) -> None:
    await world.told("/context 24h")
    world.configure('{"context_hours": 3}')
    assert "24h → 3h" in await world.told("/context ops")
    assert "24" in await world.told("/context undo")
    assert '"context_hours": 24' in world.settings_text()
