"""What a thread that was forked shows of the messages that it has from its origin."""

from __future__ import annotations

import pytest

from chorus_cli.context.service.transcript import Selection, newest_of, operations_of
from chorus_cli.log.rules.messages import Message
from tests.stores.service.canary_talk import purged
from tests.turns.service.tool_talk import call, calls
from tests.world import World


async def test_the_transcript_of_a_fork_passes_over_what_was_purged(turns: World) -> None:
    await turns.told("/thread fork")
    await purged(turns, "/purge message 1")
    told = await turns.told("/thread history 2")
    assert "A1" not in told
    assert "B1" in told


@pytest.mark.parametrize("number", [2, 3])
async def test_the_newest_messages_of_a_fork_are_as_many_as_asked_for(turns: World, number: int) -> None:
    await turns.told("/thread fork")
    await turns.say("More")
    selection = Selection("chorus", 2)
    operations = await operations_of(turns.store, selection)
    entries = [each async for each in newest_of(turns.store, selection, operations, number)]
    messages = [each.content for each in entries if isinstance(each, Message)]
    assert messages == ["A2", "B2", "A3", "B3", "More", "ok"][-number:]


async def test_the_last_exchange_of_a_fork_has_a_turn_of_many_calls_whole(tooled: World) -> None:
    calls(tooled, *(call("echo", {"text": "a"}, f"c{number}") for number in range(8)))
    await tooled.say("Look it up")
    await tooled.told("/thread fork")
    exchange = await tooled.current.last_exchange()
    assert exchange
    assert (exchange.question, exchange.reply) == ("Look it up", "ok")
