"""Restoring a session: the new context, the stored rows, and the refusals."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.context.rules.memory import ids_held
from chorus_cli.core.errors import SessionError, StorageError
from chorus_cli.log.rules.messages import Role, Status
from tests.sessions.service.saved_sessions import SHIPPED, count, folder, restore, save, sql
from tests.world import World, built

SAVED = ["Hello", "Hi there", "How are you?", "ok"]


async def test_restore_session_sets_context(talked: World) -> None:
    await save(talked)
    rows = await count(talked, "messages")
    await talked.say("Something else")
    talked.clock.advance(timedelta(hours=20))
    await talked.say("Now")
    await restore(talked)
    assert await talked.seen() == SAVED
    assert await count(talked, "messages") == rows + 4
    await talked.say("And now?")
    asked = [content for _, content in talked.asked()]
    assert asked[:2] == ["Hello", "Hi there"]
    assert asked[-1].endswith("And now?")


async def test_restore_session_loads_messages(talked: World) -> None:
    await save(talked)
    talked.clock.advance(timedelta(days=30))
    await restore(talked)
    seen = await talked.view()
    assert [message.content for message in seen.messages] == SAVED
    assert f"{seen.messages[0].timestamp:%Y-%m-%d}" == "2026-02-12"


async def test_an_active_thread_in_which_nothing_was_said_is_turned_to_as_well(talked: World) -> None:
    await talked.threads.new("Silent")
    await save(talked)
    await talked.current.turn_to_thread(1)
    await restore(talked)
    assert talked.current.target().thread_id == 2
    assert await count(talked, "threads") == 2


# Forks: each thread has its messages, and none is stored twice


@pytest.fixture
async def forked(world: World) -> World:
    """A thread of two turns, a fork of its first turn with one more, and the first thread in focus."""
    await world.say("One")
    await world.say("Two")
    await world.told("/thread fork 1")
    await world.say("Three")
    await world.told("/thread 1")
    return world


async def contexts(world: World) -> dict[int, list[int]]:
    found = {}
    for thread in (1, 2):
        await world.told(f"/thread {thread}")
        found[thread] = [row.id for row in (await world.view()).messages]
    return found


async def test_a_session_has_the_forked_messages_in_both_threads(forked: World) -> None:
    unsaved = await forked.sessions.unsaved(forked.current.target())
    assert [row.id for row in unsaved] == [1, 2, 3, 4, 5, 6]
    forked.model.say("A summary.")
    assert "8 messages" in await forked.told("/context save both")
    [file] = folder(forked).glob("*.json")
    messages = json.loads(file.read_text())["messages"]
    assert [(each["thread"], each["content"]) for each in messages] == [
        (1, "One"), (1, "ok"), (1, "Two"), (1, "ok"), (2, "One"), (2, "ok"), (2, "Three"), (2, "ok"),
    ]  # fmt: skip
    assert forked.model.requests[-1].messages[-1].content.count("One") == 1


async def test_a_fork_in_which_nothing_was_said_is_restored_as_itself(world: World) -> None:
    await world.say("One")
    await world.told("/thread fork")
    world.model.say("A summary.")
    await world.told("/thread 1")
    await world.told("/undo")
    await world.told("/context save fork alone")
    await world.told("/new")
    await world.told("/context restore 2026")
    assert await contexts(world) == {1: [], 2: [1, 2]}


# Rows and files from elsewhere


def far_away() -> dict[str, Any]:
    """Return a session of another machine."""
    said = {"timestamp": "2025-01-01T10:00:00.000001Z", "thread": 7, "turn": 70, "status": "complete"}
    call = {"tool_calls": '[{"id": "c"}]', "tool_call_id": "c"}
    return {
        "format": "chorus-session",
        "version": 1,
        "session_id": "2025-01-01_far",
        "persona": "somebody",
        "timestamp": "2025-01-01T11:00:00Z",
        "description": "Far",
        "summary": "",
        "message_count": 5,
        "token_estimate": 9,
        "window_start": "2025-01-01T03:00:00Z",
        "window_end": "2025-01-01T11:00:00Z",
        "active_thread_id": 7,
        "threads": [{"id": 1, "title": "", "summary": ""}, {"id": 7, "title": "Sums", "summary": ""}],
        "messages": [
            {**said, "role": "user", "content": "Alone", "thread": 1, "turn": 1},
            {**said, "role": "user", "content": "What is 6 x 7?", "preamble": "(a preamble)"},
            {**said, "role": "tool_use", "content": "", **call},
            {**said, "role": "tool_result", "content": "42", "tool_call_id": "c"},
            {**said, "role": "assistant", "content": "It is", "status": "interrupted"},
        ],
    }


def put_down(world: World, foreign: dict[str, Any]) -> None:
    folder(world).mkdir()
    (folder(world) / "2025-01-01_far.json").write_text(json.dumps(foreign), encoding="utf-8")


async def test_a_file_of_another_machine_works_and_twice_gives_no_duplicates(talked: World, tmp_path: Path) -> None:
    await talked.say("Ours")
    other = await built(tmp_path / "other", talked.store, talked.clock, talked.model, limit_tokens=10_000)
    await sql(other, "INSERT INTO threads(id, persona, title) VALUES (41, 'elsewhere', 'Far away')")
    put_down(talked, far_away())
    session, restored = await talked.sessions.restore(talked.current.target(), "2025")
    assert (session.session_id, restored.added) == ("2025-01-01_far", 5)
    assert talked.current.target().thread_id == restored.thread.id not in {1, 7}
    seen = await talked.view()
    assert [(row.role, row.content) for row in seen.messages] == [
        (Role.USER, "What is 6 x 7?"),
        (Role.TOOL_USE, ""),
        (Role.TOOL_RESULT, "42"),
        (Role.ASSISTANT, "It is"),
    ]
    assert len({row.turn_id for row in seen.messages}) == 1
    assert seen.messages[3].status is Status.INTERRUPTED
    assert seen.messages[0].preamble == "(a preamble)"
    assert {row.introduced_by for row in seen.messages} == {restored.operation.id}
    tables = [await count(talked, table) for table in ("messages", "threads")]
    again = (await talked.sessions.restore(talked.current.target(), "2025"))[1]
    assert (again.added, again.thread.id) == (0, restored.thread.id)
    assert [await count(talked, table) for table in ("messages", "threads")] == tables


async def test_memory_items_of_another_machine_are_cut_out_because_their_numbers_mean_others_here(
    talked: World,
) -> None:
    foreign = far_away()
    for message in foreign["messages"]:
        message["preamble"] = "(a preamble)\nFrom memory:\n#1 TASK: a thing of far away"
    put_down(talked, foreign)
    await restore(talked, "2025")
    assert {row.preamble for row in (await talked.view()).messages} == {"(a preamble)"}


@pytest.mark.parametrize("result", ["From memory:\n#1 TASK: a thing of far away", "Kept as #1."])
async def test_results_of_the_memory_of_another_machine_do_not_mean_items_here(talked: World, result: str) -> None:
    foreign = far_away()
    foreign["messages"][3]["content"] = result
    put_down(talked, foreign)
    for added in (5, 0):
        restored = (await talked.sessions.restore(talked.current.target(), "2025"))[1]
        assert restored.added == added
    rows = (await talked.view()).messages
    (found,) = (row.content for row in rows if row.role is Role.TOOL_RESULT)
    assert found == f"(The numbers are those of another log.)\n{result}"
    assert ids_held(rows) == set()


async def test_a_restore_that_fails_half_way_leaves_nothing(talked: World) -> None:
    put_down(talked, far_away())
    await sql(
        talked,
        "CREATE TRIGGER full BEFORE INSERT ON messages WHEN new.content = '42' BEGIN SELECT RAISE(ABORT, 'full'); END",
    )
    tables = [await count(talked, table) for table in ("messages", "threads", "operations")]
    thread = talked.current.target().thread_id
    with pytest.raises(StorageError):
        await restore(talked, "2025")
    assert [await count(talked, table) for table in ("messages", "threads", "operations")] == tables
    assert (await talked.seen(), talked.current.target().thread_id) == (SAVED, thread)


async def test_rows_that_were_put_in_with_plain_sql_are_known_again(world: World) -> None:
    for text, time in (("One", "14:00:00Z"), ("Two", "14:00:01.5Z"), ("Three", "14:00:02.120Z")):
        await sql(
            world,
            "INSERT INTO messages(persona, thread_id, role, content, timestamp) VALUES ('chorus', 9, 'user', ?, ?)",
            text,
            f"2026-02-12T{time}",
        )
    await save(world)
    await world.journal.clear(world.current.target())
    await restore(world)
    assert await count(world, "messages") == 3
    await world.current.turn_to_thread(9)
    assert await world.seen() == ["One", "Two", "Three"]


# What cannot be restored


async def test_restore_session_nonexistent_id_raises(talked: World) -> None:
    await save(talked)
    for typed in ("nothing", "../../etc/passwd", "2026-02-12_auth-refactor.json", "/"):
        with pytest.raises(SessionError, match=r"chorus has no session '.*'\. /context history lists them\."):
            await restore(talked, typed)


async def test_an_unfinished_name_that_may_be_several_is_answered_with_all_of_them(talked: World) -> None:
    for description in ("One", "Two"):
        await save(talked, description)
    with pytest.raises(SessionError, match="'2026' may be 2026-02-12_one or 2026-02-12_two"):
        await restore(talked, "2026")
    for _ in range(8):
        await save(talked, "One")
    with pytest.raises(SessionError, match=r"2026-02-12_one-2, .* or one of 4 more"):
        await restore(talked, "2026")


async def test_another_personas_session_is_said_to_be_hers(talked: World) -> None:
    await talked.persona_admin.create("Frodo")
    await save(talked)
    (folder(talked, "frodo")).mkdir()
    (folder(talked) / f"{SHIPPED}.json").rename(folder(talked, "frodo") / "2026-03-01_ring.json")
    for typed in ("2026-03", "ring", "2026-03-01_ring"):
        with pytest.raises(SessionError, match=r"is a session of Frodo, not of chorus\. /persona frodo turns to Frodo"):
            await restore(talked, typed)
    assert await talked.seen() == SAVED


@pytest.mark.parametrize("damage", ["", "{", "gone"])
async def test_a_damaged_file_or_none_changes_nothing(talked: World, damage: str) -> None:
    await save(talked)
    path = folder(talked) / f"{SHIPPED}.json"
    if damage == "gone":
        path.unlink()
    else:
        path.write_text(damage)
    with pytest.raises(SessionError, match="is gone" if damage == "gone" else "is damaged"):
        await restore(talked)
    assert await talked.seen() == SAVED
    assert (await count(talked, "messages"), await count(talked, "operations")) == (4, 0)
