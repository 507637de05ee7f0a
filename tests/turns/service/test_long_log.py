"""A log that grows for years changes nothing about the next request."""

from __future__ import annotations

from datetime import timedelta
from sqlite3 import Connection

import pytest

from chorus_cli.core.time import timestamps
from tests.world import World


@pytest.mark.parametrize("old_rows", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
async def test_a_hundred_thousand_old_rows_change_no_byte_of_the_request(world: World, old_rows: int) -> None:
    await world.say("Hello")
    await world.say("Again")
    before = world.model.requests[-1]

    old = timestamps.to_text(world.clock.now() - timedelta(days=400))
    insert = "INSERT INTO messages(persona, thread_id, role, content, timestamp) VALUES ('chorus', 1, 'user', 'old', ?)"

    def fill(connection: Connection) -> None:
        connection.executemany(insert, [(old,)] * old_rows)

    await world.store.write(fill)
    await world.say("And again")
    after = world.model.requests[-1]
    assert after.messages[: len(before.messages)] == before.messages
    assert world.asked()[len(before.messages) - 1 :] == [("assistant", "ok"), ("user", "And again")]
