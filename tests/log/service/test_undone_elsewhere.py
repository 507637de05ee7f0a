"""Undo and redo while another Chorus acts on the same context, or something was said in another thread."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import JournalError
from chorus_cli.framework.replies import plain
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rows.message_rows import PAGE_ROWS
from chorus_cli.log.rules.acts import Edit
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.log.rules.operations import NewOperation
from tests.world import World, words_come

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from chorus_cli.models.rules.events import TurnEvent


async def test_a_message_undone_by_another_chat_meanwhile_is_not_undone_twice(talked: World) -> None:
    target, journal = talked.current.target(), talked.services.journal
    found = await journal.newest(target)
    await journal.take_back(target, found)
    with pytest.raises(JournalError, match="meanwhile"):
        await journal.take_back(target, found)
    assert (await talked.told("/context ops")).count("undo of") == 1


async def said_in_another_chat(world: World, text: str) -> AsyncGenerator[TurnEvent, None]:
    """Send a message from another process that has the same thread open, up to its first words."""
    turn = replace(world.conversation, run="another").answer(world.current.target(), text)
    await words_come(turn)
    return turn


async def test_undo_asks_before_it_takes_back_a_message_of_another_chat(talked: World) -> None:
    async for _ in await said_in_another_chat(talked, "Said elsewhere"):
        pass
    question = await talked.asked_back("/undo")
    assert question.text == (
        'The newest message here was sent from another Chorus.\nUndo your message "Said elsewhere" and its reply?'
    )
    assert plain(await question.confirmed()).startswith("Undone:")
    assert await talked.told("/undo") == 'Undone: your message "How are you?" and its reply'


async def test_undo_asks_before_it_takes_back_a_reply_that_another_chat_is_writing(talked: World) -> None:
    writing = await said_in_another_chat(talked, "Said elsewhere")
    question = await talked.asked_back("/undo")
    assert question.text.startswith("The newest message here was sent from another Chorus, where it is being answered")
    assert plain(question.declined) == "Nothing was undone."
    await writing.aclose()


async def test_undo_takes_back_a_message_of_an_earlier_run_without_a_question(talked: World) -> None:
    services = replace(talked.services, conversation=replace(talked.conversation, run="a new run"))
    services = replace(services, conversation=replace(services.conversation, began_at=talked.clock.now()))
    assert await replace(talked, services=services).told("/undo") == 'Undone: your message "How are you?" and its reply'


async def test_redo_sees_a_message_after_however_many_rows_of_an_operation(talked: World) -> None:
    await talked.told("/new")
    await talked.told("/context undo")
    now, thread_id = talked.clock.now(), talked.current.thread_id
    await talked.told("/thread new")
    put_in = tuple(MessageContent(talked.current.thread_id, Role.USER, "Put in", now) for _ in range(PAGE_ROWS + 1))
    new = NewOperation("chorus", Edit(), now, talked.current.thread_id, members=put_in)
    await talked.store.write(operation_rows.introduce, new)
    await talked.say("Said in the other thread")
    await talked.told(f"/thread {thread_id}")
    assert (await talked.told("/redo")).startswith("There is nothing to redo.")
