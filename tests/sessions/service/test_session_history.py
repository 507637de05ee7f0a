"""Sessions are listed and completed, even if a file or a row is missing."""

from __future__ import annotations

from datetime import timedelta

from tests.sessions.service.saved_sessions import count, folder, save, sql
from tests.world import World


async def test_list_sessions_returns_all_sessions(talked: World) -> None:
    for description in ("One", "Two"):
        await save(talked, description)
        talked.clock.advance(timedelta(minutes=1))
    listing = await talked.sessions.listing("chorus")
    assert [(row.description, row.summary) for row in listing.rows] == [("Two", "It is done."), ("One", "It is done.")]
    assert listing.problems == ()


async def test_list_sessions_empty_returns_empty(world: World) -> None:
    listing = await world.sessions.listing("chorus")
    assert (listing.rows, listing.problems) == ((), ())


async def test_a_file_without_a_row_is_found_again_and_a_row_without_a_file_says_so(talked: World) -> None:
    await save(talked, "One")
    await save(talked, "Two")
    await sql(talked, "DELETE FROM sessions WHERE description = 'One'")
    (folder(talked) / "2026-02-12_two.json").unlink()
    (folder(talked) / "2026-02-12_broken.json").write_text("{")
    for _ in range(2):
        listing = await talked.sessions.listing("chorus")
        assert {row.description for row in listing.rows} == {"One", "Two"}
        gone, broken = listing.problems
        assert gone == "The file of 2026-02-12_two is gone."
        assert "2026-02-12_broken.json is damaged or no session" in broken
    assert await count(talked, "sessions") == 2


async def test_names_are_offered_newest_first_with_what_they_are_about(talked: World) -> None:
    for description in ("One", "Two"):
        await save(talked, description)
        talked.clock.advance(timedelta(minutes=1))
    (folder(talked) / "2026-02-12_broken.json").write_text("{")
    assert {name for name, _ in talked.sessions.offers("chorus")} == {
        f"2026-02-12_{n}" for n in ("one", "two", "broken")
    }
    for _ in range(2):
        await count(talked, "sessions")
    offers = talked.sessions.offers("chorus")
    assert [(name, row.description if row else "") for name, row in offers] == [
        ("2026-02-12_two", "Two"),
        ("2026-02-12_one", "One"),
        ("2026-02-12_broken", ""),
    ]
    assert talked.sessions.offers("nobody") == []
