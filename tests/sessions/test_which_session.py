"""Which session a text means, and which rows and threads of the log are those of a session."""

from __future__ import annotations

from tests.sessions.service.saved_sessions import folder, save, sql
from tests.sessions.test_session_commands import far_away, put_down
from tests.world import World


async def test_a_description_in_other_letters_than_latin_ones_finds_its_session(talked: World) -> None:
    await save(talked, "Первый разговор")
    for typed in ("Первый разговор", "первый  раз"):
        assert (await talked.sessions.load("chorus", typed)).session.description == "Первый разговор"
    assert "has no session 'Второй'" in await talked.told("/context show Второй")


async def test_a_thread_of_another_log_has_not_the_number_of_a_thread_here(talked: World) -> None:
    for id_ in (6, 7):
        await sql(talked, "INSERT INTO threads(id, persona, title) VALUES (?, 'chorus', 'Ours')", id_)
    put_down(talked, far_away())
    assert "Threads      #1, #2 Sums" in await talked.told("/context show 2025")
    restored = await talked.told("/context restore 2025")
    numbers = await talked.told("/context show 2025")
    assert f"#{talked.current.thread_number} Sums" in numbers
    assert f"thread #{talked.current.thread_number}." in restored


async def test_a_session_of_a_deleted_persona_is_restored_into_a_new_thread_of_its_namesake(world: World) -> None:
    await world.told("/persona new Ada")
    await world.say("Hello")
    await save(world, "Trip")
    file = folder(world, "ada") / "2026-02-12_trip.json"
    text = file.read_text(encoding="utf-8")
    await world.told("/persona archive")
    await (await world.asked_back("/persona delete ada")).confirmed()
    await world.told("/persona new Ada")
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    told = await world.told("/context restore trip")
    assert "The log has 2 new messages from the file." in told
    assert "You are now in thread #3." in told
    assert await world.seen() == ["Hello", "ok"]
