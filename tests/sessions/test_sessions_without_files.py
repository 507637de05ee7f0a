"""Sessions without a file here, as on another machine with the same log: the log gives them back."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.core.errors import SessionError
from chorus_cli.storage.port import Connection
from tests.sessions.service.saved_sessions import SHIPPED, file_of, folder, restore, save, save_idle, sql
from tests.terminal.screen.terminal_file import seen
from tests.world import World


@pytest.fixture
async def varied(talked: World) -> World:
    """A fork, an undone turn, a summary, a pin, and the first thread in focus."""
    for said in ("Two", "Three", "Four"):
        await talked.say(said)
    await talked.told("/pin 1")
    talked.model.say("The oldest part.")
    await talked.told("/context compact")
    await talked.told("/thread fork")
    await talked.say("In the fork")
    await talked.say("Not this")
    await talked.told("/undo")
    await talked.told("/thread 1")
    return talked


def taken_away(world: World, name: str = SHIPPED) -> tuple[Path, str]:
    """Delete the file of a session, and return its path and its text."""
    path = folder(world) / f"{name}.json"
    text = path.read_text(encoding="utf-8")
    path.unlink()
    return path, text


async def summary(world: World) -> str:
    """Return what the summary says, without the number of the act that made it."""
    return (await world.told("/context summary")).partition("\n")[2]


async def authors(world: World) -> set[object]:
    """Return the models and sessions that summaries come from; ``None`` for a forgotten one."""

    def models(connection: Connection) -> set[object]:
        return {model for (model,) in connection.execute("SELECT model FROM summaries")}

    return await world.store.read(models)


async def test_a_restore_without_the_file_gives_the_same_context_and_writes_the_same_file(varied: World) -> None:
    await save(varied)
    threads: Any = file_of(varied)["threads"]
    assert [bool(each["summary"]) for each in threads] == [True, True]
    await varied.told("/new")
    await restore(varied)
    with_file = await varied.seen(), await summary(varied)
    await varied.told("/undo")
    path, text = taken_away(varied)
    shown = await varied.told(f"/context show {SHIPPED}")
    assert "In the fork" in shown
    assert "Not this" not in shown
    assert not path.exists()
    await restore(varied)
    assert (await varied.seen(), await summary(varied)) == with_file
    assert path.read_text(encoding="utf-8") == text


async def test_a_session_without_its_file_is_listed_and_offered_like_any_other(talked: World) -> None:
    await save(talked)
    taken_away(talked)
    assert (await talked.sessions.listing("chorus")).problems == ()
    await seen(lambda: [name for name, _ in talked.sessions.offers("chorus")] == [SHIPPED])


async def test_a_session_whose_file_is_damaged_is_restored_from_the_log_which_leaves_the_file_alone(
    talked: World,
) -> None:
    await save(talked)
    path = folder(talked) / f"{SHIPPED}.json"
    path.write_text("{", encoding="utf-8")
    await talked.told("/new")
    for command in ("show", "restore"):
        told = await talked.told(f"/context {command} {SHIPPED}")
        assert f"The session comes from the log. The session {path} is damaged, or is not a session" in told
    assert "How are you?" in await talked.seen()
    assert path.read_text(encoding="utf-8") == "{"


async def test_a_session_that_was_extended_elsewhere_is_restored_with_what_was_added(talked: World) -> None:
    await save_idle(talked)
    path = folder(talked) / "2026-02-12_hello.json"
    before = path.read_text(encoding="utf-8")
    talked.clock.advance(timedelta(minutes=1))
    await talked.say("Since then")
    await save_idle(talked)
    after = path.read_text(encoding="utf-8")
    path.write_text(before, encoding="utf-8")
    await talked.told("/new")
    await restore(talked, "2026-02-12_hello")
    assert "Since then" in await talked.seen()
    assert path.read_text(encoding="utf-8") == after


async def test_what_left_the_context_by_age_stays_in_an_idle_session_without_its_file(talked: World) -> None:
    await save_idle(talked)
    talked.clock.advance(timedelta(hours=9))
    await talked.say("Later")
    await save_idle(talked)
    path, text = taken_away(talked, "2026-02-12_hello")
    await restore(talked, "2026-02-12_hello")
    assert [each for each in await talked.seen() if each != "ok"] == ["Hello", "Hi there", "How are you?", "Later"]
    assert path.read_text(encoding="utf-8") == text


async def test_a_purged_message_is_in_no_session_without_its_file_nor_is_the_summary_with_it(talked: World) -> None:
    await save(talked, summary="They greeted each other.")
    taken_away(talked)
    await (await talked.asked_back("/purge message 1")).confirmed()
    [row] = (await talked.sessions.listing("chorus")).rows
    assert (row.summary, row.message_count) == ("", 3)
    await restore(talked)
    assert await talked.seen() == ["Hi there", "How are you?", "ok"]
    taken_away(talked)
    await (await talked.asked_back("/purge thread 1")).confirmed()
    assert (await talked.sessions.listing("chorus")).rows == ()


async def test_the_purged_name_of_a_session_without_its_file_is_in_no_summary_that_came_from_it(varied: World) -> None:
    await varied.told("/context save of hunter2")
    name = "2026-02-12_of-hunter2"
    await restore(varied, name)
    assert await authors(varied) == {"openai/test", f"session {name}"}
    taken_away(varied, name)
    await (await varied.asked_back("/purge search hunter2")).confirmed()
    assert await authors(varied) == {"openai/test", None}


async def test_a_session_whose_row_does_not_know_what_it_has_needs_its_file_once(talked: World) -> None:
    await save(talked)
    path, text = taken_away(talked)
    await sql(talked, "UPDATE sessions SET contents = ''")
    with pytest.raises(SessionError, match="has no file here"):
        await restore(talked)
    assert len((await talked.sessions.listing("chorus")).problems) == 1
    path.write_text(text, encoding="utf-8")
    await restore(talked)
    taken_away(talked)
    await restore(talked)
    assert path.read_text(encoding="utf-8") == text


async def test_a_file_that_cannot_be_written_here_keeps_nobody_from_a_restore(talked: World) -> None:
    await save(talked)
    path, _ = taken_away(talked)
    path.parent.rmdir()
    path.parent.symlink_to(path.parent.parent / "nowhere")
    await talked.told("/new")
    await restore(talked)
    assert "How are you?" in await talked.seen()


async def test_a_session_whose_row_names_messages_of_another_persona_gives_none_of_them_back(talked: World) -> None:
    await save(talked)
    taken_away(talked)
    newest = (await talked.log())[-1].id + 1
    thread = "INSERT INTO threads(persona, title, created_at) SELECT 'other', '', MAX(timestamp) FROM messages"
    said = "SELECT 'other', MAX(threads.id), 'user', 'A secret.', MAX(timestamp) FROM threads, messages"
    await sql(talked, thread)
    await sql(talked, f"INSERT INTO messages(persona, thread_id, role, content, timestamp) {said}")
    end = f"], [{newest}, {newest}]]]]"
    await sql(talked, "UPDATE sessions SET contents = replace(contents, ']]]]', ?)", end)
    shown = await talked.told(f"/context show {SHIPPED}")
    assert "A secret." not in shown
    assert "ok" in shown
