"""An act that keeps messages in context: no service, no view and no query has to know it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from chorus_cli.context.rows.thread_views import window_fill
from chorus_cli.core.errors import JournalError
from chorus_cli.core.time.timeline import cutoff
from tests.log.rules.keeping import Keep, registered
from tests.world import World


@pytest.fixture(autouse=True)
def _keep() -> Iterator[None]:
    with registered():
        yield


@pytest.fixture
async def talked(world: World) -> World:
    """Two turns were said in the first thread, the messages 1 to 4."""
    for question in ("Who are you?", "Where to?"):
        world.model.say(f"{question} I do not know.")
        await world.say(question)
    return world


async def contents(world: World) -> list[str]:
    snapshot = await world.context.snapshot(world.current.target(), world.clock.now())
    return [message.content for message in snapshot.view.messages]


async def keep(world: World, *members: int) -> int:
    return (await world.journal.introduce(world.current.target(), Keep(members))).id


async def test_a_kept_message_stays_whatever_its_age(talked: World) -> None:
    await keep(talked, 1)
    talked.clock.advance(timedelta(days=30))
    assert await contents(talked) == ["Who are you?"]


async def test_a_message_from_before_the_boundary_comes_back_in_its_place(talked: World) -> None:
    await talked.told("/new")
    talked.model.say("Hello.")
    await talked.say("Hi")
    await keep(talked, 3, 1)
    assert await contents(talked) == ["Who are you?", "Where to?", "Hi", "Hello."]


async def test_the_report_counts_the_kept_messages_apart(talked: World) -> None:
    await keep(talked, 1)
    assert "3 in the 8h window, 1 kept whatever their age" in await talked.told("/why")
    talked.clock.advance(timedelta(days=30))
    told = await talked.told("/why")
    assert "0 in the 8h window, 1 kept whatever their age" in told
    assert [line.split()[:5] for line in told.splitlines() if line.startswith("older than")] == [
        ["older", "than", "the", "window", "3"]
    ]


async def test_a_kept_message_that_is_in_view_keeps_its_place(talked: World) -> None:
    before = await contents(talked)
    await keep(talked, 3)
    assert await contents(talked) == before


async def test_a_boundary_ends_the_keeping(talked: World) -> None:
    await keep(talked, 1)
    await talked.told("/new")
    assert await contents(talked) == []


async def test_it_is_listed_undone_and_redone_like_any_operation(talked: World) -> None:
    await talked.told("/new")
    number = await keep(talked, 1)
    assert "kept #1" in await talked.told("/context ops")
    assert await talked.told(f"/context undo {number}") == "Undone: kept #1"
    assert await contents(talked) == []
    assert await talked.told("/redo") == "Redone: kept #1"
    assert await contents(talked) == ["Who are you?"]


async def test_an_undone_turn_is_out_although_it_is_kept(talked: World) -> None:
    await keep(talked, 3)
    await talked.told("/context undo")
    await talked.told("/undo")
    await talked.told("/context redo 1")
    assert "Where to?" not in await contents(talked)


@pytest.mark.parametrize("unknown", [5, 99])
async def test_only_a_message_of_the_thread_can_be_kept(talked: World, unknown: int) -> None:
    await talked.told("/thread new")
    talked.model.say("Elsewhere.")
    await talked.say("And here?")
    await talked.told("/thread 1")
    with pytest.raises(JournalError, match=f"There is no message #{unknown} in this thread"):
        await keep(talked, 1, unknown)
    assert await talked.told("/context ops") == "There are no operations on this context yet."


async def test_an_edit_counts_the_kept_messages_as_its_own(talked: World) -> None:
    await talked.told("/new")
    await keep(talked, 1)
    talked.model.say("Hello.")
    await talked.say("Hi")
    opened = await talked.services.context_editing.open(talked.current.target())
    await talked.services.context_editing.save(opened, opened.sheet.text.replace("Hello.", "Good day."))
    assert await contents(talked) == ["Who are you?", "Hi", "Good day."]


@pytest.mark.parametrize(("days", "held", "reachable"), [(0, 4, 4), (1, 1, 4), (10, 1, 1)])
async def test_a_kept_message_is_held_by_every_window(talked: World, days: int, held: int, reachable: int) -> None:
    await keep(talked, 1)
    now = talked.clock.now() + timedelta(days=days)
    slug = talked.current.target().persona.slug
    fill = await talked.store.read(window_fill, slug, 1, cutoff(now, 8), cutoff(now, 168))
    assert (fill.held, fill.reachable) == (held, reachable)


async def test_a_session_has_a_thread_of_which_only_a_kept_message_is_left(talked: World) -> None:
    await keep(talked, 1)
    talked.clock.advance(timedelta(days=30))
    await talked.told("/thread new")
    talked.model.say("A summary.")
    assert "1 message" in await talked.told("/context save kept")
