"""A purge overwrites messages and all that repeats them or was made of them, and nothing else."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.core.errors import JournalError, SessionError
from chorus_cli.editing.rows import outbox_rows
from chorus_cli.editing.rows.outbox_rows import Unsaid
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.messages import Role
from chorus_cli.models import rows as usage_rows
from chorus_cli.models.rules.costs import OtherRequest
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.storage.store import Store
from chorus_cli.stores.rules.purging import WantedPurge
from chorus_cli.tools.service import BUILT_IN
from tests.attached_files import pdf
from tests.attachments.attached_talk import say
from tests.fakes import FakeClock, ScriptedModel
from tests.imports.service.foreign_talk import exported
from tests.memory.remembered import Remembering
from tests.storage.database import of_sqlite
from tests.stores.service.canary_talk import CANARY, canary_talk, holding, purged, sql
from tests.stores.service.test_stored_files import findings
from tests.turns.service.tool_talk import TOOLS, call, calls, events_of
from tests.world import Tools, World, built

GATE = "The gate of the old mill by the river opens if you pull the iron ring twice."
MILL = "The miller comes on Thursdays."


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    return await built(tmp_path, store, clock, model, 10_000, Tools((*BUILT_IN, *TOOLS)))


async def talk(world: World) -> None:
    """Two turns: messages 1 to 4."""
    for said, answer in ((GATE, "I see."), (MILL, "Good to know.")):
        world.model.say(answer)
        await world.say(said)
    world.clock.advance(timedelta(minutes=3))


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


async def test_a_purged_message_is_shown_and_exported_nowhere_and_the_others_are_as_before(world: World) -> None:
    await talk(world)
    before = [row for row in await world.log() if row.id != 1]
    assert await purged(world, "/purge message 1") == "1 message is purged, for good."
    assert await world.log() == before
    assert await world.seen() == ["I see.", MILL, "Good to know."]
    assert "Nothing was found" in await world.told("/search mill")
    done = await world.services.imports.export_all(world.folder / "out", "jsonl", None, lambda _sentence: None)
    assert (done.conversations, done.messages, holding(world.folder, GATE)) == (1, 3, [])
    await world.say("And then?")
    assert all(GATE not in content for _, content in world.asked())
    assert [each for each in findings(world).values() if each.state == "wrong"] == []


async def test_what_would_go_is_shown_and_a_dry_run_and_a_no_change_nothing(world: World) -> None:
    await talk(world)
    question = await world.asked_back("/purge message 1 3")
    assert question.text.splitlines()[0].startswith("2 messages, 2026-02-12 ")
    assert [line.split(" you: ")[1] for line in question.text.splitlines()[1:3]] == [f"{GATE[:59]}…", MILL]
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
        ("/purge message x", "'x' is not a whole number above 0, such as 3 or #3."),
        ("/purge message --dry-run", "/purge message needs <number…>, for example:"),
        ("/purge thread 7", "There is no thread #7 of chorus. Its threads are #1."),
        ("/purge persona nobody", "nobody"),
        ("/purge since monday until tomorrow", "future"),
        ("/purge since 1h until 2h", 'The time after "until" must be later than the time after "since".'),
        ("/purge search zyx", "Nothing matches, so nothing was purged."),
        ("/purge backups", "backups holds a purged message."),
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
    assert await world.told("/context undo 1") == "Operation 1 cannot be undone: it purged 1 message for good."
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
    for format_ in ("md", "jsonl"):
        await exported(world, world.folder / "out" / format_, format_)
    await purged(world, "/purge message 1")
    after = await world.log()
    for format_ in ("md", "jsonl"):
        dry = (await world.told(f"/import {world.folder / 'out' / format_} --dry-run")).splitlines()
        assert dry[1:] == [
            "Purged here, so not imported: 1 message.",
            "Of the messages, 3 are in the log already and 0 are new. Nothing was changed.",
        ]
        told = await world.told(f"/import {world.folder / 'out' / format_}")
        assert "Purged here, so not imported: 1 message." in told
        assert "Nothing was added." in told
        assert await world.log() == after


async def test_an_old_export_brings_no_purged_message_into_another_persona(world: World) -> None:
    await talk(world)
    await exported(world, world.folder / "out", "jsonl")
    await purged(world, "/purge message 1")
    await world.told("/persona create Frodo")
    for path in (world.folder / "out").rglob("*.jsonl"):
        path.write_text(path.read_text("utf-8").replace('"chorus"', '"frodo"'), "utf-8")
    dry = await world.told(f"/import {world.folder / 'out'} --dry-run")
    assert "Purged here, so not imported: 1 message." in dry
    assert "Of the messages, 0 are in the log already and 3 are new." in dry
    told = await world.told(f"/import {world.folder / 'out'}")
    assert holding(world.folder / "attachments", GATE) == []
    contents = await world.store.read(lambda c: [*c.execute("SELECT persona, content FROM messages WHERE id > 4")])
    assert contents == [("frodo", "I see."), ("frodo", MILL), ("frodo", "Good to know.")], told
    assert "Purged here, so not imported: 1 message." in told


async def test_a_message_that_is_repeated_elsewhere_is_named_and_stays(world: World) -> None:
    await talk(world)
    await world.say(f"You said: {GATE}")
    question = await world.asked_back("/purge message 1")
    assert "#5 has the same words and would not be purged" in question.text
    await question.confirmed()
    assert [row.id for row in await world.store.read(message_rows.rows, [1, 5])] == [5]


async def test_the_preamble_of_a_purged_message_is_overwritten(world: World) -> None:
    await world.say(GATE)
    await sql(world, "UPDATE messages SET preamble = 'plumed parrots', reasoning = 'pink panthers' WHERE id = 1")
    await purged(world, "/purge message 1")
    assert holding(world.folder, "parrots") == holding(world.folder, "panthers") == []


async def test_another_message_loses_a_preamble_that_repeats_it_and_nothing_else(world: World) -> None:
    for text in (GATE, "And now?"):
        await world.say(text)
    await sql(world, "UPDATE messages SET preamble = ? WHERE id = 3", f"Active threads:\n  #2: {GATE[:39]}…, step 1")
    await purged(world, "/purge message 1")
    [row] = await world.store.read(message_rows.rows, [3])
    assert (row.preamble, row.content) == ("", "And now?")


async def test_a_result_of_a_tool_that_quotes_it_goes_and_others_stay(world: World) -> None:
    await world.say(GATE)
    for text in (f"You said: {GATE}", "Nothing else."):
        calls(world, call("echo", {"text": text}))
        await events_of(world, "Say something.")
    await purged(world, "/purge message 1")
    assert holding(world.folder, "iron ring") == []
    assert [row.content for row in await world.log() if row.role is Role.TOOL_RESULT] == ["Nothing else."]


async def test_the_calls_and_results_of_tools_for_a_purged_question_go_with_it(world: World) -> None:
    for text in ("Red", "Green"):
        calls(world, call("echo", {"text": text}))
        await events_of(world, f"Say {text}.")
    await purged(world, "/purge message 1")
    assert [row.content for row in await world.log() if row.role is Role.TOOL_RESULT] == ["Green"]


async def test_a_result_of_a_tool_that_came_after_the_question_goes_too(world: World) -> None:
    await world.say(GATE)
    question = await world.asked_back('/purge search "iron ring"')
    calls(world, call("echo", {"text": "An iron ring."}))
    await events_of(world, "Say something.")
    await question.confirmed()
    assert holding(world.folder, "iron ring") == []


async def test_a_copy_of_the_same_words_and_time_goes_with_it(world: World) -> None:
    await world.say(GATE)
    await world.told("/thread new other")
    await sql(
        world,
        "INSERT INTO messages(persona, role, content, timestamp, thread_id) "
        "SELECT persona, role, content, timestamp, 2 FROM messages WHERE id = 1",
    )
    await purged(world, "/purge message 1")
    assert holding(world.folder, "iron ring") == []


async def test_an_item_that_was_forgotten_before_it_was_purged_is_brought_back_by_no_undo(world: World) -> None:
    await world.say("Hello")
    await world.told(f"/remember {GATE}")
    await (await world.asked_back("/memory forget 1")).confirmed()
    await purged(world, "/purge search iron")
    assert await world.told("/context undo 2") == "Memory item #1 is no longer there, so nothing was changed."
    assert "#1" not in await world.told("/memory list")


WORDING_GONE = "A purge overwrote the text that memory item #1 would get back, so nothing was changed."


@pytest.mark.parametrize("said", ["Hello", "The code is zebulonix."])
@pytest.mark.parametrize("rest", [(), ("/memory flash --force",), ("edit",), ("/memory forget 1",)])
async def test_an_item_loses_an_earlier_wording_alone(world: World, said: str, rest: tuple[str, ...]) -> None:
    await world.say(said)
    await world.told("/remember the code is zebulonix")
    await world.told("/remember buy milk")
    await world.told("/memory flash --force")
    for number, line in enumerate(("edit", *rest)):
        if line == "edit":
            world.editor.enqueue(f"TASK\n\nclean again {number}")
            await world.told("/memory edit 1")
        elif line.startswith("/memory forget"):
            await (await world.asked_back(line)).confirmed()
        else:
            await world.told(line)
    question = await world.asked_back("/purge search zebulonix")
    assert "3 earlier texts of the memory" in question.text.rpartition("\nOverwrite ")[2]
    await question.confirmed()
    assert holding(world.folder, "zebulonix") == []
    assert holding(world.folder, "buy milk") != []
    assert await world.told("/context undo 4") == WORDING_GONE
    listed = await world.told("/memory list")
    assert ("clean again" in listed) is ("/memory forget 1" not in rest)
    assert "buy milk" in listed


async def test_a_search_that_only_its_own_line_answers_says_so(world: World) -> None:
    await sql(world, "INSERT INTO input_history(persona, content) VALUES ('chorus', '/purge search zebra')")
    assert (await world.asked_back("/purge search zebra")).text == (
        "To purge: 1 line of the input history.\nOverwrite 1 line of the input history for good? It cannot be undone."
    )


async def test_a_purge_leaves_a_checkpoint_the_items_that_stay(world: World) -> None:
    for text in ("the code is zebulonix", "buy milk"):
        await world.told(f"/remember {text}")
    await world.told("/memory flash --force")
    await sql(world, "UPDATE context_items SET tier = 'ARCHIVED'")
    await purged(world, "/purge search zebulonix")
    assert "buy milk" in await world.told("/memory restore 1")
    assert "buy milk" in await world.told("/memory list")


async def test_words_of_several_texts_of_an_act_are_not_taken_together(world: World) -> None:
    await world.told("/remember the code is zebulonix")
    world.editor.enqueue("TASK\n\nclean again")
    await world.told("/memory edit 1")
    assert "nothing was purged" in await world.told("/purge search zebulonix again")
    await world.told("/context undo 2")
    assert "zebulonix" in await world.told("/memory list")


@of_sqlite("pages")
async def test_the_file_of_the_log_has_no_free_page_after_a_purge(world: World) -> None:
    for text in ("word" * 50_000, "Short."):
        await world.say(text)
    log = world.folder / "chorus.db"
    before = log.stat().st_size
    await purged(world, "/purge message 1")
    assert log.stat().st_size < before - 50_000
    assert log.with_name("chorus.db-journal").stat().st_size == 0


async def test_an_undo_takes_back_the_reply_to_a_purged_question(world: World) -> None:
    for text in (GATE, "And now?"):
        await world.say(text)
    await purged(world, "/purge message 3")
    assert await world.told("/undo") == "Undone: a purged message and its reply"
    assert await world.seen() == [GATE, "ok"]
    assert "a purged message" in await world.told("/redo")
    assert await world.seen() == [GATE, "ok", "ok"]


@pytest.mark.parametrize("line", ["/purge message 1", "/purge since 1h", "/purge thread 1", "/purge persona chorus"])
async def test_tokens_that_were_used_stay_those_of_summaries_too(world: World, line: str) -> None:
    world.model.enqueue(TextDelta("Hm."), ReplyEnd("stop", {"prompt_tokens": 7}))
    await world.say(GATE)
    request = OtherRequest("chorus", 1, "summary", "openai/test", world.clock.now(), {"prompt_tokens": 1})
    await world.store.write(usage_rows.store, [request])
    before = await world.store.read(usage_rows.uses)
    assert [use.tokens.prompt for use in before] == [7, 1]
    await purged(world, line)
    assert await world.store.read(usage_rows.uses) == before


async def test_a_search_limited_to_a_persona_leaves_the_sessions_of_others(world: World) -> None:
    await world.say(f"Keep {CANARY}")
    await world.told("/context save first")
    await world.carry_out("/persona new Frodo")
    await world.say(f"The ring of {CANARY} lies there")
    await world.told("/context save second")
    before = holding(world.folder / "personas" / "chorus")
    assert before
    assert len(holding(world.folder / "personas")) == 2
    await purged(world, f"/purge search {CANARY} --persona frodo")
    assert holding(world.folder / "personas" / "chorus") == before
    assert holding(world.folder / "personas" / "frodo") == []


async def test_an_old_export_brings_no_file_of_a_purged_message_back(world: World) -> None:
    note = world.folder / "note.txt"
    note.write_text(f"{CANARY} in a file", encoding="utf-8")
    await say(world, f"Look at this: @{note}")
    note.unlink()
    out = world.folder.with_name("out")
    await exported(world, out, "jsonl")
    assert holding(out)
    await purged(world, "/purge message 1")
    assert holding(world.folder) == []
    await world.told(f"/import {out}")
    assert holding(world.folder) == []


@pytest.mark.parametrize("is_idle", [False, True])
async def test_a_save_that_began_before_a_purge_writes_no_file(world: World, *, is_idle: bool) -> None:
    await world.say(f"Keep {CANARY}")
    hold = asyncio.Event()
    world.model.enqueue(hold, TextDelta("A talk."), ReplyEnd("stop"))
    saving = world.sessions
    target = world.current.target()
    running = asyncio.create_task(saving.save_idle(target) if is_idle else saving.save(target, "late"))
    while len(world.model.requests) < 2:  # noqa: ASYNC110 - the summary has no other sign of having begun
        await asyncio.sleep(0.001)
    await purged(world, "/purge message 1")
    hold.set()
    if is_idle:
        assert await running is None
    else:
        with pytest.raises(SessionError, match="purged while the session was being saved"):
            await running
    assert holding(world.folder) == []


async def test_nothing_is_captured_from_a_message_that_was_purged_meanwhile(world: World) -> None:
    said = "Hello"
    await world.say(said)
    await purged(world, "/purge message 1")
    memory, code = Remembering(world), f"```\n{CANARY}\nsecond\nthird\n```"
    assert await memory.capture(code, 1) == ""
    assert holding(world.folder) == []
    assert await memory.capture(code, 2) != ""


async def test_the_command_of_a_captured_output_is_not_stored(world: World) -> None:
    persona = world.current.target().persona
    await world.services.memory.capture_output(persona, f"pytest -k {CANARY}", "1 passed in 0.02s\n")
    assert holding(world.folder) == []


@pytest.mark.parametrize(("line", "number"), [("", 1), (" --persona chorus", 1), (" --persona frodo", 0)])
async def test_pdfs_are_not_searched_and_counted(world: World, line: str, number: int) -> None:
    names = ("sent.pdf", "purged.pdf", "unsent.pdf", "sent.txt", "unsent.txt")
    sent, purged_too, unsent, note, other_note = (world.folder.with_name(name) for name in names)
    for path in (sent, purged_too, unsent):
        path.write_bytes(pdf(1) + path.name.encode())
    for path in (note, other_note):
        path.write_text(path.name, encoding="utf-8")
    await say(world, f"The word is {CANARY}: @{sent} @{purged_too}")
    await say(world, f"Look at this again: @{sent} @{note}")
    for path in (unsent, other_note):
        await world.told(f"/attach {path}")
    await world.carry_out("/persona new Frodo")
    await world.say(f"It is {CANARY}.")
    sentence = "1 PDF was not searched; if one has the words, purge its message."
    told = await world.told(f"/purge search {CANARY}{line} --dry-run")
    assert (sentence in told, "PDF" in told) == (number > 0, number > 0), told
    found = await world.told(f"/purge search zyx{line}")
    assert found.startswith("Nothing matches, so nothing was purged.")
    assert ("PDF" in found) is (number > 0)
    assert "PDF" not in await world.told("/purge message 1 --dry-run")


async def test_a_search_finds_a_message_by_the_text_of_a_file_that_was_sent_with_it(world: World) -> None:
    note = world.folder / "note.txt"
    note.write_text(f"{CANARY.upper()} in a file", encoding="utf-8")
    await say(world, f"Look at this: @{note}")
    note.unlink()
    assert holding(world.folder, CANARY.upper())
    await purged(world, f"/purge search {CANARY}")
    assert [row.id for row in await world.log()] == [2]
    assert holding(world.folder, CANARY.upper()) == []


@pytest.fixture
async def printing(world: World) -> World:
    """A world with a job whose output is in the preamble of a message, and another job whose output waits."""
    jobs = world.services.jobs
    for command in ("make", "ls"):
        world.shell.enqueue(b"the key is hunter2\n")
        await jobs.attend(jobs.start(world.current.target(), command), lambda _piece: None)
        if command == "make":
            await world.say("What now?")
    return world


async def test_the_output_of_all_jobs_and_its_news_are_forgotten(printing: World) -> None:
    question = await printing.asked_back("/purge search hunter2")
    assert "Overwrite 1 preamble and forget the output of all jobs for good?" in question.text
    await question.confirmed()
    assert await printing.told("/jobs log 1") == "Job #1 has no output."
    assert "hunter2" not in await printing.told("/jobs")
    await printing.told("/undo")
    await printing.say("And now?")
    assert "hunter2" not in str(printing.model.requests[-1])
    assert "jobs" not in (await printing.asked_back("/purge persona chorus")).text


async def test_a_purge_that_finds_nothing_does_not_hide_that_jobs_have_printed_the_words(printing: World) -> None:
    told = await printing.told("/purge search hunter3")
    assert told.endswith("The output of this run's jobs was not searched; it is gone when you quit.")


async def test_an_undo_after_a_purge_by_another_process_sends_no_output_again(printing: World) -> None:
    purging, news = printing.services.purging, printing.services.jobs.news
    news.take(printing.current.thread_id)
    await purging.carry_out(await purging.find(WantedPurge(words="hunter2"), "chorus"))
    assert (await printing.told("/undo")).startswith("Undone: ")
    assert news.waiting(printing.current.thread_id) == ()
