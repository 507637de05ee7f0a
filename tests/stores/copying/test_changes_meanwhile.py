"""What somebody does here or there while a copy runs, or before a copy that was broken off goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from chorus_cli.log.rows import operation_rows, thread_rows
from tests.storage.database import locked
from tests.stores.copying.copies import BrokenOffError, Logs, contents
from tests.stores.service.canary_talk import canary_talk, sql
from tests.world import World

Tell = Callable[[int, int], None]
SECOND = timedelta(seconds=1)


async def copied(logs: Logs, act: Callable[[], Awaitable[object]], part: int, *, part_messages: int = 1) -> None:
    """Copy the log, and act before one of its parts."""
    parts, loop = count(), asyncio.get_running_loop()

    async def work() -> None:
        await act()

    def tell(_messages: int, _of: int) -> None:
        if next(parts) == part:
            asyncio.run_coroutine_threadsafe(work(), loop).result()

    await asyncio.to_thread(logs.copied, tell, part_messages)


def after(parts: int) -> Tell:
    left = iter(range(parts))

    def tell(_messages: int, _of: int) -> None:
        if next(left, None) is None:
            raise BrokenOffError

    return tell


async def said_by(world: World, slug: str) -> list[str]:
    """Return what a persona of the log, or somebody to it, has said in threads that are not of a deleted one."""
    begins = await world.store.read(operation_rows.beginning, slug)
    threads = await world.store.read(thread_rows.numbers, slug)
    reading = "SELECT thread_id, content FROM messages WHERE persona = ? AND id > ?"
    said = await world.store.read(lambda connection: connection.execute(reading, (slug, begins)).fetchall())
    return [content for thread, content in said if thread in threads]


@pytest.mark.parametrize("is_broken_off", [False, True])
async def test_a_deleted_persona_stays_deleted_when_somebody_writes_between_the_parts(
    world: World, logs: Logs, *, is_broken_off: bool
) -> None:
    await world.say("At first.")
    await world.told("/persona new Bob")
    await world.current.turn_to("bob")
    for line in ("Old secret.", "/remember an old secret", "/thread new", "Other secret."):
        world.clock.advance(SECOND)
        await (world.told(line) if line.startswith("/") else world.say(line))
    world.clock.advance(SECOND)
    await world.current.turn_to("chorus")
    await world.persona_admin.archive("bob")
    await world.persona_admin.delete("bob")
    await world.told("/persona new Bob")
    await world.current.turn_to("bob")
    await world.say("New day.")

    async def say() -> None:
        async with logs.elsewhere() as other:
            await other.say("On the server.")

    if is_broken_off:
        with suppress(BrokenOffError):
            logs.copied(after(2), part_messages=1)
        await say()
        logs.copied()
    else:
        await copied(logs, say, 2)
    async with logs.elsewhere() as other:
        assert ("Old secret.",) in await sql(other, "SELECT content FROM messages")
        assert await said_by(other, "bob") == ["New day.", "ok"]
        assert await sql(other, "SELECT content FROM context_items WHERE forgotten_by IS NULL") == []
        whole = contents(logs.server)
        assert not any(each.added for each in logs.copied())
        assert contents(logs.server) == whole


async def test_a_session_that_was_saved_meanwhile_comes_whole_with_the_next_copy(world: World, logs: Logs) -> None:
    await world.say("Before.")

    async def save() -> None:
        await world.say("Meanwhile.")
        await world.told("/context save Meanwhile")

    await copied(logs, save, 0)
    assert contents(logs.server)["sessions"] == []
    logs.copied()
    assert contents(logs.server) == contents(logs.here)
    assert contents(logs.server)["sessions"]


async def test_a_session_with_a_summary_that_was_made_meanwhile_comes_with_the_next_copy(
    world: World, logs: Logs
) -> None:
    for said in ("One", "Two", "Three", "Four"):
        await world.say(said)

    async def save() -> None:
        world.model.say("The oldest part.")
        await world.told("/context compact")
        await world.told("/context save Meanwhile")

    async with logs.elsewhere() as other:
        await other.say("On the server.")
        await copied(logs, save, 0)
        assert contents(logs.server)["sessions"] == []
        logs.copied()
        await other.told("/new")
        assert "8 messages" in await other.told("/context restore meanwhile")
        assert "The oldest part." in await other.told("/context summary")


async def test_an_item_that_is_hidden_meanwhile_names_no_act_that_the_other_log_lacks(world: World, logs: Logs) -> None:
    await world.told("/remember the sea is salt")
    await world.told("/remember the moon is far")
    unknown = "SELECT id FROM context_items WHERE COALESCE(forgotten_by, 0) > (SELECT MAX(id) FROM operations)"
    async with logs.elsewhere() as other:
        await copied(logs, lambda: world.services.memory.forget("chorus", 1), 0)
        assert await sql(other, unknown) == []
        await copied(logs, lambda: world.services.memory.forget("chorus", 2), 0)
        assert await sql(other, unknown) == []
        await sql(world, "UPDATE context_items SET replaced_by = 1 WHERE id = 2")
        logs.copied()
        assert contents(logs.server) == contents(logs.here)


async def test_an_import_names_no_message_that_was_said_meanwhile(world: World, logs: Logs, tmp_path: Path) -> None:
    talk = tmp_path / "talk.json"
    talk.write_text('[{"role": "user", "content": "Imported."}, {"role": "assistant", "content": "Yes."}]')
    await world.told(f"/import {talk}")

    async def go_on() -> None:
        await world.say("Meanwhile.")
        await sql(
            world,
            "UPDATE operations SET detail = json_set(detail, '$.hidden', json_array(json_array(MAX(messages.id), "
            "MAX(messages.id)))) FROM messages WHERE kind = 'import'",
        )

    await copied(logs, go_on, 0)
    async with logs.elsewhere() as other:
        found = "SELECT json_extract(detail, '$.hidden') FROM operations WHERE kind = 'import'"
        assert await sql(other, found) == [("[]",)]


async def test_others_write_while_the_logs_are_compared_and_the_copy_can_be_ended(
    world: World, logs: Logs, tmp_path: Path
) -> None:
    await canary_talk(world)
    here = contents(logs.here)

    def tell(_messages: int, _of: int) -> None:
        if contents(logs.server) == here:
            with locked(tmp_path / "server.db") as other:
                other.execute("UPDATE messages SET superseded = superseded")
                other.commit()
                other.begin(to_write=True)
            raise BrokenOffError

    with pytest.raises(BrokenOffError):
        logs.copied(tell)


async def test_what_a_reader_of_the_other_log_reckons_is_no_difference(world: World, logs: Logs) -> None:
    await canary_talk(world)
    async with logs.elsewhere() as other:
        loop = asyncio.get_running_loop()

        async def reckon() -> None:
            await sql(other, "UPDATE messages SET token_count = 999")
            await sql(other, "UPDATE context_items SET token_count = 999")
            await sql(other, "UPDATE context_items SET importance_score = 0.1, tier = 'COLD', access_count = 9")

        def tell(messages: int, of: int) -> None:
            if messages == of:
                asyncio.run_coroutine_threadsafe(reckon(), loop).result()

        tables = await asyncio.to_thread(logs.copied, tell)
    assert not any(each.differing for each in tables)


async def test_a_thread_that_had_no_message_when_the_copy_was_broken_off_is_there_once(
    world: World, logs: Logs
) -> None:
    async with logs.elsewhere() as other:
        await other.say("On the server.")
        world.clock.advance(SECOND)
        for line in ("/thread new Rivers", "/thread new Lakes"):
            world.clock.advance(SECOND)
            await world.told(line)
        await world.say("Of lakes.")
        await world.told("/thread Rivers")
        await world.say("Of rivers.")
        with suppress(BrokenOffError):
            logs.copied(after(1), part_messages=1)
        titles = "SELECT title FROM threads WHERE title <> '' ORDER BY id"
        assert await sql(other, titles) == [("Rivers",), ("Lakes",)]
        assert await sql(other, "SELECT 1 FROM messages WHERE content = 'Of rivers.'") == []
        logs.copied()
        assert await sql(other, titles) == [("Rivers",), ("Lakes",)]
        await other.told("/thread Rivers")
        assert (await other.seen())[0] == "Of rivers."
