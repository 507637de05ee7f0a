"""Undo and redo while another chat acts on the same context, or something was said in another thread."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import JournalError
from chorus_cli.core.log.acts import Edit
from chorus_cli.core.log.messages import MessageContent, Role
from chorus_cli.core.log.operations import NewOperation
from chorus_cli.storage.sqlite.log import operation_rows
from chorus_cli.storage.sqlite.log.message_rows import PAGE_ROWS
from tests.services.world import World


async def test_a_message_undone_by_another_chat_meanwhile_is_not_undone_twice(talked: World) -> None:
    target, journal = talked.focus.target(), talked.services.log.journal
    found = await journal.newest(target)
    await journal.take_back(target, found)
    with pytest.raises(JournalError, match="meanwhile"):
        await journal.take_back(target, found)
    assert (await talked.told("/context ops")).count("undo of") == 1


async def test_redo_sees_a_message_after_however_many_rows_of_an_operation(talked: World) -> None:
    await talked.told("/new")
    await talked.told("/context undo")
    now, thread_id = talked.clock.now(), talked.focus.thread_id
    await talked.told("/thread new")
    put_in = tuple(MessageContent(talked.focus.thread_id, Role.USER, "Put in", now) for _ in range(PAGE_ROWS + 1))
    new = NewOperation("chorus", Edit(), now, talked.focus.thread_id, members=put_in)
    await talked.store.write(operation_rows.introduce, new)
    await talked.say("Said in the other thread")
    await talked.told(f"/thread {thread_id}")
    assert (await talked.told("/redo")).startswith("There is nothing to redo.")
