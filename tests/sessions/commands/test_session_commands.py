"""/context save, history, show and restore."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.context import commands as window
from chorus_cli.core.errors import ChorusError, ModelError
from chorus_cli.framework import commands as general
from chorus_cli.framework.command_line import OwnCommands, completions, look_up, resolve
from chorus_cli.framework.registry import CommandRegistry
from chorus_cli.framework.replies import Reply, Report, Table, plain
from chorus_cli.sessions import commands as sessions
from chorus_cli.sessions.commands import saved_line
from chorus_cli.threads.commands.composing import command_of
from chorus_cli.turns import commands as journal
from tests.terminal.screen.terminal_file import seen

if TYPE_CHECKING:
    from chorus_cli.services import Services
    from tests.world import World

NAME = "2026-02-12_auth-refactor"


class Desk:
    """The commands on a context."""

    def __init__(self, world: World) -> None:
        self.world = world

    @property
    def context(self) -> Services:
        groups = (window.GROUP, journal.GROUP, sessions.GROUP, general.GROUP)
        return replace(self.world.services, own_commands=OwnCommands(groups, lambda _slug: (), command_of))

    async def told(self, line: str) -> str:
        here = self.context
        try:
            answer = await resolve(here.registry, line, self.world.clock.now()).run(here)
        except ChorusError as error:
            return str(error)
        assert isinstance(answer, Reply)
        return plain(answer)

    async def table(self, line: str) -> Table:
        here = self.context
        answer = await resolve(here.registry, line, self.world.clock.now()).run(here)
        assert isinstance(answer, Report)
        assert isinstance(answer.parts[0], Table)
        return answer.parts[0]

    async def save(self, line: str = "/context save Auth refactor", summary: str = "It is done.") -> str:
        self.world.model.say(summary)
        return await self.told(line)

    def offers(self, line: str) -> dict[str, str]:
        here = self.context
        return {each.text: each.description for each in completions(here.registry, here, line).candidates}


@pytest.fixture
async def desk(world: World) -> Desk:
    await world.say("Hello")
    return Desk(world)


async def test_context_save_command_creates_snapshot(desk: Desk) -> None:
    assert await desk.save() == f"Saved session {NAME}: 2 messages, ~10 tokens\nIt is done."
    assert (desk.world.folder / "personas" / "chorus" / "sessions" / f"{NAME}.json").is_file()


async def test_the_description_is_the_rest_of_the_line_as_it_is_typed(desk: Desk) -> None:
    await desk.save('/context save don\'t  lose "this"')
    assert (await desk.table("/context history")).rows[0][2] == 'don\'t lose "this"'
    assert (await desk.save("/context save")).startswith("Saved session 2026-02-12_")


async def test_a_failing_summary_says_why(desk: Desk) -> None:
    desk.world.model.enqueue(ModelError("The key is wrong."))
    lines = (await desk.told("/context save Auth")).splitlines()
    assert lines[1:] == ["(summary generation failed)", "The key is wrong."]


async def test_a_summary_that_was_stopped_is_told_in_a_sentence_alone(desk: Desk) -> None:
    desk.world.model.enqueue(asyncio.Event())
    requests = len(desk.world.model.requests)
    saving = asyncio.create_task(desk.told("/context save Auth"))
    await seen(lambda: len(desk.world.model.requests) > requests)
    saving.cancel()
    lines = (await saving).splitlines()
    assert lines[1:] == ["The summary was stopped; the session is saved without one."]
    assert (await desk.table("/context history")).rows[0][3] == "(no summary: stopped)"


async def test_an_empty_context_is_said_to_be_empty(desk: Desk) -> None:
    await desk.told("/new")
    assert (await desk.told("/context save")).startswith("There is nothing to save: chorus has nothing in context.")


async def test_context_history_command_returns_embed(desk: Desk) -> None:
    await desk.save()
    desk.world.clock.advance(timedelta(minutes=1))
    await desk.save("/context save Tests", "They pass.")
    table = await desk.table("/context history")
    assert table.columns == ("Session", "When", "Description", "Summary", "Messages")
    assert table.rows == (
        ("2026-02-12_tests", "Thu 2026-02-12 14:31", "Tests", "They pass.", "2"),
        (NAME, "Thu 2026-02-12 14:30", "Auth refactor", "It is done.", "2"),
    )


LONG = "We agreed on v2.1 e.g. for the bridge. Then " + "we went on and on " * 60


async def test_history_has_the_first_sentence_of_a_summary_and_show_the_whole(desk: Desk) -> None:
    await desk.save(summary=LONG)
    assert (await desk.table("/context history")).rows[0][3] == "We agreed on v2.1 e.g. for the bridge."
    assert LONG.strip() in await desk.told(f"/context show {NAME}")


async def test_what_is_saved_by_itself_is_told_in_one_line_without_its_summary(desk: Desk) -> None:
    desk.world.model.say(LONG)
    saved = await desk.world.services.sessions.save(desk.world.current.target(), "Auth refactor")
    assert saved_line(saved) == f"Saved session {NAME}: 2 messages. /context history lists it."
    assert saved_line(saved._replace(problem="The key is wrong.")).endswith("lists it. The key is wrong.")


async def test_history_without_any_says_so(desk: Desk) -> None:
    assert await desk.told("/context history") == "No saved sessions."
    folder = desk.world.folder / "personas" / "chorus" / "sessions"
    folder.mkdir()
    (folder / f"{NAME}.json").write_text("{")
    told = await desk.told("/context history")
    assert told.startswith("No saved sessions.\n\n")
    assert f"{NAME}.json is damaged" in told


async def test_history_has_ten_a_page(desk: Desk) -> None:
    for number in range(21):
        await desk.save(f"/context save s{number:02}")
        desk.world.clock.advance(timedelta(seconds=1))
    first, last = await desk.table("/context history"), await desk.table("/context history 3")
    assert [row[2] for row in first.rows] == [f"s{number:02}" for number in range(20, 10, -1)]
    assert [row[2] for row in last.rows] == ["s00"]
    assert "Page 1 of 3. /context history 2 shows older ones." in await desk.told("/context history")
    assert "Page 3 of 3. /context history chorus 2 shows newer ones." in await desk.told("/context history chorus 3")
    assert await desk.told("/context history 4") == "There is no page 4; the last is 3."
    assert await desk.told("/context history 0") == "Page numbers start at 1."


async def test_history_of_another_persona_by_a_name_of_any_number_of_words(desk: Desk) -> None:
    await desk.world.persona_admin.create("Frodo of the Shire")
    await desk.save()
    for typed in ("Frodo of the Shire", "frodo", "frodo of the shire 1", "frodo #1"):
        assert await desk.told(f"/context history {typed}") == "No saved sessions."
    assert len((await desk.table("/context history chorus")).rows) == 1
    assert (await desk.told("/context history nobody")).startswith("There is no persona called 'nobody'")


async def test_show_has_what_is_known_the_summary_and_the_transcript(desk: Desk) -> None:
    await desk.save()
    told = await desk.told("/context show 2026")
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


async def test_show_parts_the_threads_and_marks_what_broke_off(desk: Desk) -> None:
    await desk.world.threads.new("Rome")
    desk.world.model.enqueue(ModelError("no"))
    desk.world.model.say("half a", finish_reason=None)
    await desk.world.say("Broken")
    await desk.world.say("Again")
    await desk.save()
    told = await desk.told(f"/context show {NAME}")
    assert "--- Thread #1 ---\n\n[2026-02-12 14:30:00] Human: Hello" in told
    assert "--- Thread #2 ---\n\n[2026-02-12 14:30:00] Human: Broken" in told
    assert told.endswith("chorus: half a [truncated]")
    assert "Threads      #1, #2 Rome" in told


async def test_context_restore_command_loads_session(desk: Desk) -> None:
    await desk.save()
    await desk.told("/new")
    assert await desk.told("/context restore 2026-02-12") == (
        f"Restored session {NAME}: 2 messages in place of the old context. /context undo reverts this."
    )
    assert await desk.world.seen() == ["Hello", "ok"]
    assert (await desk.told("/context undo")).startswith("Undone: ")
    assert await desk.world.seen() == []


async def test_a_session_is_restored_by_its_description_and_the_newest_is_named(desk: Desk) -> None:
    assert await desk.told("/context restore") == (
        "/context restore needs <id>. There are no saved sessions yet; /context save makes one."
    )
    await desk.save()
    await desk.told("/new")
    assert await desk.told("/context restore") == (
        f"/context restore needs <id>. /context restore {NAME} restores the newest session; /context history lists all."
    )
    assert await desk.world.seen() == []
    assert (await desk.told("/context restore Auth refactor")).startswith(f"Restored session {NAME}: ")


async def test_restoring_says_which_thread_it_is_and_what_was_not_in_the_log(desk: Desk) -> None:
    await desk.save()
    path = desk.world.folder / "personas" / "chorus" / "sessions" / f"{NAME}.json"
    path.write_text(path.read_text().replace('"Hello"', '"Hello, edited"'))
    await desk.world.threads.new("Other")
    told = (await desk.told(f"/context restore {NAME}")).splitlines()
    assert told[1:] == ["Messages added to the log from the file: 1.", "You are now in thread #1."]
    assert await desk.world.seen() == ["Hello, edited", "ok"]


@pytest.mark.parametrize("command", ["show", "restore"])
async def test_what_cannot_be_found_is_one_sentence_and_changes_nothing(desk: Desk, command: str) -> None:
    before = await desk.world.seen()
    told = await desk.told(f"/context {command} nothing")
    assert told == "chorus has no session 'nothing'. /context history lists them."
    assert (await desk.told(f"/context {command}")).startswith(f"/context {command} needs <id>.")
    assert await desk.world.seen() == before


@pytest.mark.parametrize("command", ["show", "restore"])
async def test_names_are_completed_with_when_and_what(desk: Desk, command: str) -> None:
    await desk.save()
    desk.offers(f"/context {command} ")
    for _ in range(2):
        await desk.told("/context history")
    assert desk.offers(f"/context {command} ") == {NAME: "Thu 2026-02-12 14:30  Auth refactor"}
    assert desk.offers(f"/context {command} 2026-02-12_au") == {NAME: "Thu 2026-02-12 14:30  Auth refactor"}
    assert desk.offers(f"/context {command} 2027") == {}


async def test_personas_are_offered_for_their_history(desk: Desk) -> None:
    assert "chorus" in desk.offers("/context history ")


async def test_the_short_forms_of_times_still_go_to_the_window(desk: Desk) -> None:
    assert "Context window set to 24h" in await desk.told("/context 24h")
    assert "Saved session" in await desk.save("/context sav Tests")


@pytest.mark.parametrize("command", ["save", "history", "show", "restore"])
def test_every_command_is_helped_with(command: str) -> None:
    registry = CommandRegistry((window.GROUP, journal.GROUP, sessions.GROUP))
    assert f"/context {command}" in look_up(registry, f"/context {command}").help_text
