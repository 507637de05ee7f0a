"""A purge overwrites messages and all that repeats them or was made of them, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import JournalError
from chorus_cli.editing.rows import outbox_rows
from chorus_cli.editing.rows.outbox_rows import Unsaid
from chorus_cli.framework.replies import plain
from chorus_cli.imports.service import Exports
from chorus_cli.log.rows import message_rows
from chorus_cli.stores.salvage import examination
from chorus_cli.tools.service import BUILT_IN
from tests.imports.service.foreign_talk import LATIUM, ROME, WHERE, taken_in
from tests.log.service.thinking_talk import parts_of
from tests.stores.service.canary_talk import CANARY, canary_talk, holding
from tests.world import Tools, World, built

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.store import Connection, Store
    from tests.fakes import FakeClock, ScriptedModel

GATE = "The gate of the old mill by the river opens if you pull the iron ring twice."
MILL = "The miller comes on Thursdays."
THOUGHTS = (
    "SELECT reasoning, thought_parts, thought_seconds, thought_tokens FROM messages WHERE id IN (6, 8) "
    "AND purged_by IS NOT NULL"
)


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    return await built(tmp_path, store, clock, model, 10_000, Tools(BUILT_IN))


async def purged(world: World, line: str) -> str:
    """Carry out a purge, agree to it, and return the answer; backups stay."""
    return plain(await (await world.asked_back(line)).confirmed())


async def talk(world: World) -> None:
    """Two turns: messages 1 to 4."""
    for said, answer in ((GATE, "I see."), (MILL, "Good to know.")):
        world.model.say(answer)
        await world.say(said)
    world.clock.advance(timedelta(minutes=3))


async def test_a_word_that_was_everywhere_is_nowhere_after_a_purge_of_what_a_search_finds(world: World) -> None:
    await canary_talk(world)
    before = holding(world.folder)
    assert {name.partition("/")[0] for name in before} == {"chorus.db", "attachments", "drafts", "personas", "rescue"}
    assert await purged(world, f"/purge search {CANARY}") == "9 messages are purged, for good."
    assert holding(world.folder) == []
    thoughts = await world.store.read(lambda connection: connection.execute(THOUGHTS).fetchall())
    assert thoughts == [(None,) * 4] * 2


async def test_a_search_leaves_its_words_in_no_thought_of_an_import(world: World) -> None:
    said = {**LATIUM, "reasoning": f"Is it\n{CANARY}?", "thought_parts": parts_of(f"It is\n{CANARY}.")}
    hidden = {**said, "key": "m4", "content": "Or not", "reasoning": None}
    await taken_in(world, ROME, WHERE, said, hidden)
    (world.folder / "talk.jsonl").unlink()
    assert holding(world.folder) == ["chorus.db"]
    assert await purged(world, f"/purge search {CANARY}") == "2 messages are purged, for good."
    assert holding(world.folder) == []
    assert [row.content for row in await world.log()] == ["Where is Rome?"]


@pytest.mark.parametrize("line", ["/purge persona chorus", "/purge since 1h", "/purge since today"])
async def test_the_log_and_the_sessions_are_empty_after_a_purge_of_all_that_was_said(world: World, line: str) -> None:
    await canary_talk(world)
    await purged(world, line)
    # What was never said is left: an attachment, a draft, and a text that could not be stored.
    left = {name.partition("/")[0] for name in holding(world.folder)}
    assert left == {"attachments", "drafts"} | ({"rescue"} if "since" in line else set())
    assert await world.log() == []


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("/purge persona chorus", ["chorus-2"]),
        ("/purge search iron --persona chorus", ["chorus-2"]),
        ("/purge search iron", []),
        ("/purge message 1", ["chorus", "chorus", "chorus-2"]),
    ],
)
async def test_the_unsent_input_to_a_persona_goes_with_it(world: World, line: str, left: list[str]) -> None:
    await talk(world)
    texts = [Unsaid(persona, "Is the iron red?") for persona in ("chorus", "chorus", "chorus-2")]
    await world.store.write(outbox_rows.hold, "dead", texts, world.clock.now())
    question = await world.asked_back(line)
    assert (f"{3 - len(left)} unsent text" in question.text) is (len(left) < 3)
    await question.confirmed()
    found = await world.store.read(outbox_rows.left_by_ended, lambda _run: False)
    assert [each.text.persona for each in found] == left


async def test_a_purge_of_a_thread_leaves_what_was_remembered_by_hand(world: World) -> None:
    await canary_talk(world)
    await purged(world, "/purge thread 1")
    assert await world.log() == []
    assert f"the small gate opens by {CANARY}" in await world.told("/memory list")
    assert not any(name.startswith("personas") for name in holding(world.folder))


async def test_a_purged_message_is_shown_nowhere_and_the_others_are_as_before(world: World) -> None:
    await talk(world)
    before = [row for row in await world.log() if row.id != 1]
    assert await purged(world, "/purge message 1") == "1 message is purged, for good."
    assert await world.log() == before
    assert await world.seen() == ["I see.", MILL, "Good to know."]
    assert "Nothing was found" in await world.told("/search mill")
    await world.say("And then?")
    assert all(GATE not in content for _, content in world.asked())
    assert await world.store.read(problems) == ((), [], [], [])


def problems(connection: Connection) -> tuple[object, ...]:
    """Return what the doctor would find in a log."""
    return (
        examination.checked(connection).changed,
        [*examination.faults(connection)],
        examination.unreadable(connection),
        examination.dangling_references(connection),
    )


async def test_what_would_go_is_shown_and_a_dry_run_and_a_no_change_nothing(world: World) -> None:
    await talk(world)
    question = await world.asked_back("/purge message 1 3")
    assert question.text.splitlines()[0].startswith("2 messages, 2026-02-12 ")
    assert [line.split(" Human: ")[1] for line in question.text.splitlines()[1:3]] == [f"{GATE[:59]}…", MILL]
    reply = await world.told("/purge message 2 --dry-run")
    assert reply.splitlines()[1].endswith(" chorus: I see.")
    assert " to " not in reply.splitlines()[0]
    assert question.declined.text == "Nothing was purged."
    assert (await world.told("/purge message 1 3 --dry-run")).endswith("Nothing was purged.")
    assert len(await world.log()) == 4


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("/purge message 99", "There is no message #99, or it is purged already. /search shows the numbers."),
        ("/purge message x", "'x' is not a number from 1 upwards, such as 3 or #3."),
        ("/purge message --dry-run", "/purge message needs <number…>."),
        ("/purge thread 7", "There is no thread #7 of chorus. Its threads are #1."),
        ("/purge persona nobody", "nobody"),
        ("/purge since monday until tomorrow", "future"),
        ("/purge since 1h until 2h", "The time after until must be later than the one after since."),
        ("/purge search zyx", "There is nothing of that; nothing was purged."),
        ("/purge backups", "No backup holds a purged message."),
    ],
)
async def test_a_purge_that_cannot_be_done_says_why(world: World, line: str, answer: str) -> None:
    await talk(world)
    assert answer in await world.told(line)
    assert len(await world.log()) == 4


async def test_a_purge_is_in_the_journal_and_no_undo_takes_it_back(world: World) -> None:
    await talk(world)
    await purged(world, "/purge message 1")
    assert "purged 1 message for good" in await world.told("/context ops")
    assert await world.told("/context undo 1") == "No undo takes operation 1 back: it purged 1 message for good."
    with pytest.raises(JournalError, match="nothing to undo"):
        await world.journal.undo(world.current.target(), None)


async def test_an_edit_undone_and_redone_brings_no_purged_message_back(world: World) -> None:
    await talk(world)
    world.editor.enqueue(
        lambda path: path.write_text(path.read_text("utf-8").replace("iron ring", "gold ring"), "utf-8")
    )
    await world.told("/context edit")
    assert (await world.seen())[0] == GATE.replace("iron", "gold")
    await purged(world, "/purge message 1")
    for line in ("/context undo 1", "/context redo 1"):
        await world.told(line)
        assert await world.seen() == ["I see.", MILL, "Good to know."]
    assert holding(world.folder, "ring twice") == []


async def test_an_edit_keeps_its_hands_off_a_purged_message(world: World) -> None:
    await talk(world)
    await purged(world, "/purge message 1")
    world.editor.enqueue(lambda path: path.write_text(path.read_text("utf-8").replace("Thursdays", "Fridays"), "utf-8"))
    await world.told("/context edit")
    assert await world.seen() == ["I see.", MILL.replace("Thursdays", "Fridays"), "Good to know."]


async def test_the_view_without_its_summary_has_the_words_that_are_left(world: World) -> None:
    await talk(world)
    for number in range(4):
        await world.say(f"Tell me more, {number}.")
    world.model.say("They speak of a mill.")
    assert "summarised" in await world.told("/context compact")
    await purged(world, "/purge message 1")
    await world.say("And then?")
    contents = [content for _, content in world.asked()]
    assert not any("They speak of a mill" in content for content in contents)
    assert any(MILL in content for content in contents)


async def test_a_session_loses_the_message_and_its_summary_and_can_be_restored(world: World) -> None:
    await talk(world)
    world.model.say("About a mill.")
    await world.told("/context save mill business")
    await purged(world, "/purge message 1")
    await world.told("/new")
    assert "3 messages" in await world.told("/context restore 2026-02-12_mill-business")
    assert await world.seen() == ["I see.", MILL, "Good to know."]


async def test_a_memory_item_of_a_purged_message_is_gone_and_stays_gone(world: World) -> None:
    await world.say(f"Keep this:\n```\n{GATE}\nturnstile\nthird\n```\n")
    await world.told("/memory flash --force")
    assert "turnstile" in await world.told("/memory show 1")
    await purged(world, "/purge message 1")
    for line in ("/memory show 1", "/context undo 2", "/context undo 1", "/memory restore 1", "/memory list"):
        assert "turnstile" not in await world.told(line)
    assert holding(world.folder, "turnstile") == []


async def test_an_old_export_brings_no_purged_message_back(world: World) -> None:
    await talk(world)
    exports = Exports(world.store, world.clock, world.folder / "attachments")
    for format_ in ("md", "jsonl"):
        await exports.export_all(world.folder / "out" / format_, format_, None, lambda _sentence: None)
    await purged(world, "/purge message 1")
    after = await world.log()
    for format_ in ("md", "jsonl"):
        dry = (await world.told(f"/import {world.folder / 'out' / format_} --dry-run")).splitlines()
        assert dry[1:] == [
            "1 message was purged before and would not be brought back.",
            "Of the messages 3 are in the log already and 0 are new. Nothing was changed.",
        ]
        told = await world.told(f"/import {world.folder / 'out' / format_}")
        assert "1 message was purged and stays purged." in told
        assert "Everything else is in the log already; nothing was changed." in told
        assert await world.log() == after


async def test_an_old_export_brings_no_purged_message_into_another_persona(world: World) -> None:
    await talk(world)
    exports = Exports(world.store, world.clock, world.folder / "attachments")
    await exports.export_all(world.folder / "out", "jsonl", None, lambda _sentence: None)
    await purged(world, "/purge message 1")
    await world.told("/persona create Frodo")
    for path in (world.folder / "out").rglob("*.jsonl"):
        path.write_text(path.read_text("utf-8").replace('"chorus"', '"frodo"'), "utf-8")
    dry = await world.told(f"/import {world.folder / 'out'} --dry-run")
    assert "1 message was purged before and would not be brought back." in dry
    assert "Of the messages 0 are in the log already and 3 are new." in dry
    told = await world.told(f"/import {world.folder / 'out'}")
    assert holding(world.folder / "attachments", GATE) == []
    contents = await world.store.read(lambda c: [*c.execute("SELECT persona, content FROM messages WHERE id > 4")])
    assert contents == [("frodo", "I see."), ("frodo", MILL), ("frodo", "Good to know.")], told
    assert "1 message was purged and stays purged." in told


async def test_an_export_after_a_purge_has_the_other_messages(world: World) -> None:
    await talk(world)
    await purged(world, "/purge message 1")
    exports = Exports(world.store, world.clock, world.folder / "attachments")
    done = await exports.export_all(world.folder / "out", "jsonl", None, lambda _sentence: None)
    assert (done.conversations, done.messages) == (1, 3)


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_a_message_that_is_repeated_elsewhere_is_named_and_stays(world: World, *, is_indexed: bool) -> None:
    await talk(world)
    await world.say(f"You said: {GATE}")
    if is_indexed:
        await world.told("/search mill")
    question = await world.asked_back("/purge message 1")
    assert "#5 has the same words and would stay" in question.text
    await question.confirmed()
    assert [row.id for row in await world.store.read(message_rows.rows, [1, 5])] == [5]
