"""/context save, history, show and restore: the answers, the context that is restored, the rows, and the refusals."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.context.rules.memory import ids_held
from chorus_cli.core.errors import ModelError, SessionError, StorageError
from chorus_cli.framework.command_line import completions
from chorus_cli.framework.replies import Report, Table
from chorus_cli.log.rules.messages import Role, Status
from tests.sessions.service.saved_sessions import SHIPPED, count, folder, restore, save, sql
from tests.storage.database import refuse
from tests.terminal.screen.terminal_file import seen
from tests.world import World, built

SAVED = ["Hello", "Hi there", "How are you?", "ok"]


async def saved(world: World, line: str = "/context save Auth refactor", summary: str = "It is done.") -> str:
    world.model.say(summary)
    return await world.told(line)


async def table(world: World, line: str = "/context history") -> Table:
    answer = await world.carry_out(line)
    assert isinstance(answer, Report)
    assert isinstance(answer.parts[0], Table)
    return answer.parts[0]


def offers(world: World, line: str) -> dict[str, str]:
    found = completions(world.services.registry, world.services, line).candidates
    return {each.text: each.description for each in found}


@pytest.fixture
async def greeted(world: World) -> World:
    await world.say("Hello")
    return world


async def test_context_save_command_creates_snapshot(greeted: World) -> None:
    assert await saved(greeted) == f"Saved session {SHIPPED}: 2 messages, ~10 tokens\nIt is done."
    assert (folder(greeted) / f"{SHIPPED}.json").is_file()


async def test_a_summary_that_was_stopped_is_told_in_a_sentence_alone(greeted: World) -> None:
    greeted.model.enqueue(asyncio.Event())
    requests = len(greeted.model.requests)
    saving = asyncio.create_task(greeted.told("/context save Auth"))
    await seen(lambda: len(greeted.model.requests) > requests)
    saving.cancel()
    lines = (await saving).splitlines()
    assert lines[1:] == ["The summary was stopped; the session is saved without one."]
    assert (await table(greeted)).rows[0][3] == "(no summary: stopped)"


async def test_context_history_command_returns_embed(greeted: World) -> None:
    await saved(greeted)
    greeted.clock.advance(timedelta(minutes=1))
    await saved(greeted, "/context save Tests", "They pass.")
    found = await table(greeted)
    assert found.columns == ("Session", "When", "Description", "Summary", "Messages")
    assert found.rows == (
        ("2026-02-12_tests", "Thu 2026-02-12 14:31", "Tests", "They pass.", "2"),
        (SHIPPED, "Thu 2026-02-12 14:30", "Auth refactor", "It is done.", "2"),
    )


async def test_history_has_the_first_sentence_of_a_summary_and_show_the_whole(greeted: World) -> None:
    summary = "We agreed on v2.1 e.g. for the bridge. Then " + "we went on and on " * 60
    await saved(greeted, summary=summary)
    assert (await table(greeted)).rows[0][3] == "We agreed on v2.1 e.g. for the bridge."
    assert summary.strip() in await greeted.told(f"/context show {SHIPPED}")


async def test_history_without_any_says_so_and_names_what_is_damaged(greeted: World) -> None:
    assert await greeted.told("/context history") == "No saved sessions."
    folder(greeted).mkdir()
    (folder(greeted) / f"{SHIPPED}.json").write_text("{")
    told = await greeted.told("/context history")
    assert told.startswith("No saved sessions.\n\n")
    assert f"{SHIPPED}.json is damaged" in told


async def test_history_has_ten_a_page(greeted: World) -> None:
    for number in range(21):
        await saved(greeted, f"/context save s{number:02}")
        greeted.clock.advance(timedelta(seconds=1))
    first, last = await table(greeted), await table(greeted, "/context history 3")
    assert [row[2] for row in first.rows] == [f"s{number:02}" for number in range(20, 10, -1)]
    assert [row[2] for row in last.rows] == ["s00"]
    for line, told in (
        ("/context history", "Page 1 of 3; a page number after the command shows another."),
        ("/context history chorus 3", "Page 3 of 3; a page number after the command shows another."),
        ("/context history 4", "There is no page 4; the last is 3."),
        ("/context history 0", "There is no page 0; the last is 3."),
    ):
        assert told in await greeted.told(line)


async def test_history_of_another_persona_by_a_name_of_any_number_of_words(greeted: World) -> None:
    await greeted.persona_admin.create("Frodo of the Shire")
    await saved(greeted)
    for typed in ("Frodo of the Shire", "frodo", "frodo of the shire 1", "frodo #1"):
        assert await greeted.told(f"/context history {typed}") == "No saved sessions."
    assert len((await table(greeted, "/context history chorus")).rows) == 1
    assert (await greeted.told("/context history nobody")).startswith("There is no persona called 'nobody'")
    assert "chorus" in offers(greeted, "/context history ")


async def test_show_has_what_is_known_the_summary_and_the_transcript(greeted: World) -> None:
    await saved(greeted)
    told = await greeted.told("/context show 2026")
    for part in (
        f"Session      {SHIPPED}",
        "Saved        Thu 2026-02-12 14:30",
        "Description  Auth refactor",
        "Window       Thu 2026-02-12 06:30 to Thu 2026-02-12 14:30",
        "Messages     2",
        "Threads      #1",
        "\n\nIt is done.\n\n",
        "[2026-02-12 14:30:00] Human: Hello\n\n[2026-02-12 14:30:00] chorus: ok",
    ):
        assert part in told


async def test_show_parts_the_threads_and_marks_what_broke_off(greeted: World) -> None:
    await greeted.threads.new("Rome")
    greeted.model.enqueue(ModelError("no"))
    greeted.model.say("half a", finish_reason=None)
    await greeted.say("Broken")
    await greeted.say("Again")
    await saved(greeted)
    told = await greeted.told(f"/context show {SHIPPED}")
    assert "--- Thread #1 ---\n\n[2026-02-12 14:30:00] Human: Hello" in told
    assert "--- Thread #2 ---\n\n[2026-02-12 14:30:00] Human: Broken" in told
    assert told.endswith("chorus: half a [truncated]")
    assert "Threads      #1, #2 Rome" in told


async def test_context_restore_command_loads_session(greeted: World) -> None:
    assert await greeted.told("/context restore") == "Which session? /context history lists them."
    await saved(greeted)
    await greeted.told("/new")
    for typed in ("2026-02-12", "Auth refactor"):
        assert await greeted.told(f"/context restore {typed}") == (
            f"Restored session {SHIPPED}: 2 messages in place of the old context. /context undo reverts this."
        )
        assert await greeted.seen() == ["Hello", "ok"]
        assert (await greeted.told("/context undo")).startswith("Undone: ")
        assert await greeted.seen() == []


async def test_restoring_says_which_thread_it_is_and_what_was_not_in_the_log(greeted: World) -> None:
    await saved(greeted)
    path = folder(greeted) / f"{SHIPPED}.json"
    path.write_text(path.read_text().replace('"Hello"', '"Hello, edited"'))
    await greeted.threads.new("Other")
    told = (await greeted.told(f"/context restore {SHIPPED}")).splitlines()
    assert told[1:] == ["The log has 1 new message from the file.", "You are now in thread #1."]
    assert await greeted.seen() == ["Hello, edited", "ok"]


@pytest.mark.parametrize("command", ["show", "restore"])
async def test_names_are_completed_newest_first_with_when_and_what(greeted: World, command: str) -> None:
    await saved(greeted, "/context save One")
    greeted.clock.advance(timedelta(minutes=1))
    await saved(greeted)
    (folder(greeted) / "2026-02-12_broken.json").write_text("{")
    # They are read in the background.
    assert offers(greeted, f"/context {command} ") == {}
    await asyncio.gather(*(each for each in asyncio.all_tasks() if "_read_offers" in str(each.get_coro())))
    assert [*offers(greeted, f"/context {command} ").items()] == [
        (SHIPPED, "Thu 2026-02-12 14:31  Auth refactor"),
        ("2026-02-12_one", "Thu 2026-02-12 14:30  One"),
        ("2026-02-12_broken", ""),
    ]
    assert offers(greeted, f"/context {command} 2026-02-12_au") == {SHIPPED: "Thu 2026-02-12 14:31  Auth refactor"}
    assert offers(greeted, f"/context {command} 2027") == {}


# The context and the log


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
    loaded, restored = await talked.sessions.restore(talked.current.target(), "2025")
    assert (loaded.session.session_id, restored.added) == ("2025-01-01_far", 5)
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


async def test_memory_items_and_earlier_turns_of_another_machine_are_cut_out_because_their_numbers_mean_others_here(
    talked: World,
) -> None:
    foreign = far_away()
    for message in foreign["messages"]:
        message["preamble"] = (
            "(a preamble)\nFrom memory:\n#1 TASK: a thing of far away\n"
            "Said earlier:\n#1 (2026-02-12, Human): a word of far away"
        )
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
    await talked.store.write(refuse, "INSERT ON messages", "full", "new.content = '42'")
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
        with pytest.raises(SessionError, match=r"chorus has no session '.*'\. /context history lists the sessions\."):
            await restore(talked, typed)


async def test_an_unfinished_name_that_may_be_several_is_answered_with_all_of_them(talked: World) -> None:
    for description in ("One", "Two"):
        await save(talked, description)
    with pytest.raises(SessionError, match="'2026' is ambiguous: 2026-02-12_one or 2026-02-12_two"):
        await restore(talked, "2026")
    for _ in range(8):
        await save(talked, "One")
    with pytest.raises(SessionError, match=r"2026-02-12_one-2, .* or one of 4 more"):
        await restore(talked, "2026")


async def test_another_personas_session_is_none_of_this_one(talked: World) -> None:
    await talked.persona_admin.create("Frodo")
    await save(talked)
    (folder(talked, "frodo")).mkdir()
    (folder(talked) / f"{SHIPPED}.json").rename(folder(talked, "frodo") / "2026-03-01_ring.json")
    for typed in ("2026-03", "ring", "2026-03-01_ring"):
        with pytest.raises(SessionError, match=rf"chorus has no session '{typed}'"):
            await restore(talked, typed)
    assert await talked.seen() == SAVED


@pytest.mark.parametrize(("written", "refusal"), [("{", "is damaged"), (None, "has no file here: .*json")])
async def test_a_damaged_file_or_none_changes_nothing(talked: World, written: str | None, refusal: str) -> None:
    await save(talked)
    path = folder(talked) / f"{SHIPPED}.json"
    path.unlink()
    # A Chorus up to 0.2.0 stored no ids.
    await sql(talked, "UPDATE sessions SET contents = ''")
    if written:
        path.write_text(written)
    with pytest.raises(SessionError, match=refusal):
        await restore(talked)
    assert await talked.seen() == SAVED
    assert (await count(talked, "messages"), await count(talked, "operations")) == (4, 0)


async def test_a_file_that_still_has_a_purged_message_is_restored_only_after_its_own_purge(talked: World) -> None:
    await save(talked)
    path = folder(talked) / f"{SHIPPED}.json"
    of_another_machine = path.read_text()
    await (await talked.asked_back("/purge message 1")).confirmed()
    path.write_text(of_another_machine)
    with pytest.raises(SessionError, match="has a message that was purged, so it was not restored"):
        await restore(talked)
    assert await count(talked, "messages") == 4
    await (await talked.asked_back("/purge search Hello")).confirmed()
    await restore(talked)
    assert await talked.seen() == SAVED[1:]
