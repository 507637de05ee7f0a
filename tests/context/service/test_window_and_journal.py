"""The window: changed, kept while requests begin alike for a cache, and taken back; one reading of it a command."""

from __future__ import annotations

import sys
from collections import deque
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.context.service.report import context_report
from chorus_cli.core.errors import JournalError, ModelError, SettingsError
from chorus_cli.core.time import timespan
from chorus_cli.core.time.timespan import Span
from chorus_cli.log.rules.acts import SettingChange, Window
from chorus_cli.models.rules import budget
from chorus_cli.models.rules.budget import Calibration
from chorus_cli.storage import meta_rows
from tests.fakes import FakeClock
from tests.sessions.service.saved_sessions import sql
from tests.storage.database import BEGIN_TO_READ, traced
from tests.turns.folding.long_talk import Talk, facts
from tests.world import World, built


def span(text: str, world: World) -> Span:
    return timespan.parse(text, world.clock.now())


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
    assert world.current.target().persona.settings.context_hours == 24
    await world.journal.undo(place, None)
    assert "context_hours" not in world.settings_text()
    await world.journal.redo(place)
    await world.journal.redo(place)
    assert world.current.target().persona.settings.context_hours == 48


NOW, SWITCH = ("mcp_allow", "time.now"), ("mcpServers", "time", "disabled")


async def test_an_entry_of_the_settings_is_an_operation_that_is_undone_and_redone(world: World) -> None:
    world.configure('{ "clock": true, // mine\n}')
    before, place = world.settings_text(), world.current.target()
    assert await world.persona_admin.set_entry(place.persona.slug, NOW, "1") is None
    added = world.settings_text()
    assert world.current.target().persona.settings.mcp_allow == {"time.now": "1"}
    assert await world.persona_admin.set_entry(place.persona.slug, SWITCH, value=True) is None
    changed = (await world.journal.undo(place, None)).act
    assert changed == SettingChange(SWITCH, before=None, after=True)
    assert (world.current.target().persona.settings.mcpServers, world.current.target().persona.warnings) == ({}, ())
    assert (await world.journal.undo(place, None)).describe() == 'permission "time.now" added'
    assert world.current.target().persona.settings.mcp_allow == {}
    assert world.settings_text().startswith(before[:-1])
    await world.journal.redo(place)
    assert world.settings_text().startswith(added[:-2])


async def test_a_server_that_may_have_keys_is_no_operation(world: World) -> None:
    place = world.current.target()
    await world.persona_admin.set_entry(place.persona.slug, SWITCH[:2], {"command": "uvx"})
    await world.persona_admin.set_entry(place.persona.slug, SWITCH[:2], None)
    assert await world.journal.entries(place) == []


async def test_an_entry_that_was_changed_by_hand_since_is_left_alone(world: World) -> None:
    place = world.current.target()
    await world.persona_admin.set_entry(place.persona.slug, SWITCH, value=True)
    world.configure('{"mcpServers": {"time": {"disabled": false}}}')
    with pytest.raises(SettingsError, match=r"mcpServers\.time\.disabled in .* was changed since, so Chorus leaves"):
        await world.journal.undo(place, None)
    assert world.settings_text() == '{"mcpServers": {"time": {"disabled": false}}}'


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
    with pytest.raises(SettingsError, match=r"context_hours in .* was changed since, so Chorus leaves"):
        await world.journal.undo(world.current.target(), None)
    assert world.settings_text() == '{"context_hours": 99}'


async def test_the_same_window_again_is_no_operation(world: World) -> None:
    for _ in range(2):
        await world.window.set(span("24h", world))
    assert len(await world.journal.entries(world.current.target())) == 1


async def test_a_broken_file_is_never_overwritten(world: World) -> None:
    world.configure('{"context_hours": 24,, }')
    with pytest.raises(SettingsError, match=r"system\.jsonc:1:22.*/settings edit opens the file to correct it"):
        await world.window.set(span("48h", world))
    assert world.settings_text() == '{"context_hours": 24,, }'
    assert world.current.target().persona.settings.context_hours == 8
    assert "Chorus ignores this file until you correct it" in world.current.target().persona.warnings[0]


async def test_redo_is_over_once_something_was_said(world: World) -> None:
    await world.say("Before")
    place = world.current.target()
    await world.journal.clear(place)
    await world.journal.undo(place, None)
    await world.say("Now")
    with pytest.raises(JournalError, match="Nothing was undone just now"):
        await world.journal.redo(place)


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (None, "There is nothing to undo here."),
        (7, "There is no operation 7 here."),
        (2, "Operation 2 is an undo or a redo itself, so it cannot be undone."),
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


async def test_what_an_undone_restore_had_put_in_is_counted(world: World) -> None:
    await world.say("One")
    await world.told("/context save talk")
    [path] = (world.folder / "personas" / "chorus" / "sessions").glob("*.json")
    path.write_text(path.read_text(encoding="utf-8").replace('"ok"', '"words of another log"'), encoding="utf-8")
    await world.told("/new")
    await world.told(f"/context restore {path.stem}")
    assert await _left_out(world) == {"before the context starts": 1}
    await world.told("/context undo")
    assert await _left_out(world) == {"before the context starts": 3}


async def test_another_reply_is_counted_whether_it_is_in_context_or_taken_back(world: World) -> None:
    await world.say("One")
    async for _ in world.conversation.retry(world.current.target()):
        pass
    assert await _left_out(world) == {"replaced by another reply or greeting": 1}
    await world.told("/undo")
    assert await _left_out(world) == {"undone": 1}
    await world.told("/new")
    assert await _left_out(world) == {"before the context starts": 3}


async def test_a_reply_that_never_came_is_not_counted(world: World) -> None:
    world.model.enqueue(ModelError("It is down."))
    await world.say("One")
    await world.told("/undo")
    assert await _left_out(world) == {"undone": 1}


async def test_a_call_of_a_tool_without_its_result_is_counted_apart(world: World) -> None:
    await world.say("One")
    insert = (
        "INSERT INTO messages(persona, thread_id, turn_id, role, tool_calls, tool_call_id, timestamp) "
        "VALUES ('chorus', 1, 1, 'tool_use', '[]', 'x', ?)"
    )
    await sql(world, insert, "2026-02-12T14:30:00Z")
    assert await _left_out(world) == {"blank, or a tool's call or result without the other": 1}


async def test_a_notice_of_a_message_that_cannot_be_read_names_the_repair(world: World) -> None:
    await world.say("Something")
    await sql(world, "UPDATE messages SET usage = 'x'")
    (notice,) = await world.current.notices()
    assert notice.startswith("Message 1 of chorus (")
    assert notice.endswith(". chorus doctor repairs the log.")


async def test_a_past_window_that_the_setting_does_not_take_counts_as_the_default(talked: World) -> None:
    talked.configure('{"context_hours": 100000000000}')
    await talked.told("/context 24h")
    assert "with a window of 8h" in await talked.told("/context at 1m")


_EARLY, _LATE = ["early", "ok"], ["late", "ok"]


@pytest.fixture
async def world_at_the_edge(world: World) -> World:
    """An early turn has left the window of eight hours by the clock, but not that of the last request."""
    await world.say("early")
    world.clock.advance(timedelta(hours=7, minutes=59))
    await world.say("late")
    world.clock.advance(timedelta(minutes=2))
    return world


async def _asked_after(world: World, line: str = "") -> list[str]:
    if line:
        await world.told(line)
    await world.say("and now?")
    return [content.split("\n\n")[-1] for _, content in world.asked()]


async def test_a_request_begins_where_the_last_one_did(world_at_the_edge: World) -> None:
    assert (await _asked_after(world_at_the_edge))[:4] == [*_EARLY, *_LATE]


@pytest.mark.parametrize("line", ["/new", "/context 4h", "/undo"])
async def test_whatever_is_done_to_the_context_lets_the_window_slide(world_at_the_edge: World, line: str) -> None:
    assert "early" not in await _asked_after(world_at_the_edge, line)


async def test_each_thread_has_a_window_of_its_own(world_at_the_edge: World) -> None:
    await world_at_the_edge.told("/thread new")
    await world_at_the_edge.say("elsewhere")
    assert (await _asked_after(world_at_the_edge, "/thread 1"))[:4] == [*_EARLY, *_LATE]


async def test_five_minutes_of_silence_let_the_window_slide(world_at_the_edge: World) -> None:
    world_at_the_edge.clock.advance(timedelta(minutes=4))
    assert "early" not in await _asked_after(world_at_the_edge)


async def test_another_reply_is_asked_for_with_what_the_first_one_saw(world_at_the_edge: World) -> None:
    async for _ in world_at_the_edge.conversation.retry(world_at_the_edge.current.target()):
        pass
    assert await world_at_the_edge.seen() == [*_EARLY, *_LATE]


async def test_the_editor_shows_what_would_be_sent(world_at_the_edge: World) -> None:
    editing = world_at_the_edge.services.context_editing
    opened = await editing.open(world_at_the_edge.current.target())
    assert [entry.block.body for entry in opened.sheet.context] == await world_at_the_edge.seen() == [*_EARLY, *_LATE]


async def test_a_session_holds_what_would_be_sent(world_at_the_edge: World) -> None:
    world_at_the_edge.model.say("A summary.")
    assert (await world_at_the_edge.told("/context save edge")).startswith("Saved session")
    await world_at_the_edge.told("/new")
    await world_at_the_edge.told("/context restore 2026-02-12_edge")
    assert await world_at_the_edge.seen() == [*_EARLY, *_LATE]


async def test_a_picture_of_the_window_begins_where_it_does(world_at_the_edge: World) -> None:
    view = await world_at_the_edge.view()
    assert world_at_the_edge.clock.now() - view.cutoff == timedelta(hours=8, minutes=2)


async def test_what_an_edit_put_in_is_said_to_have_left_when_it_has(world: World) -> None:
    await world.say("one")
    world.editor.enqueue(lambda path: path.write_text(path.read_text().replace("Human: one", "Human: other words")))
    await world.told("/context edit")
    world.clock.advance(timedelta(hours=7, minutes=58))
    heard: list[tuple[bool, bool]] = []
    for minutes in (0, 3, 3, 6, 3):
        world.clock.advance(timedelta(minutes=minutes))
        notices = await world.notices("and now?")
        is_sent = any("other words" in content for _, content in world.asked())
        heard.append((is_sent, any("is now older than 8h" in notice for notice in notices)))
    assert heard == [(True, False), (True, False), (True, False), (False, True), (False, False)]


async def test_a_session_goes_on_after_a_silence_although_the_windows_of_its_threads_begin_apart(world: World) -> None:
    await world.say("in the first thread")
    await world.told("/thread new")
    world.clock.advance(timedelta(hours=7, minutes=57, seconds=30))
    sessions = []
    for text in ("in the second", "there again"):
        await world.say(text)
        world.clock.advance(timedelta(seconds=70))
        world.model.say("A summary.")
        sessions.append(await world.sessions.save_idle(world.current.target()))
        world.clock.advance(timedelta(seconds=50))
    assert [saved and saved.row.message_count for saved in sessions] == [4, 6]


async def test_a_summary_serves_its_request_and_those_that_follow(talk: Talk, clock: FakeClock) -> None:
    await talk.say(*facts(6))
    clock.advance(timedelta(hours=7, minutes=58))
    for fact in facts(3, 6):
        await talk.say(fact)
        clock.advance(timedelta(minutes=3))
        assert "f0!" in talk.last_request()
    assert len(talk.summaries()) == 1


@pytest.mark.parametrize(
    ("back", "is_kept"),
    [(timedelta(seconds=20), True), (timedelta(hours=1), True), (timedelta(hours=1, seconds=1), False)],
)
async def test_a_clock_set_back_a_little_leaves_window_and_summary(
    talk: Talk, clock: FakeClock, back: timedelta, *, is_kept: bool
) -> None:
    await talk.say("old!")
    clock.advance(timedelta(hours=8))
    await talk.say(*facts(9))
    before = await talk.summary()
    clock.advance(-back)
    assert "old!" not in before
    assert (await talk.summary() == before) is is_kept
    await talk.say("next!")
    assert ("old!" in talk.last_request()) is not is_kept
    assert "f0!" in talk.last_request()


async def test_a_clock_set_back_again_and_again_does_not_shorten_the_window(world: World) -> None:
    await world.say("early")
    world.clock.advance(timedelta(hours=10))
    await world.say("late")
    for _ in range(4):
        world.clock.advance(timedelta(minutes=-55))
        await world.say("and now?")
    assert (await world.seen())[:2] == ["early", "ok"]


_opened = deque[str](maxlen=1_000)
# A hook cannot be removed.
sys.addaudithook(lambda event, arguments: _opened.append(str(arguments[0])) if event == "open" else None)


@pytest.mark.parametrize("line", ["/context", "/context why", "/context ops", "/context at 1h", "/context 24h?"])
async def test_a_command_that_shows_the_context_reads_it_in_one_transaction(talked: World, line: str) -> None:
    statements = await traced(talked.store)
    await talked.told(line)
    assert statements.count(BEGIN_TO_READ) == 1


@pytest.mark.parametrize("line", ["/context", "/context why"])
async def test_a_command_that_shows_the_context_reads_the_settings_once(talked: World, line: str) -> None:
    # A file that has just been written is never taken from the memory of an earlier reading.
    talked.configure('{"context_hours": 24}')
    _opened.clear()
    await talked.told(line)
    assert _opened.count(str(talked.personas.settings_path("chorus"))) == 1
