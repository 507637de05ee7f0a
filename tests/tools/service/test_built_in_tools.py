"""The built-in tools, as a model calls them: what they find and keep, and that they see one persona only."""

from __future__ import annotations

import json
import re
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.context.service.report import context_report
from chorus_cli.core import limits
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.memory.rules.items import ItemType, Tier
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store
from chorus_cli.tools.service import BUILT_IN, MOST_FOUND, MOST_SEARCHED
from tests.cards.rules.made_cards import card
from tests.fakes import FakeClock, ScriptedModel
from tests.turns.service.tool_talk import call, calls, events_of, lines, results
from tests.world import Tools, World, built


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    return await built(tmp_path, store, clock, model, 10_000, Tools(BUILT_IN))


async def result_of(world: World, name: str, **arguments: object) -> tuple[str, str]:
    """Have the model call a tool; return its result and the line on the screen."""
    calls(world, call(name, arguments))
    (line,) = lines(await events_of(world, "Look for the ring, please."))
    return results(world)[-1], line


async def test_the_history_is_searched_beyond_the_window(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "chorus_cli.core.time.timespan", None)
    monkeypatch.delattr("chorus_cli.core.time.timespan", raising=False)
    world.model.say("The ring lies in the river.")
    await world.say("Where is the ring?")
    world.clock.advance(timedelta(days=3))
    result, line = await result_of(world, "search_history", query="ring")
    assert re.fullmatch(
        r"Thread #1, 2026-02-12 [0-9:]{5}:\n> #1 Human: Where is the ring\?\n> #2 chorus: The ring lies in the river\.",
        result,
    )
    assert line == 'search_history("ring"): 2 messages'


@pytest.mark.parametrize(
    ("bound", "time", "found"),
    [
        ("since", "7d", True),
        ("since", "2 days", False),
        ("since", "", True),
        ("until", "2 days", True),
        ("until", "4 days", False),
    ],
)
async def test_a_search_may_be_limited_to_a_time(world: World, bound: str, time: str, *, found: bool) -> None:
    await world.say("The ring is lost.")
    world.clock.advance(timedelta(days=3))
    result, line = await result_of(world, "search_history", query="lost", **{bound: time})
    assert ("lost." in result) == found
    limited = f', "{time}"' if time else ""
    assert line == f'search_history("lost"{limited}): {"1 message" if found else "nothing"}'


async def test_a_search_finds_neither_its_question_nor_earlier_results_nor_what_was_taken_back(world: World) -> None:
    await world.say("The ring is golden.")
    await world.say("The ring is silver.")
    await world.carry_out("/undo")
    for _ in range(2):
        result, _line = await result_of(world, "search_history", query="ring")
        assert [one for one in result.splitlines() if one.startswith(">") and "please" not in one] == [
            "> #1 Human: The ring is golden."
        ]
        assert "silver" not in result


async def test_what_tools_said_takes_no_place_of_a_message(world: World) -> None:
    def put(connection: Connection) -> None:
        for _ in range(MOST_SEARCHED):
            result = MessageContent(1, Role.TOOL_RESULT, "ring", world.clock.now(), 1)
            message_rows.insert_row(connection, "chorus", result)

    await world.say("The ring is golden.")
    await world.store.write(put)
    result, _line = await result_of(world, "search_history", query="ring")
    assert "> #1 Human: The ring is golden." in result


async def test_many_results_are_told_to_be_more(world: World) -> None:
    for number in range(MOST_FOUND // 2 + 2):
        world.model.say("No ring here.")
        await world.say(f"Ring {number}?")
    result, line = await result_of(world, "search_history", query="ring")
    assert result.count("\n> #") == MOST_FOUND
    assert result.endswith("\nWorse results are left out. read_thread shows more around a message.")
    assert line.endswith(f"{MOST_FOUND} messages")


async def test_long_results_in_a_row_are_cut_in_the_middle(world: World) -> None:
    for number in range(MOST_FOUND // 2 + 2):
        world.model.say(f"No ring {'x' * 770}")
        await world.say(f"Ring {number} {'y' * 770}")
    result, _line = await result_of(world, "search_history", query="ring")
    assert len(result) <= limits.TOOL_RESULT.most
    assert result.startswith("Thread #1, ")
    assert result.endswith("x\nWorse results are left out. read_thread shows more around a message.")
    assert result.count("\n> #") > MOST_FOUND // 2


async def test_the_user_learns_how_many_results_the_model_gets(world: World) -> None:
    for number in range(MOST_FOUND):
        world.model.say("x" * 200)
        await world.say("Before.")
        await world.say(f"Ring {number} {'y' * 770}")
        await world.carry_out("/thread new")
    result, line = await result_of(world, "search_history", query="ring")
    assert 10 < result.count("\n> #") < MOST_FOUND
    assert line.endswith(f"{result.count(chr(10) + '> #')} messages")


async def test_a_question_may_have_signs_of_other_searches(world: World) -> None:
    await world.say("rm -rf deletes it.")
    for query in ("what does -rf mean", "what deletes, --rf or -5", "del* deletes"):
        result, _line = await result_of(world, "search_history", query=query)
        assert "> #1 Human: rm -rf deletes it." in result


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("search_history", {"query": "ring", "since": "1h", "until": "2h"}, 'later than the time after "since"'),
        ("search_history", {"query": "!"}, "No message has any of these words."),
        ("search_history", {"query": "zebra"}, "No message has any of these words."),
        ("search_history", {"query": '"'}, "There is nothing to look for."),
        ("search_history", {"query": "ring", "since": "tomorrow"}, "future"),
        ("read_thread", {"id": 99}, "There is no thread #99 of chorus. Its threads are #1."),
        ("read_thread", {"id": 1}, "Nothing was said in thread #1."),
        ("remember", {"type": "TASK", "content": "  "}, "Content cannot be empty or whitespace-only"),
        ("remember", {"type": "TASK", "content": "x" * 100_001}, "Content exceeds maximum length of 100000 characters"),
    ],
)
async def test_what_cannot_be_found_or_kept_is_said(
    world: World, name: str, arguments: dict[str, object], told: str
) -> None:
    result, _line = await result_of(world, name, **arguments)
    assert told in result


async def test_another_thread_is_read_without_what_tools_did_there(world: World) -> None:
    calls(world, call("search_history", {"query": "ring"}), before="Let me see.")
    world.model.say("It is lost.")
    await world.say("Where is the ring?")
    await world.carry_out("/thread new Elsewhere")
    result, line = await result_of(world, "read_thread", id="#1")
    head, *said = result.split("\n\n")
    assert head == "Thread #1, the newest 3 messages:"
    assert [one.partition("] ")[2] for one in said] == [
        "Human: Where is the ring?",
        "chorus: Let me see.",
        "chorus: It is lost.",
    ]
    assert line == 'read_thread("#1"): 3 messages'


async def test_of_a_long_thread_the_newest_part_is_read(world: World) -> None:
    for number in range(4):
        world.model.say(f"answer {number} " + "x" * 6_000)
        await world.say(f"question {number}")
    await world.carry_out("/thread new Elsewhere")
    result, line = await result_of(world, "read_thread", id=1)
    assert "question 3" in result
    assert "question 0" not in result
    assert len(result) < 20_000
    assert "left out here" not in result
    assert line == "read_thread(1): 4 messages"


async def test_a_question_in_plain_words_finds_the_answer_between_what_was_said_before_and_after(world: World) -> None:
    for question, reply in (
        ("How was work?", "Long."),
        ("The dentist moved to May.", "Noted."),
        ("Good night!", "Sleep."),
    ):
        world.model.say(reply)
        await world.say(question)
    result, line = await result_of(world, "search_history", query="When do I have to go to the dentist's?")
    assert [one.partition(": ")[2] for one in result.splitlines()[1:]] == [
        "Long.",
        "The dentist moved to May.",
        "Noted.",
    ]
    assert [one[0] for one in result.splitlines()[1:]] == [" ", ">", " "]
    assert line.endswith(": 1 message")


async def test_a_search_and_a_thread_tell_no_model_but_eliza_what_was_said_with_eliza(world: World) -> None:
    def said_with_eliza(connection: Connection) -> None:
        connection.execute("UPDATE messages SET model = 'chorus/eliza' WHERE role = 'assistant' AND id <= 2")

    world.model.say("Why the ring?")
    await world.say("My ring hurts.")
    world.model.say("Rings hurt nobody.")
    await world.say("Does a ring hurt?")
    await world.store.write(said_with_eliza)
    await world.carry_out("/thread new Elsewhere")
    found, _ = await result_of(world, "search_history", query="ring hurt")
    read, _ = await result_of(world, "read_thread", id=1)
    for result in (found, read):
        assert "Rings hurt nobody." in result
        assert "Does a ring hurt?" in result
        assert "My ring hurts." not in result
        assert "Why the ring?" not in result


async def test_the_part_of_a_thread_around_a_message_is_read(world: World) -> None:
    for number in range(12):
        world.model.say(f"answer {number} " + "x" * 3_500)
        await world.say(f"question {number}")
    await world.carry_out("/thread new Elsewhere")
    result, _line = await result_of(world, "read_thread", id=1, around=9)
    head, *said = result.split("\n\n")
    assert head.startswith("Thread #1, around #9, ")
    assert [one.partition(",")[0] for one in said] == [f"[#{number}" for number in range(4, 14)]
    assert len(result) < 20_000
    await world.carry_out("/persona new gollum")
    await world.carry_out("/persona gollum")
    await world.say("Mine.")
    other, _ = await result_of(world, "read_thread", id=world.current.target().thread_number, around=9)
    assert other.startswith("Nothing was said around message #9 in thread #")


async def test_tools_see_only_the_rows_of_the_calling_persona(world: World) -> None:
    await world.carry_out("/thread new Secrets")
    await world.say("The ring is a secret of chorus.")
    await world.carry_out("/persona new gollum")
    await world.carry_out("/persona gollum")
    assert world.current.target().persona.slug == "gollum"
    found, _ = await result_of(world, "search_history", query="secret")
    assert found.startswith("No message has")
    read, _ = await result_of(world, "read_thread", id=2)
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
    found, _ = await result_of(world, "search_history", query="zanzibar")
    assert [one.rpartition(": ")[2] for one in found.splitlines()[1:]] == ["The zanzibar of today is empty.", "ok"]
    read, _ = await result_of(world, "read_thread", id=old)
    assert read == f"There is no thread #{old} of frodo. Its threads are #{new}."
    assert "mellon" not in str(world.model.requests[-1].messages)


def test_a_declaration_is_what_the_api_wants() -> None:
    declared = {each.tool.name: each.tool.declaration for each in BUILT_IN}
    properties = {
        each.name: {"type": "string", "description": each.description} for each in BUILT_IN[0].tool.parameters
    }
    assert [*properties] == ["query", "since", "until"]
    parameters = {"type": "object", "properties": properties, "required": ["query"]}
    function = {"name": "search_history", "description": BUILT_IN[0].tool.description, "parameters": parameters}
    assert declared["search_history"] == {"type": "function", "function": function}
    assert declared["read_thread"]["function"]["parameters"]["required"] == ["id"]  # type: ignore[index]


PLUMBER = "call the plumber about the boiler"


async def test_a_model_remembers_a_text_once_and_names_the_question_as_the_source(world: World) -> None:
    result, line = await result_of(world, "remember", type="task", content=PLUMBER)
    (item,) = await world.services.memory.listing("chorus")
    question = next(row for row in await world.log() if row.role == "user")
    assert (item.item_type, item.content, item.source_message_id) == (ItemType.TASK, PLUMBER, question.id)
    assert result == f"Kept as #{item.id}."
    assert line.endswith(f"): #{item.id}; /memory forget {item.id} removes it")
    assert (await world.told("/memory list")).splitlines()[1].split() == ["#1", *PLUMBER.split(), "the", "model,", "#1"]
    assert (await world.told("/undo")).startswith("Undone: ")
    assert await world.services.memory.listing("chorus") != [], "what a model remembers is no step of the user"
    result, line = await result_of(world, "remember", type="task", content=PLUMBER)
    assert (result, line.rpartition(": ")[2]) == ("That is in your memory already, as #1.", "known as #1")


@pytest.mark.parametrize("way", ["forget", "undo"])
async def test_a_model_cannot_bring_back_what_the_user_forgot(world: World, way: str) -> None:
    await result_of(world, "remember", type="task", content=PLUMBER)
    await (world.services.memory.forget("chorus", 1) if way == "forget" else world.carry_out("/context undo 1"))
    assert await world.services.memory.listing("chorus") == []
    result, shown = await result_of(world, "remember", type="code", content=PLUMBER)
    assert (result, shown.rpartition(": ")[2]) == ("The user has asked to forget this.",) * 2
    assert await world.services.memory.listing("chorus") == []
    await world.carry_out(f"/remember {PLUMBER}")
    assert [item.id for item in await world.services.memory.listing("chorus")] == [1]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("plumber", f"From memory:\n#1 (2026-02-12, from the human; HOT): {PLUMBER}"),
        ("#1", f"From memory:\n#1 (2026-02-12, from the human; HOT): {PLUMBER}"),
        ("Who looks after our boilers?", f"From memory:\n#1 (2026-02-12, from the human; HOT): {PLUMBER}"),
        ("violin", "No item of your memory has any of these words."),
        ("!", "No item of your memory has any of these words."),
    ],
)
async def test_a_model_looks_into_its_memory(world: World, query: str, told: str) -> None:
    await world.services.memory.remember("chorus", ItemType.TASK, PLUMBER)
    result, _line = await result_of(world, "recall_memory", query=query)
    assert result == told


@pytest.mark.parametrize("tier", ["COLD", "ARCHIVED"])
async def test_an_old_item_of_any_tier_is_found_by_its_words(world: World, tier: str) -> None:
    await world.services.memory.remember("chorus", ItemType.CODE, PLUMBER)
    world.clock.advance(timedelta(days=9))
    if tier == "ARCHIVED":
        await world.services.memory.renew_if_due("chorus")
        await world.services.memory.flash("chorus", 0, 0)
    result, _line = await result_of(world, "recall_memory", query="Who looks after our boilers?")
    assert result == f"From memory:\n#1 (2026-02-12, from the human; {tier}): {PLUMBER}"


async def test_an_item_of_a_model_is_at_most_warm_until_the_user_pins_it(world: World) -> None:
    await result_of(world, "remember", type="task", content=PLUMBER)
    item = await world.services.memory.item("chorus", 1)
    assert (item.importance_score > 0.8, item.tier) == (True, Tier.WARM)
    await world.told("/new")
    await world.say("Hello")
    assert "plumber" not in str(world.model.requests[-1].messages)
    await world.say("What of the plumber?")
    assert f"#1 (2026-02-12, from you): {PLUMBER}" in str(world.model.requests[-1].messages)
    await world.services.memory.pin("chorus", 1)
    assert (await world.services.memory.item("chorus", 1)).tier is Tier.HOT


async def test_a_model_sees_the_memory_of_its_own_persona_only(world: World) -> None:
    await world.services.memory.remember("frodo", ItemType.TASK, PLUMBER)
    result, _line = await result_of(world, "recall_memory", query="plumber #1")
    assert result == "No item of your memory has any of these words."


async def test_a_forgotten_item_leaves_the_calls_and_results_of_tools_until_an_undo(world: World) -> None:
    await result_of(world, "remember", type="task", content=PLUMBER)
    await result_of(world, "recall_memory", query="boiler")
    await world.services.memory.forget("chorus", 1)
    await world.say("And now?")
    sent = world.model.requests[-1].messages
    assert not any("plumber" in f"{message.content} {message.tool_calls}" for message in sent)
    assert [message.content for message in sent if message.role == "tool"] == ["Kept as #1.", "(forgotten)"]
    await world.carry_out("/undo")
    await world.carry_out("/undo")
    await world.say("And now?")
    sent = world.model.requests[-1].messages
    assert sum("plumber" in f"{message.content} {message.tool_calls}" for message in sent[1:]) == 2


async def test_a_forgotten_item_leaves_calls_whose_arguments_were_repaired(world: World) -> None:
    calls(world, call("remember", f"{{'type': 'task', 'content': '{PLUMBER}',}}"))
    await events_of(world, "Well?")
    calls(world, call("recall_memory", "{'query': 'boiler',}"))
    await events_of(world, "And?")
    await world.services.memory.forget("chorus", 1)
    await world.say("And now?")
    sent = world.model.requests[-1].messages
    assert not any("plumber" in f"{message.content} {message.tool_calls}" for message in sent)
    kept, recalled = (message.content for message in sent if message.role == "tool")
    assert kept == "Kept as #1."
    assert recalled.endswith('understood as {"query": "boiler"}.)\n\n(forgotten)')


async def test_of_many_long_items_whole_ones_are_told_so_that_each_can_be_forgotten(world: World) -> None:
    for number in range(1, 6):
        await world.services.memory.remember("chorus", ItemType.CODE, f"boiler {number}\n" + "x\n" * 1_400 + "end")
    result, line = await result_of(world, "recall_memory", query="boiler")
    told = [int(row[1]) for row in result.splitlines() if row.startswith("#")]
    assert len(told) == 3
    assert result.endswith("\n  end\n\nLeft out: 2 items with these words; other words, or a number, find them.")
    assert line.endswith(": 3 items")
    for item in told:
        await world.services.memory.forget("chorus", item)
    await world.say("And now?")
    assert results(world)[-1].startswith("Left out: 2 items")


async def test_an_item_too_long_for_a_result_is_cut_in_the_middle_and_can_be_forgotten(world: World) -> None:
    await world.services.memory.remember("chorus", ItemType.CODE, "boiler\n" + "\n" * 40_000 + "end")
    result, _line = await result_of(world, "recall_memory", query="boiler")
    assert result.startswith("From memory:\n#1 (2026-02-12, from the human; WARM): boiler\n")
    assert "characters left out here" in result
    assert result.endswith("\n  end")
    await world.services.memory.forget("chorus", 1)
    await world.say("And now?")
    assert results(world)[-1] == "(forgotten)"


async def test_looking_is_an_access_that_why_names_and_a_search_of_messages_does_not_find(world: World) -> None:
    await world.services.memory.remember("chorus", ItemType.PRD_SECTION, PLUMBER)
    await result_of(world, "recall_memory", query="boiler")
    assert (await world.services.memory.item("chorus", 1)).access_count == 2
    report = await context_report(world.context, world.current.target(), world.clock.now())
    (use,) = report.memory
    assert use.sent
    assert use.reason.startswith("recalled in message #")
    found = await world.services.search.find("plumber", Scope(None, "chorus", 20), lambda _news: None)
    assert found.matches == ()


async def test_macros_in_a_recalled_item_are_replaced(world: World, tmp_path: Path) -> None:
    (tmp_path / "mira.json").write_text(json.dumps(card(2)))
    world.personas.config_file.write_text('{"defaults": {"user_name": "User"}}')
    await world.told(f"/persona import {tmp_path}/mira.json")
    result, _line = await result_of(world, "recall_memory", query="lens")
    assert result.endswith("The lamp was made in Mira's youth.")


async def test_the_whole_output_of_a_job_can_be_read_by_its_own_persona_only(world: World) -> None:
    world.shell.enqueue(b"\x1b[31mone\x1b[0m\ntwo\n", code=2)
    job = world.services.jobs.start(world.current.target(), "make")
    await world.services.jobs.attend(job, lambda _piece: None)
    told = await result_of(world, "job_output", id=1)
    assert told == ("Job #1 (make), exit code 2, 0.0 s:\none\ntwo\n", "job_output(1): 2 lines")
    await world.carry_out("/persona new other")
    await world.carry_out("/persona other")
    result, _line = await result_of(world, "job_output", id=1)
    assert result == "There is no job #1 here. /jobs lists the jobs of this run."
