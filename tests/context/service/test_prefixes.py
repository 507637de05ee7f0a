"""While requests begin alike for a provider's cache, whatever shows or changes the context begins there too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from tests.fakes import FakeClock
from tests.turns.folding.long_talk import Talk, facts
from tests.world import World

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
    state = await world_at_the_edge.window.state()
    assert world_at_the_edge.clock.now() - state.since == timedelta(hours=8, minutes=2)


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
        heard.append((is_sent, any("have left the 8h window" in notice for notice in notices)))
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
        sessions.append(await world.sessions.save_idle(world.current.target(), ""))
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


_listeners: list[list[str]] = []


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        for opened in _listeners:
            opened.append(str(arguments[0]))


# A hook cannot be removed; with no listener it does nothing.
sys.addaudithook(_listen)


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """The paths that are opened meanwhile."""
    opened: list[str] = []
    _listeners.append(opened)
    try:
        yield opened
    finally:
        _listeners.remove(opened)


@pytest.mark.parametrize("line", ["/context", "/context why", "/context ops", "/context at 1h", "/context 24h?"])
async def test_a_command_that_shows_the_context_reads_it_in_one_transaction(talked: World, line: str) -> None:
    statements: list[str] = []
    await talked.store.read(lambda connection: connection.set_trace_callback(statements.append))
    statements.clear()
    await talked.told(line)
    assert [statement for statement in statements if statement.startswith("BEGIN")] == ["BEGIN"]


@pytest.mark.parametrize(("line", "counts"), [("/context", 0), ("/context why", 1)])
async def test_only_why_counts_the_messages_outside(talked: World, line: str, counts: int) -> None:
    statements: list[str] = []
    await talked.store.read(lambda connection: connection.set_trace_callback(statements.append))
    await talked.told(line)
    assert sum("AS is_written" in statement for statement in statements) == counts


@pytest.mark.parametrize("line", ["/context", "/context why"])
async def test_a_command_that_shows_the_context_reads_the_settings_once(talked: World, line: str) -> None:
    # A file that has just been written is never taken from the memory of an earlier reading.
    talked.configure('{"context_hours": 24}')
    with opened_files() as opened:
        await talked.told(line)
    assert opened.count(str(talked.personas.settings_path("chorus"))) == 1
