"""Saving, listing and restoring sessions, on a real database and real files."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pytest

from chorus_cli.core.errors import ModelError, SessionError, StorageError
from chorus_cli.core.events import ReplyEnd, TextDelta
from chorus_cli.core.messages import Role, Status
from chorus_cli.core.model_choice import ELIZA
from chorus_cli.core.operations import Kind
from chorus_cli.core.session_summary import FAILED
from chorus_cli.services.session_saving import Saved, SessionSaving
from chorus_cli.services.summarizer import Summarizer
from chorus_cli.storage import session_rows
from tests.services.world import World, built

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from chorus_cli.core.jsonc import JsonValue

SHIPPED = "2026-02-12_auth-refactor"


async def save(world: World, description: str = "Auth refactor", summary: str = "It is done.") -> Saved:
    world.model.say(summary)
    return await world.sessions.saving.save(world.focus.place(), description)


async def save_idle(world: World, summary: str = "Idle.", description: str = "Silence") -> Saved | None:
    world.model.say(summary)
    return await world.sessions.saving.save_idle(world.focus.place(), description)


async def unsaved(world: World) -> list[str]:
    return [message.content for message in await world.sessions.saving.unsaved(world.focus.place())]


async def restore(world: World, session_id: str = SHIPPED) -> None:
    await world.sessions.restore(world.focus.place(), session_id)


async def undo(world: World) -> None:
    await world.journal.undo(world.focus.place(), None)


def folder(world: World, slug: str = "chorus") -> Path:
    return world.folder / "personas" / slug / "sessions"


def file_of(world: World, session_id: str = SHIPPED) -> dict[str, JsonValue]:
    text = (folder(world) / f"{session_id}.json").read_text(encoding="utf-8")
    return cast("dict[str, JsonValue]", json.loads(text))


async def count(world: World, table: str) -> int:
    def counted(connection: sqlite3.Connection) -> int:
        return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])  # noqa: S608 - a constant

    return await world.store.read(counted)


async def sql(world: World, statement: str, *values: object) -> None:
    await world.store.write(lambda connection: connection.execute(statement, values))


@pytest.fixture
async def talked(world: World) -> World:
    """Two turns, ten minutes ago."""
    world.model.say("Hi there")
    await world.say("Hello")
    await world.say("How are you?")
    world.clock.advance(timedelta(minutes=10))
    return world


# Save


async def test_save_session_creates_json_file(talked: World) -> None:
    saved = await save(talked)
    assert saved.row.session_id == SHIPPED
    document = file_of(talked)
    messages = cast("list[dict[str, JsonValue]]", document["messages"])
    assert [each["content"] for each in messages] == ["Hello", "Hi there", "How are you?", "ok"]
    assert messages[0]["timestamp"] == "2026-02-12T14:30:00.000000Z"
    assert document["message_count"] == 4
    assert document["token_estimate"] == saved.row.token_estimate == 4 * 4 + 1 + 2 + 3 + 1
    assert document["window_start"] == "2026-02-12T06:40:00.000000Z"
    assert document["window_end"] == document["timestamp"] == "2026-02-12T14:40:00.000000Z"
    assert document["active_thread_id"] == 1


async def test_save_session_stores_metadata_in_sqlite(talked: World) -> None:
    saved = await save(talked)
    (row,) = await talked.store.read(session_rows.of, "chorus")
    assert row == saved.row
    assert (row.description, row.summary, row.message_count) == ("Auth refactor", "It is done.", 4)
    assert (row.trigger, row.through_message_id) == ("manual", 4)


async def test_save_session_generates_summary(talked: World) -> None:
    saved = await save(talked, summary="JWT works. Tests are missing.")
    assert saved.row.summary == file_of(talked)["summary"] == "JWT works. Tests are missing."
    assert "2 to 4 sentences" in talked.model.requests[-1].messages[0].content
    assert "Human: Hello\n\nchorus: Hi there\n\nHuman: How are you?" in talked.model.requests[-1].messages[1].content


async def test_generate_summary_returns_short_text(talked: World) -> None:
    saved = await save(talked, summary="word " * 5000)
    assert len(saved.row.summary) <= 1500


async def test_save_does_not_clear_context(talked: World) -> None:
    before = await talked.seen()
    await save(talked)
    assert await talked.seen() == before != []
    assert await count(talked, "operations") == 0


@pytest.mark.parametrize(("description", "name"), [("Fix: the *bug*", "2026-02-12_fix-the-bug"), ("", "2026-02-12_")])
async def test_save_session_filename_format(talked: World, description: str, name: str) -> None:
    saved = await save(talked, description)
    assert saved.row.session_id.startswith(name)
    assert (folder(talked) / f"{saved.row.session_id}.json").is_file()


async def test_save_session_with_custom_description(talked: World) -> None:
    saved = await save(talked, "  don't lose this \udcff ")
    assert saved.row.description == file_of(talked, saved.row.session_id)["description"] == "don't lose this \ufffd"


async def test_save_session_empty_context_raises(world: World) -> None:
    with pytest.raises(SessionError, match="There is nothing to save: chorus has nothing in context"):
        await save(world)
    await world.say("Hello")
    await world.journal.clear(world.focus.place())
    with pytest.raises(SessionError, match="nothing to save"):
        await save(world)
    assert not folder(world).exists()
    assert await count(world, "sessions") == 0


async def test_the_same_name_on_the_same_day_is_numbered(talked: World) -> None:
    names = [(await save(talked)).row.session_id for _ in range(3)]
    assert names == [SHIPPED, f"{SHIPPED}-2", f"{SHIPPED}-3"]


async def test_only_what_the_window_and_the_boundary_hold_is_saved(talked: World) -> None:
    await talked.journal.clear(talked.focus.place())
    await talked.say("Old")
    talked.clock.advance(timedelta(hours=9))
    await talked.say("New")
    saved = await save(talked)
    assert saved.row.message_count == 2


async def test_all_threads_are_saved_and_the_active_one_is_named(talked: World) -> None:
    await talked.focus.open_thread("Rome")
    await talked.say("To Rome")
    await talked.focus.open_thread("Silent")
    saved = await save(talked)
    document = file_of(talked)
    assert saved.row.message_count == 6
    assert document["active_thread_id"] == 3
    assert document["threads"] == [
        {"id": 1, "title": "", "summary": ""},
        {"id": 2, "title": "Rome", "summary": ""},
        {"id": 3, "title": "Silent", "summary": ""},
    ]


async def test_a_reply_in_progress_and_one_that_never_began_stay_out(talked: World) -> None:
    talked.model.enqueue(ModelError("no"))
    await talked.say("Broken")
    hold = asyncio.Event()
    talked.model.enqueue(TextDelta("Half"), hold, ReplyEnd("stop"))
    running = asyncio.create_task(talked.say("Slow"))
    while len(talked.model.requests) < 4:  # noqa: ASYNC110 - the turn has no other sign of having begun
        await asyncio.sleep(0.001)
    saved = await save(talked)
    assert (saved.in_progress, saved.row.message_count) == (1, 6)
    assert saved.row.through_message_id == 6
    hold.set()
    await running


async def test_nothing_but_a_reply_in_progress_is_nothing_to_save(world: World) -> None:
    await sql(
        world,
        "INSERT INTO messages(persona, thread_id, role, content, timestamp, status, run) "
        "VALUES ('chorus', 1, 'assistant', 'Half', '2026-02-12T14:00:00Z', 'streaming', 'this-run')",
    )
    with pytest.raises(SessionError, match="only a reply that is still being written"):
        await save(world)


@pytest.mark.parametrize("failure", [(ModelError("The key is wrong."),), (TextDelta(" "), ReplyEnd("stop"))])
async def test_generate_summary_handles_llm_failure_gracefully(
    talked: World, failure: tuple[ModelError | TextDelta | ReplyEnd, ...]
) -> None:
    talked.model.enqueue(*failure)
    saved = await talked.sessions.saving.save(talked.focus.place(), "")
    assert saved.row.summary == FAILED == "(summary generation failed)"
    assert saved.problem
    assert file_of(talked, saved.row.session_id)["summary"] == FAILED
    assert len((await talked.sessions.listing("chorus")).rows) == 1


async def test_a_summary_that_takes_too_long_does_not_keep_the_session_from_being_saved(talked: World) -> None:
    hurried = Summarizer(talked.model, talked.context, 0.02)
    saving = SessionSaving(talked.personas.folder, talked.clock, talked.context, hurried)
    talked.model.enqueue(asyncio.Event())
    saved = await saving.save(talked.focus.place(), "Slow")
    assert saved.row.summary == FAILED
    assert "did not write a summary within 0.02 s" in saved.problem


async def test_a_session_of_eliza_gets_a_labelled_extract(talked: World) -> None:
    talked.focus.use_model("chorus", ELIZA)
    requests = len(talked.model.requests)
    saved = await talked.sessions.saving.save(talked.focus.place(), "")
    assert saved.row.summary == "Extract, as ELIZA does not summarise: “Hello” … “How are you?”"
    assert len(talked.model.requests) == requests


async def test_a_folder_that_cannot_be_written_is_said_and_nothing_is_stored(talked: World) -> None:
    folder(talked).write_text("in the way")
    with pytest.raises(SessionError, match="Nothing was saved"):
        await save(talked)
    assert await count(talked, "sessions") == 0


async def test_saving_twice_at_once_makes_two_sessions(talked: World) -> None:
    first, second = await asyncio.gather(save(talked), save(talked))
    assert {first.row.session_id, second.row.session_id} == {SHIPPED, f"{SHIPPED}-2"}


# History


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
    offers = talked.sessions.offers("chorus")
    assert [offer.session_id for offer in offers] == ["2026-02-12_two", "2026-02-12_one", "2026-02-12_broken"]
    assert offers[0].head is not None
    assert offers[0].head.description == "Two"
    assert talked.sessions.offers("nobody") == []


# Restore


async def test_restore_session_sets_context(talked: World) -> None:
    await save(talked)
    before = await talked.seen()
    rows = await count(talked, "messages")
    await talked.say("Something else")
    talked.clock.advance(timedelta(hours=20))
    await talked.say("Now")
    await restore(talked)
    assert await talked.seen() == before
    assert await count(talked, "messages") == rows + 4


async def test_restore_session_loads_messages_with_their_times_although_they_are_old(talked: World) -> None:
    await save(talked)
    talked.clock.advance(timedelta(days=30))
    await restore(talked)
    seen = await talked.context.seen(talked.focus.place(), talked.clock.now())
    assert [message.content for message in seen.messages] == ["Hello", "Hi there", "How are you?", "ok"]
    assert f"{seen.messages[0].timestamp:%Y-%m-%d}" == "2026-02-12"


async def test_what_is_said_next_follows_the_restored_messages(talked: World) -> None:
    await save(talked)
    await talked.journal.clear(talked.focus.place())
    await restore(talked)
    await talked.say("And now?")
    asked = [content for _, content in talked.asked()]
    assert asked[:2] == ["Hello", "Hi there"]
    assert asked[-1].endswith("And now?")


async def test_restoring_twice_gives_no_duplicates(talked: World) -> None:
    await save(talked)
    await restore(talked)
    view, rows = await talked.seen(), await count(talked, "messages")
    await restore(talked)
    assert await talked.seen() == view
    assert await count(talked, "messages") == rows
    assert await count(talked, "threads") == 1


async def test_undo_brings_the_earlier_context_back_exactly(talked: World) -> None:
    await save(talked)
    await talked.journal.clear(talked.focus.place())
    await talked.say("Something else")
    before = await talked.context.seen(talked.focus.place(), talked.clock.now())
    await restore(talked)
    assert await talked.seen() != [message.content for message in before.messages]
    await undo(talked)
    assert await talked.context.seen(talked.focus.place(), talked.clock.now()) == before


async def test_restore_is_one_operation_of_all_threads(talked: World) -> None:
    await talked.focus.open_thread("Rome")
    await talked.say("To Rome")
    await save(talked)
    await talked.focus.open_thread("Athens")
    await talked.say("To Athens")
    await restore(talked)
    assert talked.focus.place().thread_id == 2
    assert await talked.seen() == ["To Rome", "ok"]
    await talked.focus.turn_to_thread(1)
    assert len(await talked.seen()) == 4
    await talked.focus.turn_to_thread(3)
    assert await talked.seen() == []
    (entry,) = await talked.journal.entries(talked.focus.place())
    assert (entry.operation.kind, entry.operation.thread_id) == (Kind.RESTORE, None)


async def test_the_active_thread_is_turned_to_also_after_a_restart_and_although_it_was_closed(talked: World) -> None:
    await save(talked)
    await talked.focus.open_thread("Other")
    await sql(talked, "UPDATE threads SET closed_at = '2026-02-12T15:00:00Z' WHERE id = 1")
    await restore(talked)
    assert talked.focus.place().thread_id == 1
    await talked.focus.open(None)
    assert talked.focus.place().thread_id == 1


async def test_an_active_thread_in_which_nothing_was_said_is_turned_to_as_well(talked: World) -> None:
    await talked.focus.open_thread("Silent")
    await save(talked)
    await talked.focus.turn_to_thread(1)
    await restore(talked)
    assert talked.focus.place().thread_id == 2
    assert await count(talked, "threads") == 2


async def test_a_turn_that_is_still_running_follows_the_restored_messages(talked: World) -> None:
    await save(talked)
    hold = asyncio.Event()
    talked.model.enqueue(TextDelta("Late"), hold, ReplyEnd("stop"))
    running = asyncio.create_task(talked.say("Meanwhile"))
    while len(talked.model.requests) < 4:  # noqa: ASYNC110 - the turn has no other sign of having begun
        await asyncio.sleep(0.001)
    await restore(talked)
    hold.set()
    await running
    assert await talked.seen() == ["Hello", "Hi there", "How are you?", "ok", "Meanwhile", "Late"]


async def test_a_file_of_another_machine_works_and_twice_gives_no_duplicates(talked: World, tmp_path: Path) -> None:
    await talked.say("Ours")
    other = await built(tmp_path / "other", talked.store, talked.clock, talked.model, limit_tokens=10_000)
    await sql(other, "INSERT INTO threads(id, persona, title) VALUES (41, 'elsewhere', 'Far away')")
    foreign = file_of_far_away()
    folder(talked).mkdir()
    (folder(talked) / "2025-01-01_far.json").write_text(json.dumps(foreign), encoding="utf-8")
    session, restored = await talked.sessions.restore(talked.focus.place(), "2025")
    assert (session.session_id, restored.added) == ("2025-01-01_far", 5)
    assert talked.focus.place().thread_id == restored.thread_id not in {1, 7}
    seen = await talked.context.seen(talked.focus.place(), talked.clock.now())
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
    again = (await talked.sessions.restore(talked.focus.place(), "2025"))[1]
    assert (again.added, again.thread_id) == (0, restored.thread_id)
    assert [await count(talked, table) for table in ("messages", "threads")] == tables


def file_of_far_away() -> dict[str, JsonValue]:
    said: dict[str, JsonValue] = {"timestamp": "2025-01-01T10:00:00.000001Z", "thread": 7, "turn": 70}
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
            {**said, "role": "user", "content": "Alone", "status": "complete", "thread": 1, "turn": 1},
            {**said, "role": "user", "content": "What is 6 x 7?", "status": "complete", "preamble": "(a preamble)"},
            {
                **said,
                "role": "tool_use",
                "content": "",
                "status": "complete",
                "tool_calls": '[{"id": "c"}]',
                "tool_call_id": "c",
            },
            {**said, "role": "tool_result", "content": "42", "status": "complete", "tool_call_id": "c"},
            {**said, "role": "assistant", "content": "It is", "status": "interrupted"},
        ],
    }


async def test_rows_that_were_put_in_with_plain_sql_are_known_again(world: World) -> None:
    for text, time in (("One", "14:00:00Z"), ("Two", "14:00:01.5Z"), ("Three", "14:00:02.120Z")):
        await sql(
            world,
            "INSERT INTO messages(persona, thread_id, role, content, timestamp) VALUES ('chorus', 9, 'user', ?, ?)",
            text,
            f"2026-02-12T{time}",
        )
    await save(world)
    await world.journal.clear(world.focus.place())
    await restore(world)
    assert await count(world, "messages") == 3
    await sql(world, "INSERT INTO threads(id, persona) VALUES (9, 'chorus')")
    await world.focus.turn_to_thread(9)
    assert await world.seen() == ["One", "Two", "Three"]


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
    await talked.roster.create("Frodo")
    await save(talked)
    (folder(talked, "frodo")).mkdir()
    (folder(talked) / f"{SHIPPED}.json").rename(folder(talked, "frodo") / "2026-03-01_ring.json")
    await sql(talked, "UPDATE sessions SET persona = 'frodo'")
    before = await talked.seen()
    for typed in (SHIPPED, "2026-02", "2026-03-01_ring"):
        with pytest.raises(SessionError, match=r"is a session of Frodo, not of chorus\. /persona frodo turns to Frodo"):
            await restore(talked, typed)
    assert await talked.seen() == before


@pytest.mark.parametrize("damage", ["", "{", "gone"])
async def test_restore_session_corrupted_file_raises_and_changes_nothing(talked: World, damage: str) -> None:
    await save(talked)
    path = folder(talked) / f"{SHIPPED}.json"
    if damage == "gone":
        path.unlink()
    else:
        path.write_text(damage)
    before, rows = await talked.seen(), await count(talked, "messages")
    with pytest.raises(SessionError, match="is gone" if damage == "gone" else "is damaged"):
        await restore(talked)
    assert await talked.seen() == before
    assert (await count(talked, "messages"), await count(talked, "operations")) == (rows, 0)


async def test_a_restore_that_fails_half_way_leaves_nothing(talked: World) -> None:
    folder(talked).mkdir()
    (folder(talked) / "2025-01-01_far.json").write_text(json.dumps(file_of_far_away()), encoding="utf-8")
    await sql(
        talked,
        "CREATE TRIGGER full BEFORE INSERT ON messages WHEN new.content = '42' BEGIN SELECT RAISE(ABORT, 'full'); END",
    )
    tables = [await count(talked, table) for table in ("messages", "threads", "operations")]
    before, thread = await talked.seen(), talked.focus.place().thread_id
    with pytest.raises(StorageError):
        await restore(talked, "2025")
    assert [await count(talked, table) for table in ("messages", "threads", "operations")] == tables
    assert (await talked.seen(), talked.focus.place().thread_id) == (before, thread)


# By itself, after a silence


async def test_nothing_said_since_the_last_save_is_nothing_to_save(talked: World) -> None:
    assert await unsaved(talked) == ["Hello", "Hi there", "How are you?", "ok"]
    await save(talked)
    assert await unsaved(talked) == []
    assert await save_idle(talked) is None
    await talked.journal.clear(talked.focus.place())
    await restore(talked)
    assert await save_idle(talked) is None
    await talked.say("More")
    assert await unsaved(talked) == ["More", "Idle."]
    assert await save_idle(talked) is not None


async def test_an_empty_context_is_not_saved_by_itself(world: World) -> None:
    assert await save_idle(world) is None
    assert not folder(world).exists()


async def test_the_last_idle_session_is_extended_and_its_summary_made_from_the_old_one_and_the_new_messages(
    talked: World,
) -> None:
    first = await save_idle(talked, "They met.", "Hello")
    assert first is not None
    assert (first.row.session_id, first.row.trigger) == ("2026-02-12_hello", "idle")
    await talked.say("What now?")
    second = await save_idle(talked, "They met and went on.", "What now?")
    assert second is not None
    assert (second.row.session_id, second.row.description, second.row.message_count) == ("2026-02-12_hello", "Hello", 6)
    assert second.row.summary == "They met and went on."
    asked = talked.model.requests[-1].messages[1].content
    assert "They met.\n" in asked
    assert "Human: What now?" in asked
    assert "Human: Hello" not in asked
    assert len((await talked.sessions.listing("chorus")).rows) == 1


async def test_what_has_left_the_context_by_age_stays_in_the_session_and_what_was_taken_back_does_not(
    talked: World,
) -> None:
    await save_idle(talked)
    talked.clock.advance(timedelta(hours=5))
    await talked.say("Later")
    await save_idle(talked)
    talked.clock.advance(timedelta(hours=4))
    await talked.say("Last")
    assert "Last" in await talked.told("/undo")
    await talked.say("Instead")
    saved = await save_idle(talked)
    assert saved is not None
    messages = cast("list[dict[str, JsonValue]]", file_of(talked, saved.row.session_id)["messages"])
    said = [each["content"] for each in messages if each["role"] == "user"]
    assert said == ["Hello", "How are you?", "Later", "Instead"]
    assert saved.row.window_start is not None
    assert f"{saved.row.window_start:%H:%M}" == "06:40"


async def test_a_new_conversation_begins_a_new_idle_session(talked: World) -> None:
    first = await save_idle(talked)
    await talked.journal.clear(talked.focus.place())
    await talked.say("Afresh")
    second = await save_idle(talked)
    assert first is not None
    assert second is not None
    assert second.row.session_id != first.row.session_id
    assert len((await talked.sessions.listing("chorus")).rows) == 2


async def test_a_damaged_idle_session_is_left_alone_and_a_new_one_made(talked: World) -> None:
    await save_idle(talked)
    path = folder(talked) / "2026-02-12_silence.json"
    path.write_text("{")
    await talked.say("More")
    saved = await save_idle(talked)
    assert saved is not None
    assert saved.row.session_id == "2026-02-12_silence-2"
    assert path.read_text() == "{"


async def test_what_a_failing_summary_missed_is_in_the_next_one(talked: World) -> None:
    await save_idle(talked, "They met.")
    await talked.say("Second")
    talked.model.enqueue(ModelError("no"))
    assert await talked.sessions.saving.save_idle(talked.focus.place(), "") is not None
    await talked.say("Third")
    await save_idle(talked, "All of it.")
    asked = talked.model.requests[-1].messages[1].content
    assert all(text in asked for text in ("They met.", "Human: Second", "Human: Third"))
    assert "Human: Hello" not in asked


async def test_of_two_windows_that_fall_silent_at_once_one_saves(talked: World) -> None:
    talked.model.say("Summary.")
    talked.model.say("Summary.")
    saving = talked.sessions.saving
    both = await asyncio.gather(*(saving.save_idle(talked.focus.place(), "silence") for _ in range(2)))
    assert sorted(saved is None for saved in both) == [False, True]
    assert len((await talked.sessions.listing("chorus")).rows) == 1


async def test_a_failing_summary_leaves_the_old_one_and_a_failed_one_is_made_anew_from_everything(
    talked: World,
) -> None:
    await save_idle(talked, "They met.")
    await talked.say("More")
    talked.model.enqueue(ModelError("no"))
    saved = await talked.sessions.saving.save_idle(talked.focus.place(), "")
    assert saved is not None
    assert (saved.row.summary, saved.problem) == ("They met.", "no")
    await sql(talked, "UPDATE sessions SET summary = ?", FAILED)
    path = folder(talked) / "2026-02-12_silence.json"
    path.write_text(path.read_text().replace("They met.", FAILED))
    await talked.say("Even more")
    again = await save_idle(talked, "All of it.")
    assert again is not None
    assert again.row.summary == "All of it."
    assert "Human: Hello" in talked.model.requests[-1].messages[1].content
