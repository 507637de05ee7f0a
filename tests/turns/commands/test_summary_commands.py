"""/context compact, /context summary and the other commands that show a summary."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.context.service.report import context_report
from chorus_cli.log.rows import message_rows
from chorus_cli.storage.store import Store
from chorus_cli.turns.rules import task
from tests.fakes import FakeClock
from tests.remembering import PREFIX
from tests.turns.folding.long_talk import Talk, facts, long_talk


@pytest.fixture
async def talk(tmp_path: Path, store: Store, clock: FakeClock) -> Talk:
    return await long_talk(tmp_path, store, clock)


async def test_compact_summarises_all_but_the_last_two_turns(talk: Talk) -> None:
    await talk.say(*facts(4))
    told = await talk.world.told("/compact  the  bridge")
    assert told == (f"4 messages summarised in ~3 tokens. /undo reverts this.\n\n{PREFIX} f0! f1!")
    assert talk.model.requests[-1].messages[0].content == task(125, "the bridge")
    assert await talk.world.told("/context compact") == (
        "Not enough messages to compact: the last two turns always stay word for word."
    )
    await talk.say("f4!")
    assert "f1! w" not in talk.last_request()
    assert await talk.world.told("/context compact") == (
        f"2 messages added to the summary, now ~4 tokens. /undo reverts this.\n\n{PREFIX} f0! f1! f2!"
    )


async def test_undo_brings_the_words_back_and_redo_the_summary(talk: Talk) -> None:
    await talk.say(*facts(4))
    await talk.world.told("/compact")
    assert await talk.world.told("/undo") == "Undone: 4 messages summarised"
    assert await talk.summary() == ""
    assert await talk.world.told("/redo") == "Redone: 4 messages summarised"
    assert await talk.summary() == f"{PREFIX} f0! f1!"


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_two_turns_are_not_enough(talk: Talk, turns: int) -> None:
    await talk.say(*facts(turns))
    assert (await talk.world.told("/context compact")).startswith("Not enough messages to compact")
    assert talk.summaries() == []


async def test_eliza_refuses_and_says_what_would_help(talk: Talk) -> None:
    await talk.say(*facts(4))
    await talk.world.told("/settings set summary_model chorus/eliza")
    assert (await talk.world.told("/compact")).startswith("ELIZA cannot summarise. Choose another model")


async def test_summary_shows_what_it_stands_for_and_who_wrote_it(talk: Talk) -> None:
    assert (await talk.world.told("/context summary")).startswith("There is no summary")
    await talk.say(*facts(4))
    await talk.world.told("/compact")
    told = await talk.world.told("/context summary")
    assert told.startswith("Summary of 4 messages (#1 to #4), by openai/test, Thu 2026-02-12 ")
    assert told.endswith(f"~3 tokens. /context undo 1 reverts it.\n\n{PREFIX} f0! f1!")


async def test_summary_edit_makes_it_the_users_own(talk: Talk) -> None:
    await talk.say(*facts(4))
    await talk.world.told("/compact")
    talk.world.editor.enqueue("We met at the bridge.\n\nIt rained.\n")
    assert await talk.world.told("/context summary edit") == ("Summary replaced. /undo restores the previous one.")
    assert talk.world.editor.shown == [f"{PREFIX} f0! f1!\n"]
    assert ", by you, " in await talk.world.told("/context summary")
    await talk.say("next!")
    assert "Summary of the earlier conversation:\nWe met at the bridge.\n\nIt rained." in talk.last_request()
    await talk.world.told("/undo")
    assert await talk.world.told("/undo") == "Undone: another wording of the summary"
    assert await talk.summary() == f"{PREFIX} f0! f1!"


async def test_summary_edit_that_leaves_it_or_empties_it_changes_nothing(talk: Talk) -> None:
    await talk.say(*facts(4))
    await talk.world.told("/compact")
    assert await talk.world.told("/context summary edit") == "Nothing was changed."
    talk.world.editor.enqueue("\n")
    assert (await talk.world.told("/context summary edit")).startswith("Nothing was changed")
    assert await talk.summary() == f"{PREFIX} f0! f1!"
    assert await talk.world.told("/context summary nonsense") == (
        "/context summary takes only the argument edit, not 'nonsense'."
    )


async def test_why_and_json_tell_what_the_summary_stands_for(talk: Talk) -> None:
    await talk.say(*facts(4))
    await talk.world.told("/compact")
    told = await talk.world.told("/why")
    assert "summary        13      stands for the 4 messages before, as of operation 1" in told
    assert "summarised  4 " in told
    place, now = talk.world.current.target(), talk.world.clock.now()
    found = (await context_report(talk.world.context, place, now)).as_json()
    assert json.loads(json.dumps(found["parts"]))[2]["name"] == "summary"
    assert sum(part["tokens"] for part in json.loads(json.dumps(found["parts"]))) == found["tokens"]


async def test_the_journal_names_folds_and_the_past_has_their_summaries(talk: Talk) -> None:
    await talk.say(*facts(4))
    await talk.world.told("/compact")
    assert "4 messages summarised" in await talk.world.told("/context ops")
    talk.world.clock.advance(timedelta(minutes=5))
    await talk.world.told("/new")
    told = await talk.world.told("/context at 2m")
    assert f"The first 4 messages were summarised as: {PREFIX} f0! f1!" in told


async def test_a_session_keeps_the_summary_and_restoring_it_lets_it_stand_again(talk: Talk) -> None:
    await talk.say(*facts(5))
    await talk.world.told("/compact")
    await talk.world.told("/context save bridge")
    await talk.world.told("/new")
    await talk.say("between!")
    await talk.world.told("/context restore 2026-02-12_bridge")
    assert await talk.summary() == f"{PREFIX} f0! f1! f2!"
    assert "by session 2026-02-12_bridge" in await talk.world.told("/context summary")
    await talk.say("after!")
    assert f"{PREFIX} f0! f1! f2!" in talk.last_request()
    assert "f3! w" in talk.last_request()
    assert "between!" not in talk.last_request()
    await talk.world.told("/undo")
    await talk.world.told("/undo")
    assert await talk.summary() == ""
    rows = await talk.world.store.read(message_rows.history, "chorus", None, None, 0)
    assert len(rows) == 14
