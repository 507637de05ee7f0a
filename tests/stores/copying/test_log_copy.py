"""A log that is copied to a server and back is the same; what two logs said apart comes together in one."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from chorus_cli.log.rules.acts import ACTS
from chorus_cli.storage.port import Engine
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.stores.copying.log_copy import PART_MESSAGES
from chorus_cli.stores.copying.log_copy import copied as rows_copied
from chorus_cli.stores.copying.matching import columns
from chorus_cli.stores.rules.references import IDS, renewed_session
from chorus_cli.stores.service.log_copies import LogCopies
from tests.attachments.attached_talk import say
from tests.storage.database import quick
from tests.stores.copying.copies import BrokenOffError, Contents, Logs, contents
from tests.stores.service.canary_talk import CANARY, canary_talk, purged, sql
from tests.world import World, world_on

WITHOUT_IDS = {"begins", "way", "rewords", "context_hours", "keys", "before", "after", "number", "summarised"}
WITHOUT_IDS |= {"change", "title", "command", "sources", "conversations"}

OTHER_QUESTION = (
    "INSERT INTO messages(persona, thread_id, role, content, timestamp) "
    "SELECT persona, thread_id, role, 'Meanwhile.', timestamp FROM messages WHERE id = 1"
)


async def test_a_log_that_is_copied_to_a_server_and_back_into_a_file_is_the_same(world: World, logs: Logs) -> None:
    await canary_talk(world)
    await world.told("/thread new")
    await world.say("In another thread.")
    await world.told("/undo")
    await world.told("/thread fork")
    here, server, back = logs.here, logs.server, Sqlite(logs.folder / "back.db")
    copied = rows_copied(here, server)
    assert all(table.added == table.rows and not table.differing for table in copied)
    returned = rows_copied(server, back)
    assert contents(here) == contents(server) == contents(back)
    assert [table.checksum for table in copied] == [table.checksum for table in returned]
    assert not any(table.added for table in rows_copied(here, server))


async def test_a_copy_that_is_broken_off_before_every_part_goes_on(world: World, logs: Logs) -> None:
    await canary_talk(world)
    copied: list[dict[str, int]] = []
    for parts in count():
        left = iter(range(parts))

        def break_off(_messages: int, _of: int, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise BrokenOffError

        with suppress(BrokenOffError):
            last = logs.copied(break_off, part_messages=1)
            break
        copied.append({table: len(rows) for table, rows in contents(logs.server).items()})
    assert contents(logs.server) == contents(logs.here)
    assert not any(copied[0].values())
    assert 0 < copied[1]["messages"] < copied[-1]["messages"]
    assert copied == sorted(copied, key=lambda rows: sum(rows.values()))
    assert sum(table.added for table in last) < sum(table.rows for table in last)


async def test_a_copy_while_somebody_writes_has_what_was_said_before(world: World, logs: Logs) -> None:
    here, server, back = logs.here, logs.server, Sqlite(logs.folder / "back.db")
    await world.say("A question.")
    await sql(world, "UPDATE messages SET status = 'streaming', run = 'other' WHERE role = 'assistant'")
    loop = asyncio.get_running_loop()

    async def copied_meanwhile(source: Engine, target: Engine, writer: World) -> int:
        async def go_on() -> None:
            await sql(writer, "UPDATE messages SET content = content || '.' WHERE status = 'streaming'")
            await sql(writer, OTHER_QUESTION)

        def tell(_rows: int, _of: int) -> None:
            asyncio.run_coroutine_threadsafe(go_on(), loop).result()

        before = contents(source)["messages"]
        tables = await asyncio.to_thread(rows_copied, source, target, tell)
        await sql(writer, "UPDATE messages SET status = 'complete', run = NULL WHERE status = 'streaming'")
        assert len(contents(source)["messages"]) > len(contents(target)["messages"]) == len(before)
        rows_copied(source, target)
        assert contents(target)["messages"] == contents(source)["messages"]
        return sum(table.differing for table in tables)

    assert await copied_meanwhile(here, server, world) == 0
    async with logs.elsewhere() as other:
        await sql(other, "UPDATE messages SET status = 'streaming', run = 'other' WHERE role = 'assistant'")
        assert await copied_meanwhile(server, back, other) == 0


async def test_a_copy_into_a_log_in_which_somebody_writes_meanwhile_joins_it(world: World, logs: Logs) -> None:
    loop = asyncio.get_running_loop()
    await world.say("Here.")
    turns = iter([True])
    logs.copied()  # makes the tables
    await world.say("Here again.")
    await world.told("/thread new")
    await world.say("In another thread.")
    async with logs.elsewhere() as other:

        def tell(_rows: int, _of: int) -> None:
            if next(turns, False):
                asyncio.run_coroutine_threadsafe(other.say("On the server."), loop).result()

        await asyncio.to_thread(logs.copied, tell)
        said = await sql(other, "SELECT content FROM messages WHERE role = 'user' ORDER BY content")
        assert said == [("Here again.",), ("Here.",), ("In another thread.",), ("On the server.",)]
        assert await _said(other, "/thread 1") == ["Here.", "On the server.", "Here again."]


async def test_a_copy_into_a_log_in_use_lets_others_write_between_its_parts_and_goes_on_where_it_ended(
    world: World, logs: Logs
) -> None:
    await canary_talk(world)
    await world.say("At last.")
    loop = asyncio.get_running_loop()
    async with logs.elsewhere() as other:
        await other.say("On the server.")
        texts: list[str] = []

        def one_part() -> bool:
            """Copy the next part, while the other machine writes, and return whether the copy goes on."""
            before = len(texts)

            def tell(messages: int, of: int) -> None:
                if len(texts) > before:
                    if messages < of:
                        raise BrokenOffError
                    return
                texts.append(f"Between {len(texts)}.")
                asyncio.run_coroutine_threadsafe(other.say(texts[-1]), loop).result()

            with suppress(BrokenOffError):
                logs.copied(tell, part_messages=1)
                return False
            return True

        amounts = [len(contents(logs.server)["messages"])]
        while await asyncio.to_thread(one_part):
            amounts.append(len(contents(logs.server)["messages"]))
        assert len(amounts) > 4
        assert amounts == sorted({*amounts})
        whole = contents(logs.server)
        assert not any(each.added for each in logs.copied())
        assert contents(logs.server) == whole
        assert await _said(other, "/thread 1") == ["On the server.", *texts]
        assert await _said(other, "/thread 2") == await _said(world, "/thread 1")
        assert CANARY in str(whole)
        remembered = "SELECT content, tier, forgotten_by IS NULL FROM context_items ORDER BY content, id"
        assert await sql(other, remembered) == await sql(world, remembered)


async def test_a_thread_in_which_nobody_has_spoken_yet_is_there_once(world: World, logs: Logs) -> None:
    async with logs.elsewhere() as other:
        await other.say("On the server.")
        for line in ("/thread new Rivers", "/thread new Lakes"):
            await world.told(line)
        await world.say("Of lakes.")
        await world.told("/thread Rivers")
        await world.say("Of rivers.")
        logs.copied(part_messages=1)
        titles = await sql(other, "SELECT title FROM threads WHERE title <> '' ORDER BY id")
        assert titles == [("Rivers",), ("Lakes",)]
        assert await _said(other, "/thread Rivers") == ["Of rivers."]


async def test_a_copy_in_parts_has_what_a_copy_in_one_part_has(world: World, logs: Logs, tmp_path: Path) -> None:
    await canary_talk(world)
    talk = tmp_path / "talk.json"
    said = [{"role": role, "content": f"{n}."} for n in range(3) for role in ("user", "assistant")]
    talk.write_text(json.dumps(said))
    await world.told(f"/import {talk}")
    hidden = "json_set(detail, '$.hidden', json_array(json_array(MAX(messages.id) - 1, MAX(messages.id))))"
    await sql(world, f"UPDATE operations SET detail = {hidden} FROM messages WHERE kind = 'import'")  # noqa: S608
    await world.say("Afterwards.")
    await world.told("/remember the sea is salt")
    await world.told("/memory forget 1")
    await purged(world, f"/purge search {CANARY}")
    await world.say("At last.")
    found = []
    for most in (1, PART_MESSAGES):
        server = quick(tmp_path / f"server-{most}.db")
        async with world_on(server, tmp_path / f"elsewhere-{most}", world.clock) as other:
            await other.say("On the server.")
        rows_copied(logs.here, server, part_messages=most)
        found.append(_without(contents(server), "origin", "token_count"))
    assert found[0] == found[1]


async def test_what_was_said_here_meanwhile_comes_into_its_threads(world: World, logs: Logs) -> None:
    await world.say("At first.")
    await world.told("/thread new Rivers")
    await world.say("Of rivers.")
    logs.copied()
    async with logs.elsewhere() as other:
        await other.told("/thread 2")
        await other.say("On the server, of rivers.")
        await other.told("/thread new Mountains")
        await other.say("On the server, of mountains.")
        await world.say("Offline, of rivers.")
        await world.told("/remember rivers are wet")
        await world.told("/thread new Lakes")
        await world.say("Offline, of lakes.")
        [*_, messages] = [each for each in logs.copied() if each.name == "messages"]
        assert messages.added == 4
        assert await _said(other, "/thread 2") == ["Of rivers.", "On the server, of rivers.", "Offline, of rivers."]
        assert await _said(other, "/thread 3") == ["On the server, of mountains."]
        assert await _said(other, "/thread 4") == ["Offline, of lakes."]
        assert "rivers are wet" in await other.told("/memory list")
        assert "Offline, of «lakes»." in await other.told("/search lakes")
        assert not any(each.added for each in logs.copied())
        await other.say("And on.")
    assert not any(each.added for each in logs.copied())


async def test_a_new_conversation_here_leaves_the_threads_of_another_log_as_they_are(world: World, logs: Logs) -> None:
    async with logs.elsewhere() as other:
        await other.say("On the server.")
        await world.say("Before.")
        await world.told("/new")
        await world.say("Afterwards.")
        logs.copied()
        assert await _said(other, "/thread 1") == ["On the server."]
        assert await _said(other, "/thread 2") == ["Afterwards."]
        await other.told("/context undo")
        assert await _said(other, "/thread 2") == ["Before.", "Afterwards."]


async def test_a_new_conversation_before_the_first_message_leaves_another_log_as_it_is(
    world: World, logs: Logs
) -> None:
    async with logs.elsewhere() as other:
        await other.say("On the server.")
        await world.told("/new")
        logs.copied()
        assert await _said(other, "/thread 1") == ["On the server."]


async def test_an_operation_on_all_threads_and_its_undo_concern_only_those_copied_with_it(
    world: World, logs: Logs
) -> None:
    await world.say("Here.")
    await world.told("/thread new")
    await world.told("/new")
    async with logs.elsewhere() as other:
        await other.say("On the server.")
        logs.copied()
        assert [each.in_view for each in await other.threads.listed(closed=False)] == [2, 0, 0]
        await other.told("/thread 2")
        assert await other.told("/undo") == "Undone: new conversation in 2 threads of chorus"
        await other.told("/thread 1")
        assert await other.told("/context ops") == "There are no operations on this context yet."
        assert (await other.told("/redo")).startswith("Nothing was undone just now")


async def test_memory_pins_and_summaries_come_into_a_log_with_others(world: World, logs: Logs) -> None:
    await canary_talk(world)
    await world.told("/pin 1")
    await world.told("/memory pin 1")
    async with logs.elsewhere() as other:
        await other.told("/remember the sea is salt")
        await other.told("/remember the moon is far")
        await other.say("On the server.")
        logs.copied()
        await other.told("/thread 2")
        remembered, mine = await other.steps(), await world.steps()
        assert _without_numbers(remembered[2:]) == _without_numbers(mine)
        assert await _undone(other) == await _undone(world)
        listed = await other.told("/memory list")
        assert "the sea is salt" in listed
        assert CANARY not in listed
        await other.told("/context redo")
        assert CANARY in await other.told("/memory list")


async def test_a_session_comes_into_a_log_with_others_and_is_restored_there_without_its_file(
    world: World, logs: Logs
) -> None:
    for said in ("One", "Two", "Three", "Four"):
        await world.say(said)
    world.model.say("The oldest part.")
    await world.told("/context compact")
    world.model.say("A talk.")
    await world.told("/context save Numbers")
    async with logs.elsewhere() as other:
        await other.say("On the server.")
        logs.copied()
        await other.told("/new")
        assert "8 messages" in await other.told("/context restore numbers")
        assert await other.seen() == await world.seen()
        assert "The oldest part." in await other.told("/context summary")


async def test_what_both_logs_have_imported_is_there_once_and_goes_on(world: World, logs: Logs, tmp_path: Path) -> None:
    talk = tmp_path / "talk.json"
    talk.write_text('[{"role": "user", "content": "Imported."}, {"role": "assistant", "content": "Yes."}]')
    async with logs.elsewhere() as other:
        await other.say("On the server.")
        await other.told(f"/import {talk}")
        await world.told(f"/import {talk}")
        await world.told("/thread 2")
        await world.say("And on.")
        logs.copied()
        assert await _said(other, "/thread 2") == await _said(world, "/thread 2")
        found = await sql(other, "SELECT content FROM messages WHERE role = 'user' ORDER BY id")
        assert [content for (content,) in found] == ["On the server.", "Imported.", "And on."]
        assert not any(each.added for each in logs.copied())
        assert "Nothing was added." in await other.told(f"/import {talk}")


async def test_an_import_into_a_copy_with_new_numbers_mixes_no_threads(world: World, logs: Logs) -> None:
    for words in ("One", "Two", "Three"):
        await world.say(words)
        await world.told("/thread new")
    await world.told(f"/export --all {logs.folder / 'exported'}")
    async with logs.elsewhere() as other:
        await other.say("There")
        await other.say("There")
        logs.copied()
        await other.told(f"/import {logs.folder / 'exported'}")
        said = await sql(other, "SELECT DISTINCT thread_id, content FROM messages WHERE role = 'user'")
        assert len(said) == len({thread_id for thread_id, _ in said})


async def test_a_copy_of_a_purge_deletes_attachments_that_no_message_has_any_more(world: World, logs: Logs) -> None:
    for name in ("purged", "kept"):
        (logs.folder / f"{name}.txt").write_text(f"a {name} note")
        await say(world, f"Here: @{logs.folder / name}.txt")
    logs.copied()
    async with logs.elsewhere() as other:
        await purged(other, "/purge message 1")
    await LogCopies(logs.here, logs.server, world.folder / "attachments", logs.clock, print).from_server()
    stored = [path.read_text() for path in (world.folder / "attachments").rglob("*") if path.is_file()]
    assert stored == ["a kept note"]


async def test_a_purge_after_a_copy_purges_the_copy_too(world: World, logs: Logs) -> None:
    await canary_talk(world)
    logs.copied()
    assert CANARY in str(contents(logs.server))
    await purged(world, f"/purge search {CANARY}")
    logs.copied()
    assert CANARY not in str(contents(logs.server))


async def test_a_reply_that_was_being_written_is_whole_after_the_next_copy(world: World, logs: Logs) -> None:
    await world.say("A question.")
    await sql(world, "UPDATE messages SET status = 'streaming', run = 'other', content = '' WHERE role = 'assistant'")
    logs.copied()
    await sql(world, "UPDATE messages SET status = 'complete', run = NULL, content = 'Yes' WHERE role = 'assistant'")
    logs.copied()
    assert contents(logs.server) == contents(logs.here)


def test_the_ids_of_every_act_are_known() -> None:
    keys = {kind: {each.key for each in act.stored.values()} for kind, act in ACTS.items()}
    assert {kind: found for kind, known in keys.items() if (found := known - WITHOUT_IDS - {*IDS.get(kind, ())})} == {
        "import": {"messages"}  # a number
    }


def test_what_a_damaged_session_has_stays_as_it_is() -> None:
    assert renewed_session("{", lambda _table, id_: id_) == "{"


def _without_numbers(texts: list[str]) -> list[str]:
    return [re.sub(r"[0-9]+", "N", each) for each in texts]


async def _undone(world: World) -> list[str]:
    """Undo what the canary talk and the pins have done, and return it."""
    told = [await world.told("/context undo") for _ in range(8)]
    assert all(each.startswith("Undone") for each in told)
    return _without_numbers(told)


async def _said(world: World, line: str) -> list[str]:
    """Return what the user has said in the context of a thread."""
    await world.told(line)
    return [message.content for message in (await world.view()).messages if message.role == "user"]


def _without(found: Contents, *without: str) -> dict[str, list[dict[str, object]]]:
    """Return the rows of a log without some columns, such as the origin and what a purge leaves to count."""
    named = {table: [dict(zip(names, row, strict=True)) for row in found[table]] for table, names in columns().items()}
    return {
        table: [{name: row[name] for name in row if name not in without} for row in named[table]] for table in named
    }
