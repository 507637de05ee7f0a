"""``/context clear`` and ``/context save``: their answers and effects, on the disk too."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from chorus_cli.core.errors import SessionError
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.acts import Clear
from chorus_cli.log.rules.operations import Operation
from chorus_cli.sessions import rows as session_rows
from tests.sessions.service.saved_sessions import SHIPPED, count, file_of, folder, restore, save_idle
from tests.world import World

SAVE = "/context save Auth refactor"


@pytest.fixture
async def talk(world: World) -> World:
    """One turn, ten minutes ago."""
    await world.say("Hello")
    world.clock.advance(timedelta(minutes=10))
    return world


async def journal(world: World) -> list[Operation]:
    return await world.store.read(operation_rows.all_of, "chorus", 1)


async def saved(world: World, line: str = SAVE, summary: str = "It is done.") -> str:
    world.model.say(summary)
    return await world.told(line)


# Clearing


async def test_context_clear_command_calls_clear(talk: World) -> None:
    assert await talk.told("/context clear") == "--- New conversation ---"
    assert [operation.act.kind for operation in await journal(talk)] == [Clear.kind]


async def test_context_clear_command_advances_clear_time(talk: World) -> None:
    for _ in range(2):
        talk.clock.advance(timedelta(minutes=5))
        await talk.told("/context clear")
        assert (await journal(talk))[-1].created_at == talk.clock.now()


async def test_clear_context_empties_messages(talk: World) -> None:
    assert await talk.seen() == ["Hello", "ok"]
    await talk.told("/context clear")
    assert await talk.seen() == []
    await talk.say("Afresh")
    assert talk.asked() == [("user", "Afresh")]


async def test_clear_context_does_not_save(talk: World) -> None:
    requests = len(talk.model.requests)
    await talk.told("/context clear")
    assert await count(talk, "sessions") == 0
    assert not folder(talk).exists()
    assert len(talk.model.requests) == requests


# Saving


async def test_context_save_command_calls_session_manager(talk: World) -> None:
    assert (await saved(talk)).startswith(f"Saved session {SHIPPED}: ")
    (row,) = (await talk.sessions.listing("chorus")).rows
    assert row.session_id == SHIPPED


async def test_save_creates_session_json_file(talk: World) -> None:
    await saved(talk)
    assert {"session_id", "timestamp", "description", "summary", "message_count", "messages"} <= set(file_of(talk))
    assert file_of(talk)["session_id"] == SHIPPED


async def test_save_stores_metadata_in_sqlite(talk: World) -> None:
    await saved(talk)
    (row,) = await talk.store.read(session_rows.of, "chorus")
    assert (row.session_id, row.timestamp, row.message_count) == (SHIPPED, talk.clock.now(), 2)
    assert (row.description, row.summary) == ("Auth refactor", "It is done.")


async def test_save_generates_summary(talk: World) -> None:
    assert (await saved(talk, summary="They met.")).splitlines()[1:] == ["They met."]
    assert "Human: Hello" in talk.model.requests[-1].messages[-1].content
    assert file_of(talk)["summary"] == "They met."


@pytest.mark.parametrize("line", [SAVE, "/context save", "/context save !!!"])
async def test_save_filename_format(talk: World, line: str) -> None:
    await saved(talk, line)
    (path,) = folder(talk).iterdir()
    assert re.fullmatch(r"2026-02-12_(auth-refactor|[0-9a-f]{6})\.json", path.name)


async def test_save_with_custom_description(talk: World) -> None:
    await saved(talk, "/context save  Before the Big change ")
    (row,) = (await talk.sessions.listing("chorus")).rows
    assert row.description == "Before the Big change"


# Saved messages


async def test_list_sessions_returns_all_snapshots(talk: World) -> None:
    """Saved by command or by a silence, before a clear or after it."""
    await saved(talk)
    await talk.told("/context clear")
    await talk.say("Afresh")
    talk.clock.advance(timedelta(minutes=1))
    await save_idle(talk)
    assert [row.description for row in (await talk.sessions.listing("chorus")).rows] == ["Silence", "Auth refactor"]


async def test_list_sessions_includes_summary(talk: World) -> None:
    await saved(talk, summary="They met.")
    assert "They met." in await talk.told("/context history")


async def test_restore_loads_saved_messages(talk: World) -> None:
    await saved(talk)
    await talk.told("/context clear")
    await talk.told("/context restore 2026-02-12")
    await talk.say("And now?")
    assert [content for _, content in talk.asked()][:2] == ["Hello", "ok"]


async def test_restore_nonexistent_id_raises(talk: World) -> None:
    await saved(talk)
    with pytest.raises(SessionError, match="chorus has no session 'b0a7e0d4'"):
        await restore(talk, "b0a7e0d4")
    assert await talk.seen() == ["Hello", "ok"]
    assert await journal(talk) == []
