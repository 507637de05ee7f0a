"""/context save, history, show and restore."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.framework.command_line import completions
from chorus_cli.framework.replies import Report, Table
from tests.sessions.service.saved_sessions import folder
from tests.terminal.screen.terminal_file import seen
from tests.world import World

NAME = "2026-02-12_auth-refactor"


async def save(world: World, line: str = "/context save Auth refactor", summary: str = "It is done.") -> str:
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
    assert await save(greeted) == f"Saved session {NAME}: 2 messages, ~10 tokens\nIt is done."
    assert (folder(greeted) / f"{NAME}.json").is_file()


async def test_the_description_is_the_rest_of_the_line_as_it_is_typed(greeted: World) -> None:
    await save(greeted, '/context save don\'t  lose "this"')
    assert (await table(greeted)).rows[0][2] == 'don\'t lose "this"'
    assert (await save(greeted, "/context save")).startswith("Saved session 2026-02-12_")


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
    await save(greeted)
    greeted.clock.advance(timedelta(minutes=1))
    await save(greeted, "/context save Tests", "They pass.")
    found = await table(greeted)
    assert found.columns == ("Session", "When", "Description", "Summary", "Messages")
    assert found.rows == (
        ("2026-02-12_tests", "Thu 2026-02-12 14:31", "Tests", "They pass.", "2"),
        (NAME, "Thu 2026-02-12 14:30", "Auth refactor", "It is done.", "2"),
    )


async def test_history_has_the_first_sentence_of_a_summary_and_show_the_whole(greeted: World) -> None:
    summary = "We agreed on v2.1 e.g. for the bridge. Then " + "we went on and on " * 60
    await save(greeted, summary=summary)
    assert (await table(greeted)).rows[0][3] == "We agreed on v2.1 e.g. for the bridge."
    assert summary.strip() in await greeted.told(f"/context show {NAME}")


async def test_history_without_any_says_so_and_names_what_is_damaged(greeted: World) -> None:
    assert await greeted.told("/context history") == "No saved sessions."
    folder(greeted).mkdir()
    (folder(greeted) / f"{NAME}.json").write_text("{")
    told = await greeted.told("/context history")
    assert told.startswith("No saved sessions.\n\n")
    assert f"{NAME}.json is damaged" in told


async def test_history_has_ten_a_page(greeted: World) -> None:
    for number in range(21):
        await save(greeted, f"/context save s{number:02}")
        greeted.clock.advance(timedelta(seconds=1))
    first, last = await table(greeted), await table(greeted, "/context history 3")
    assert [row[2] for row in first.rows] == [f"s{number:02}" for number in range(20, 10, -1)]
    assert [row[2] for row in last.rows] == ["s00"]
    for line, told in (
        ("/context history", "Page 1 of 3. /context history 2 shows older ones."),
        ("/context history chorus 3", "Page 3 of 3. /context history chorus 2 shows newer ones."),
        ("/context history 4", "There is no page 4; the last is 3."),
        ("/context history 0", "Page numbers start at 1."),
    ):
        assert told in await greeted.told(line)


async def test_history_of_another_persona_by_a_name_of_any_number_of_words(greeted: World) -> None:
    await greeted.persona_admin.create("Frodo of the Shire")
    await save(greeted)
    for typed in ("Frodo of the Shire", "frodo", "frodo of the shire 1", "frodo #1"):
        assert await greeted.told(f"/context history {typed}") == "No saved sessions."
    assert len((await table(greeted, "/context history chorus")).rows) == 1
    assert (await greeted.told("/context history nobody")).startswith("There is no persona called 'nobody'")
    assert "chorus" in offers(greeted, "/context history ")


async def test_show_has_what_is_known_the_summary_and_the_transcript(greeted: World) -> None:
    await save(greeted)
    told = await greeted.told("/context show 2026")
    for part in (
        f"Session      {NAME}",
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
    await save(greeted)
    told = await greeted.told(f"/context show {NAME}")
    assert "--- Thread #1 ---\n\n[2026-02-12 14:30:00] Human: Hello" in told
    assert "--- Thread #2 ---\n\n[2026-02-12 14:30:00] Human: Broken" in told
    assert told.endswith("chorus: half a [truncated]")
    assert "Threads      #1, #2 Rome" in told


async def test_context_restore_command_loads_session(greeted: World) -> None:
    needs = "/context restore needs <id>."
    assert (
        await greeted.told("/context restore") == f"{needs} There are no saved sessions yet; /context save makes one."
    )
    await save(greeted)
    await greeted.told("/new")
    assert await greeted.told("/context restore") == (
        f"{needs} /context restore {NAME} restores the newest session; /context history lists all."
    )
    for typed in ("2026-02-12", "Auth refactor"):
        assert await greeted.told(f"/context restore {typed}") == (
            f"Restored session {NAME}: 2 messages in place of the old context. /context undo reverts this."
        )
        assert await greeted.seen() == ["Hello", "ok"]
        assert (await greeted.told("/context undo")).startswith("Undone: ")
        assert await greeted.seen() == []


async def test_restoring_says_which_thread_it_is_and_what_was_not_in_the_log(greeted: World) -> None:
    await save(greeted)
    path = folder(greeted) / f"{NAME}.json"
    path.write_text(path.read_text().replace('"Hello"', '"Hello, edited"'))
    await greeted.threads.new("Other")
    told = (await greeted.told(f"/context restore {NAME}")).splitlines()
    assert told[1:] == ["Messages added to the log from the file: 1.", "You are now in thread #1."]
    assert await greeted.seen() == ["Hello, edited", "ok"]


@pytest.mark.parametrize("command", ["show", "restore"])
async def test_names_are_completed_newest_first_with_when_and_what(greeted: World, command: str) -> None:
    await save(greeted, "/context save One")
    greeted.clock.advance(timedelta(minutes=1))
    await save(greeted)
    (folder(greeted) / "2026-02-12_broken.json").write_text("{")
    # They are read in the background.
    assert offers(greeted, f"/context {command} ") == {}
    for _ in range(2):
        await greeted.told("/thread")
    assert [*offers(greeted, f"/context {command} ").items()] == [
        (NAME, "Thu 2026-02-12 14:31  Auth refactor"),
        ("2026-02-12_one", "Thu 2026-02-12 14:30  One"),
        ("2026-02-12_broken", ""),
    ]
    assert offers(greeted, f"/context {command} 2026-02-12_au") == {NAME: "Thu 2026-02-12 14:31  Auth refactor"}
    assert offers(greeted, f"/context {command} 2027") == {}
