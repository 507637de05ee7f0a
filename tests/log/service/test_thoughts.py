"""Thoughts of models stay in the log: where they are shown, and that nobody else is sent them."""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path

import pytest

from chorus_cli.context.service.transcript import Selection, readable_thoughts, transcript
from chorus_cli.log.rules.journal import log_marks
from chorus_cli.log.rules.speakers import Speakers
from chorus_cli.models.rules.request import Echo, Span
from chorus_cli.storage.store import Store
from chorus_cli.subcommands.log import show_transcript
from chorus_cli.terminal.screen.output import Screen
from tests.fakes import FakeClock, ScriptedModel
from tests.log.service.thinking_talk import measure, parts_of, think
from tests.stores.service.canary_talk import holding
from tests.turns.service.tool_talk import TOOLS, call, calls, events_of, results
from tests.world import Tools, World, built

WORD = "xylograph"
CODE = f"```py\nfirst = '{WORD}'\nsecond = 2\nthird = 3\n```"


@pytest.fixture
async def thinker(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    """A thinker in which a model has thought of a word, and is sent its thoughts for ever."""
    model.echo = Echo(Span.EVER, calls_only=False)
    thinker = await built(tmp_path, store, clock, model, 10_000, Tools(TOOLS))
    think(thinker, f"Of the {WORD}:\n{CODE}", "A woodcut.", parts=parts_of(f"Of the {WORD}"))
    await thinker.say("What is it?")
    return thinker


def is_told(thinker: World) -> bool:
    """Return whether the newest request of all has the word."""
    return WORD in repr(thinker.model.requests[-1])


async def test_the_model_that_thought_sees_its_thoughts_and_another_one_does_not(thinker: World) -> None:
    await thinker.say("Go on")
    assert is_told(thinker)
    await thinker.told("/model openai/gpt-5.4-mini")
    await thinker.say("Who are you?")
    assert "A woodcut." in repr(thinker.model.requests[-1])
    assert not is_told(thinker)


async def test_neither_a_search_in_the_log_nor_a_look_at_another_thread_tells_a_model(thinker: World) -> None:
    await thinker.told("/thread new")
    calls(thinker, call("read_thread", {"id": 1}), call("search_history", {"query": "woodcut"}, "c2"))
    await events_of(thinker, "What was there?")
    assert all("woodcut" in result and WORD not in result for result in results(thinker))
    calls(thinker, call("search_history", {"query": WORD}))
    await events_of(thinker, "And that?")
    assert results(thinker)[-1].startswith("No message has any of these words.")


@pytest.mark.parametrize("line", ["/context compact", "/context save about it"])
async def test_a_summary_is_not_made_of_thoughts(thinker: World, line: str) -> None:
    for text in ("Go on", "Is it old?"):
        await thinker.say(text)
    asked = len(thinker.model.requests)
    thinker.model.say("They speak of prints.")
    await thinker.told(line)
    assert [WORD in repr(request) for request in thinker.model.requests[asked:]] == [False]
    assert "A woodcut." in repr(thinker.model.requests[-1])
    assert holding(thinker.folder, WORD) == ["chorus.db"]


async def test_the_code_in_a_thought_is_not_remembered(thinker: World) -> None:
    assert "#1" not in await thinker.told("/memory list")
    await thinker.say(CODE)
    assert "#1" in await thinker.told("/memory list")


async def test_a_reworded_reply_has_no_thoughts_and_its_model_is_not_sent_those_of_the_old_one(thinker: World) -> None:
    def reword(path: Path) -> None:
        path.write_text(path.read_text(encoding="utf-8").replace("A woodcut.", "A print."), encoding="utf-8")

    thinker.editor.enqueue(reword)
    await thinker.told("/context edit")
    await thinker.say("Go on")
    assert ("assistant", "A print.") in thinker.asked()
    assert not is_told(thinker)
    query = (
        "SELECT content, reasoning, thought_parts, thought_seconds, thought_tokens FROM messages "
        "WHERE content IN ('A woodcut.', 'A print.') ORDER BY id"
    )
    rows = await thinker.store.read(lambda connection: connection.execute(query).fetchall())
    assert [[value is None for value in row] for row in rows] == [[False] * 5, [False, *[True] * 4]]
    assert "[thought for" not in (await thinker.told("/thread history")).partition("A print.")[2]
    await thinker.told("/undo")
    await thinker.told("/undo")
    await thinker.say("Go on")
    assert is_told(thinker)


LINE = "[thought for 12 s, 640 tokens]"


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    """A world with a reply after a thought, one of calls alone, one after hidden thoughts, and one without any."""
    world = await built(tmp_path, store, clock, model, 10_000, Tools(TOOLS))
    think(world, "Gold?\nOr silver.\n", "It is gold.", parts=parts_of("Gold?"))
    await world.say("What is it?")
    think(world, "I must look.", "", call("echo", {"text": "gold"}))
    think(world, "", "Surely.", parts=parts_of(""))
    await world.say("Surely?")
    await world.say("Thanks")
    await measure(world)
    return world


async def shown(world: World, *, with_thoughts: bool) -> list[str]:
    """Return the entries that ``chorus log`` prints, without their times."""
    file = io.StringIO()
    thoughts = partial(readable_thoughts, world.store) if with_thoughts else None
    entries = transcript(world.store, Selection("chorus"), [])
    await show_transcript(entries, log_marks([]), Speakers("Chorus"), Screen(file, {}), thoughts=thoughts)
    return entries_of(file.getvalue())


def entries_of(text: str) -> list[str]:
    return [entry.partition("] ")[2] for entry in text.strip().split("\n\n")]


async def test_a_line_before_a_reply_says_how_long_its_model_thought_and_on_request_what(world: World) -> None:
    assert await shown(world, with_thoughts=False) == [
        "Human: What is it?",
        f"Chorus: {LINE}\nIt is gold.",
        "Human: Surely?",
        f"Chorus: {LINE}",
        'Chorus calls a tool: echo {"text": "gold"}',
        "The tool answers: gold",
        f"Chorus: {LINE}\nSurely.",
        "Human: Thanks",
        "Chorus: ok",
    ]
    entries = await shown(world, with_thoughts=True)
    assert entries[1] == "Chorus: [thought for 12 s, 640 tokens:\nGold?\nOr silver.]\nIt is gold."
    assert entries[3] == "Chorus: [thought for 12 s, 640 tokens:\nI must look.]"
    assert entries[6] == f"Chorus: {LINE}\nSurely."


@pytest.mark.parametrize("thread", ["", " 1", " what is"])
async def test_the_history_of_a_thread_has_the_line_or_the_thoughts(world: World, thread: str) -> None:
    entries = entries_of(await world.told(f"/thread history{thread}"))
    assert entries == [entry.replace("Chorus", "chorus") for entry in await shown(world, with_thoughts=False)]
    entries = entries_of(await world.told(f"/thread history{thread} --thoughts"))
    assert entries == [entry.replace("Chorus", "chorus") for entry in await shown(world, with_thoughts=True)]


async def test_a_thought_of_an_import_has_neither_time_nor_tokens(world: World) -> None:
    await world.store.write(
        lambda connection: connection.execute(
            "UPDATE messages SET thought_seconds = NULL, thought_tokens = NULL WHERE id = 2"
        )
    )
    assert (await shown(world, with_thoughts=False))[1] == "Chorus: [with thoughts]\nIt is gold."
    assert (await shown(world, with_thoughts=True))[1] == "Chorus: [with thoughts:\nGold?\nOr silver.]\nIt is gold."


async def test_an_export_for_people_has_them_as_a_quotation_also_those_before_calls_alone(world: World) -> None:
    path = world.folder / "talk.md"
    assert ", 9 messages, to " in await world.told(f"/export {path}")
    line = "> *thought for 12 s, 640 tokens*"
    text = path.read_text(encoding="utf-8")
    for thought, words in (("\n>\n> Gold?\n> Or silver.", "It is gold."), ("", "Surely.")):
        assert f"\n\n{line}{thought}\n\n{words}\n" in text
    assert f"\n\n{line}\n>\n> I must look.\n\n## chorus calls a tool, " in text
    assert text.count(line) == 3


async def test_an_export_for_programs_has_them_with_the_parts_of_the_provider(world: World) -> None:
    path = world.folder / "talk.json"
    await world.told(f"/export {path} all")
    names = ("thoughts", "thought_parts", "thought_seconds", "thought_tokens")
    messages = json.loads(path.read_text(encoding="utf-8"))["messages"]
    replies = [each for each in messages if each["role"] == "assistant"]
    measured = {"thought_seconds": 12.4, "thought_tokens": 640}
    assert [{name: each[name] for name in names if name in each} for each in replies] == [
        {"thoughts": "Gold?\nOr silver.\n", "thought_parts": parts_of("Gold?"), **measured},
        {"thoughts": "I must look.", **measured},
        {"thought_parts": parts_of(""), **measured},
        {},
    ]
