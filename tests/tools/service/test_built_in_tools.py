"""The built-in tools, as a model calls them: what they find, and that they see one persona only."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.tools.service import BUILT_IN, MOST_FOUND
from tests.turns.service.tool_talk import call, calls, events_of, lines, results
from tests.world import Tools, World, built

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.store import Store
    from tests.fakes import FakeClock, ScriptedModel


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    return await built(tmp_path, store, clock, model, 10_000, Tools(BUILT_IN))


async def result_of(world: World, name: str, arguments: dict[str, object]) -> tuple[str, str]:
    """Have the model call a tool; return its result and the line on the screen."""
    calls(world, call(name, arguments))
    (line,) = lines(await events_of(world, "Look for the ring, please."))
    return results(world)[-1], line


async def test_the_history_is_searched_beyond_the_window(world: World) -> None:
    world.model.say("The ring lies in the river.")
    await world.say("Where is the ring?")
    world.clock.advance(timedelta(days=3))
    result, line = await result_of(world, "search_history", {"query": "ring"})
    assert [one.partition(", ")[2].partition(", ")[2] for one in result.splitlines()] == [
        "chorus: The «ring» lies in the river.",
        "Human: Where is the «ring»?",
    ]
    assert result.startswith("thread #1, 2026-02-12 ")
    assert line == 'search_history("ring"): 2 messages'


@pytest.mark.parametrize(("since", "found"), [("7d", True), ("2 days", False), ("", True)])
async def test_a_search_may_be_limited_to_a_time(world: World, since: str, *, found: bool) -> None:
    await world.say("The ring is lost.")
    world.clock.advance(timedelta(days=3))
    result, line = await result_of(world, "search_history", {"query": "lost", "since": since})
    assert ("«lost»" in result) == found
    assert line == f'search_history("lost"{since and f", since {since}"}): {"1 message" if found else "nothing"}'


async def test_a_search_finds_neither_its_question_nor_earlier_results_nor_what_was_taken_back(world: World) -> None:
    await world.say("The ring is golden.")
    await world.say("The ring is silver.")
    await world.carry_out("/undo")
    for _ in range(2):
        result, _line = await result_of(world, "search_history", {"query": "ring"})
        assert [one for one in result.splitlines() if "please" not in one] == [result.splitlines()[-1]]
        assert "The «ring» is golden." in result
        assert "silver" not in result


async def test_many_results_are_told_to_be_more(world: World) -> None:
    for number in range(MOST_FOUND // 2 + 2):
        world.model.say("No ring here.")
        await world.say(f"Ring {number}?")
    result, line = await result_of(world, "search_history", {"query": "ring"})
    assert len(result.splitlines()) == MOST_FOUND + 1
    assert result.endswith("There are more, and older ones. More words, or an earlier time, find them.")
    assert line.endswith(f"{MOST_FOUND} messages")


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("search_history", {"query": "!"}, "No message contains all of these words."),
        ("search_history", {"query": "zebra"}, "No message contains all of these words."),
        ("search_history", {"query": '"'}, "There is nothing to look for."),
        ("search_history", {"query": "ring", "since": "tomorrow"}, "future"),
        ("read_thread", {"id": 99}, "There is no thread #99 of chorus. Its threads are #1."),
        ("read_thread", {"id": 1}, "Nothing was said in thread #1."),
    ],
)
async def test_what_cannot_be_found_is_said(world: World, name: str, arguments: dict[str, object], told: str) -> None:
    result, _line = await result_of(world, name, arguments)
    assert told in result


async def test_another_thread_is_read_without_what_tools_did_there(world: World) -> None:
    calls(world, call("search_history", {"query": "ring"}), before="Let me see.")
    world.model.say("It is lost.")
    await world.say("Where is the ring?")
    await world.carry_out("/thread new Elsewhere")
    result, line = await result_of(world, "read_thread", {"id": "#1"})
    head, *said = result.split("\n\n")
    assert head == "Thread #1, the newest 3 messages:"
    assert [one.partition("] ")[2] for one in said] == [
        "Human: Where is the ring?",
        "chorus: Let me see.",
        "chorus: It is lost.",
    ]
    assert line == "read_thread(1): 3 messages"


async def test_of_a_long_thread_the_newest_part_is_read(world: World) -> None:
    for number in range(4):
        world.model.say(f"answer {number} " + "x" * 6_000)
        await world.say(f"question {number}")
    await world.carry_out("/thread new Elsewhere")
    result, line = await result_of(world, "read_thread", {"id": 1})
    assert "question 3" in result
    assert "question 0" not in result
    assert len(result) < 20_000
    assert "left out here" not in result
    assert line == "read_thread(1): 4 messages"


async def test_tools_see_only_the_rows_of_the_calling_persona(world: World) -> None:
    await world.carry_out("/thread new Secrets")
    await world.say("The ring is a secret of chorus.")
    await world.carry_out("/persona new gollum")
    await world.carry_out("/persona gollum")
    assert world.current.target().persona.slug == "gollum"
    found, _ = await result_of(world, "search_history", {"query": "secret"})
    assert found.startswith("No message contains")
    read, _ = await result_of(world, "read_thread", {"id": 2})
    assert read.startswith("There is no thread #2 of gollum.")


async def test_tools_see_nothing_of_an_earlier_persona_of_the_same_folder(world: World) -> None:
    await world.carry_out("/persona new frodo")
    await world.carry_out("/persona frodo")
    old = world.current.target().thread_number
    await world.say("My zanzibar password is mellon.")
    await world.carry_out("/persona chorus")
    await world.persona_admin.archive("frodo")
    await world.persona_admin.delete("frodo")
    await world.carry_out("/persona new frodo")
    await world.carry_out("/persona frodo")
    new = world.current.target().thread_number
    await world.say("The zanzibar of today is empty.")
    found, _ = await result_of(world, "search_history", {"query": "zanzibar"})
    assert [one.rpartition(": ")[2] for one in found.splitlines()] == ["The «zanzibar» of today is empty."]
    read, _ = await result_of(world, "read_thread", {"id": old})
    assert read == f"There is no thread #{old} of frodo. Its threads are #{new}."
    assert "mellon" not in str(world.model.requests[-1].messages)


def test_a_declaration_is_what_the_api_wants() -> None:
    declared = {each.tool.name: each.tool.declaration for each in BUILT_IN}
    assert declared["search_history"] == {
        "type": "function",
        "function": {
            "name": "search_history",
            "description": BUILT_IN[0].tool.description,
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": BUILT_IN[0].tool.parameters[0].description},
                    "since": {"type": "string", "description": BUILT_IN[0].tool.parameters[1].description},
                },
                "required": ["query"],
            },
        },
    }
    assert declared["read_thread"]["function"]["parameters"]["required"] == ["id"]  # type: ignore[index]
