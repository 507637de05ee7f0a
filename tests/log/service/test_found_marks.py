"""A message that is found says whether it was taken back, as the log does."""

from __future__ import annotations

from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rows.search_index import Scope
from chorus_cli.log.rules.acts import Edit
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.log.rules.operations import NewOperation
from tests.world import World


async def found_as_taken_back(world: World, word: str) -> list[bool]:
    findings = await world.services.search.find(word, Scope(None, None, 10), lambda _told: None)
    return [match.taken_back for match in findings.matches]


async def test_a_message_of_an_undone_edit_is_found_as_taken_back(talked: World) -> None:
    now, thread_id = talked.clock.now(), talked.current.thread_id
    put_in = (MessageContent(thread_id, Role.USER, "An unusual word", now),)
    await talked.store.write(operation_rows.introduce, NewOperation("chorus", Edit(), now, thread_id, members=put_in))
    assert await found_as_taken_back(talked, "unusual") == [False]
    await talked.told("/context undo")
    assert await found_as_taken_back(talked, "unusual") == [True]


async def test_an_undone_message_is_found_as_taken_back(talked: World) -> None:
    assert await found_as_taken_back(talked, "Hello") == [False]
    await talked.told("/undo")
    assert await found_as_taken_back(talked, "How") == [True]
