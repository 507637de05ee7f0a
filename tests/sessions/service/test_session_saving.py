"""Saving a session, on a real database and real files."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pytest

from chorus_cli.core.errors import ModelError, SessionError
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.sessions import rows as session_rows
from chorus_cli.sessions.rules.format import FAILED, STOPPED
from chorus_cli.turns.service.folding import Summarizer
from tests.sessions.service.saved_sessions import SHIPPED, count, file_of, folder, save, sql
from tests.terminal.screen.terminal_file import seen
from tests.world import World

if TYPE_CHECKING:
    from chorus_cli.core.json.jsonc import JsonValue


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
    await world.journal.clear(world.current.target())
    with pytest.raises(SessionError, match="nothing to save"):
        await save(world)
    assert not folder(world).exists()
    assert await count(world, "sessions") == 0


async def test_the_same_name_on_the_same_day_is_numbered(talked: World) -> None:
    names = [(await save(talked)).row.session_id for _ in range(3)]
    assert names == [SHIPPED, f"{SHIPPED}-2", f"{SHIPPED}-3"]


async def test_only_what_the_window_and_the_boundary_hold_is_saved(talked: World) -> None:
    await talked.journal.clear(talked.current.target())
    await talked.say("Old")
    talked.clock.advance(timedelta(hours=9))
    await talked.say("New")
    saved = await save(talked)
    assert saved.row.message_count == 2


async def test_all_threads_are_saved_and_the_active_one_is_named(talked: World) -> None:
    await talked.threads.new("Rome")
    await talked.say("To Rome")
    await talked.threads.new("Silent")
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
    saved = await talked.sessions.save(talked.current.target(), "")
    assert saved.row.summary == FAILED == "(summary generation failed)"
    assert saved.problem
    assert file_of(talked, saved.row.session_id)["summary"] == FAILED
    assert len((await talked.sessions.listing("chorus")).rows) == 1


async def test_a_summary_that_takes_too_long_does_not_keep_the_session_from_being_saved(talked: World) -> None:
    hurried = Summarizer(talked.model, talked.context, talked.clock, 0.02)
    saving = replace(talked.sessions, summarizer=hurried)
    talked.model.enqueue(asyncio.Event())
    saved = await saving.save(talked.current.target(), "Slow")
    assert saved.row.summary == FAILED
    assert "did not write a summary within 0.02 s" in saved.problem


async def test_a_summary_that_is_stopped_does_not_keep_the_session_from_being_saved(talked: World) -> None:
    requests = len(talked.model.requests)
    talked.model.enqueue(asyncio.Event())
    saving = asyncio.create_task(talked.sessions.save(talked.current.target(), "Slow"))
    await seen(lambda: len(talked.model.requests) > requests)
    saving.cancel()
    saved = await saving
    assert (saved.row.summary, saved.problem.partition(";")[0]) == (STOPPED, "The summary was stopped")
    assert file_of(talked, saved.row.session_id)["summary"] == "(no summary: stopped)"
    assert len((await talked.sessions.listing("chorus")).rows) == 1


async def test_a_session_of_eliza_gets_a_labelled_extract(talked: World) -> None:
    talked.current.use_model("chorus", ELIZA)
    requests = len(talked.model.requests)
    saved = await talked.sessions.save(talked.current.target(), "")
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
