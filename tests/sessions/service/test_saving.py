"""Saving the contexts as a session, by command or after a silence, on a real database and real files."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from chorus_cli.core.errors import ModelError, SessionError
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.sessions import rows as session_rows
from chorus_cli.sessions.rules.format import FAILED
from chorus_cli.sessions.service.sessions import Saved
from tests.sessions.service.saved_sessions import (
    SHIPPED,
    count,
    file_of,
    folder,
    restore,
    save,
    save_idle,
    sql,
)
from tests.terminal.screen.terminal_file import seen
from tests.world import World


async def kept(world: World, summary: str = "Idle.") -> Saved:
    """Save after a silence in which there is something to save."""
    saved = await save_idle(world, summary)
    assert saved is not None
    return saved


async def listed(world: World) -> list[session_rows.SessionRow]:
    return [*(await world.sessions.listing("chorus")).rows]


def asked(world: World) -> str:
    """Return what the summary was to be made of."""
    return world.model.requests[-1].messages[1].content


# The file, the row and the name


async def test_save_session_creates_json_file(talked: World) -> None:
    saved = await save(talked)
    assert saved.row.session_id == SHIPPED
    document: Any = file_of(talked)
    assert [each["content"] for each in document["messages"]] == ["Hello", "Hi there", "How are you?", "ok"]
    assert document["messages"][0]["timestamp"] == "2026-02-12T14:30:00.000000Z"
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
    assert await save_idle(world) is None
    await world.say("Hello")
    await world.journal.clear(world.current.target())
    with pytest.raises(SessionError, match="nothing to save"):
        await save(world)
    assert not folder(world).exists()
    assert await count(world, "sessions") == 0


# What is saved


async def test_all_threads_are_saved_and_the_active_one_is_named(talked: World) -> None:
    await talked.threads.new("Rome")
    await talked.say("To Rome")
    await talked.threads.new("Silent")
    saved = await save(talked)
    document = file_of(talked)
    assert saved.row.message_count == 6
    assert document["active_thread_id"] == 3
    titles = {1: "", 2: "Rome", 3: "Silent"}
    assert document["threads"] == [{"id": id_, "title": title, "summary": ""} for id_, title in titles.items()]


async def test_a_reply_in_progress_and_one_that_never_began_stay_out(talked: World) -> None:
    talked.model.enqueue(ModelError("no"))
    await talked.say("Broken")
    hold = asyncio.Event()
    talked.model.enqueue(TextDelta("Half"), hold, ReplyEnd("stop"))
    running = asyncio.create_task(talked.say("Slow"))
    await seen(lambda: len(talked.model.requests) == 4)
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


# The summary


async def test_save_session_generates_summary(talked: World) -> None:
    saved = await save(talked, summary="JWT works. Tests are missing.")
    assert saved.row.summary == file_of(talked)["summary"] == "JWT works. Tests are missing."
    assert "2 to 4 sentences" in talked.model.requests[-1].messages[0].content
    assert "Human: Hello\n\nchorus: Hi there\n\nHuman: How are you?" in asked(talked)


async def test_generate_summary_returns_short_text(talked: World) -> None:
    assert len((await save(talked, summary="word " * 5000)).row.summary) <= 1500


@pytest.mark.parametrize("failure", [(ModelError("The key is wrong."),), (TextDelta(" "), ReplyEnd("stop"))])
async def test_generate_summary_handles_llm_failure_gracefully(
    talked: World, failure: tuple[ModelError | TextDelta | ReplyEnd, ...]
) -> None:
    talked.model.enqueue(*failure)
    saved = await talked.sessions.save(talked.current.target(), "")
    assert saved.row.summary == FAILED == "(summary generation failed)"
    assert saved.problem
    assert file_of(talked, saved.row.session_id)["summary"] == FAILED
    assert len(await listed(talked)) == 1


async def test_a_session_of_eliza_gets_a_labelled_extract(talked: World) -> None:
    talked.current.use_model("chorus", ELIZA)
    requests = len(talked.model.requests)
    saved = await talked.sessions.save(talked.current.target(), "")
    assert saved.row.summary == "ELIZA writes no summaries. Your words: “Hello” … “How are you?”"
    assert len(talked.model.requests) == requests


# The list


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
    await sql(talked, "UPDATE sessions SET contents = ''")
    (folder(talked) / "2026-02-12_broken.json").write_text("{")
    for _ in range(2):
        listing = await talked.sessions.listing("chorus")
        assert {row.description for row in listing.rows} == {"One", "Two"}
        gone, broken = listing.problems
        sought = "is not on this machine. The log alone " if talked.store.server else "is gone. A backup may have it"
        assert gone.startswith(f"The file of 2026-02-12_two {sought}")
        assert "2026-02-12_broken.json is damaged, or is not a session" in broken


# After a silence


async def test_nothing_said_since_the_last_save_is_nothing_to_save(talked: World) -> None:
    await save(talked)
    assert await save_idle(talked) is None
    await talked.journal.clear(talked.current.target())
    await restore(talked)
    assert await save_idle(talked) is None
    await talked.say("More")
    assert (await kept(talked)).row.description == "More"


async def test_the_last_idle_session_is_extended_and_its_summary_made_from_the_old_one_and_the_new_messages(
    talked: World,
) -> None:
    first = await kept(talked, "They met.")
    assert (first.row.session_id, first.row.trigger) == ("2026-02-12_hello", "idle")
    await talked.say("What now?")
    second = await kept(talked, "They met and went on.")
    assert (second.row.session_id, second.row.description, second.row.message_count) == ("2026-02-12_hello", "Hello", 6)
    assert second.row.summary == "They met and went on."
    assert "They met.\n" in asked(talked)
    assert "Human: What now?" in asked(talked)
    assert "Human: Hello" not in asked(talked)
    assert len(await listed(talked)) == 1


async def test_what_has_left_the_context_by_age_stays_in_the_session_and_what_was_taken_back_does_not(
    talked: World,
) -> None:
    await kept(talked)
    talked.clock.advance(timedelta(hours=5))
    await talked.say("Later")
    await kept(talked)
    talked.clock.advance(timedelta(hours=4))
    await talked.say("Last")
    assert "Last" in await talked.told("/undo")
    await talked.say("Instead")
    saved = await kept(talked)
    messages: Any = file_of(talked, saved.row.session_id)["messages"]
    said = [each["content"] for each in messages if each["role"] == "user"]
    assert said == ["Hello", "How are you?", "Later", "Instead"]
    assert saved.row.window_start is not None
    assert f"{saved.row.window_start:%H:%M}" == "06:40"


async def test_a_purge_of_a_message_in_an_idle_session_begins_a_new_one(talked: World) -> None:
    await kept(talked)
    await (await talked.asked_back("/purge message 1")).confirmed()
    await talked.say("Afresh")
    saved = await kept(talked, "All of it.")
    assert (saved.row.session_id, saved.row.message_count) == ("2026-02-12_afresh", 5)
    assert (await listed(talked))[-1].message_count == 3


async def test_a_damaged_idle_session_is_left_alone_and_a_new_one_made(talked: World) -> None:
    await kept(talked)
    path = folder(talked) / "2026-02-12_hello.json"
    path.write_text("{")
    await talked.say("More")
    assert (await kept(talked)).row.session_id == "2026-02-12_more"
    assert path.read_text() == "{"


async def test_of_two_windows_that_fall_silent_at_once_one_saves(talked: World) -> None:
    both = await asyncio.gather(save_idle(talked), save_idle(talked))
    assert sorted(saved is None for saved in both) == [False, True]
    assert len(await listed(talked)) == 1


async def test_a_failing_summary_leaves_the_old_one_and_the_next_one_has_what_it_missed(talked: World) -> None:
    await kept(talked, "They met.")
    await talked.say("Second")
    talked.model.enqueue(ModelError("no"))
    saved = await talked.sessions.save_idle(talked.current.target())
    assert saved is not None
    assert (saved.row.summary, saved.problem) == ("They met.", "no")
    await talked.say("Third")
    await kept(talked, "All of it.")
    assert all(text in asked(talked) for text in ("They met.", "Human: Second", "Human: Third"))
    assert "Human: Hello" not in asked(talked)


async def test_a_summary_that_failed_is_made_anew_from_everything(talked: World) -> None:
    await kept(talked, "They met.")
    path = folder(talked) / "2026-02-12_hello.json"
    path.write_text(path.read_text().replace("They met.", FAILED))
    await talked.say("Even more")
    assert (await kept(talked, "All of it.")).row.summary == "All of it."
    assert "Human: Hello" in asked(talked)


async def test_a_silence_clears_nothing_once_something_was_said_after_what_it_saved(world: World) -> None:
    await world.say("Hello")
    saved = (await world.log())[-1].id
    world.model.enqueue(ModelError("no"))
    await world.say("I am back")
    assert not await world.journal.clear_unless_spoken("chorus", saved)
    assert await world.seen() == ["Hello", "ok", "I am back", ""]
    # The reply that stayed empty is not saved.
    assert await world.journal.clear_unless_spoken("chorus", saved + 1)
    assert await world.seen() == []
