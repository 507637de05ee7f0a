"""The rows of an import, of conversations as readers make them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from chorus_cli.imports.rows import import_rows
from chorus_cli.imports.rows.import_rows import Added, Incoming
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignMessage
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.messages import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.world import World


class Incomparable(ForeignMessage):
    """A message that no other may be compared with, as that would be done for each pair."""

    def __eq__(self, other: object) -> NoReturn:
        """Refuse to be compared."""
        raise AssertionError(other)

    __hash__ = ForeignMessage.__hash__


def message(key: str) -> ForeignMessage:
    return Incomparable(key, None, Role.USER, f"say {key}")


async def stored(world: World, messages: Sequence[ForeignMessage], *, live: bool) -> Added:
    conversation = ForeignConversation(
        "tavern", "c", "Talk", tuple(messages), tuple(each.key for each in messages if live)
    )
    incoming = [Incoming("chorus", conversation, {})]
    return await world.store.write(import_rows.store, incoming, Added(), world.clock.now())


async def test_hidden_messages_are_found_by_their_keys_also_if_one_was_purged_elsewhere(world: World) -> None:
    await world.say("A secret")
    secret = (await world.log())[0]
    origin = await world.store.read(
        lambda connection: connection.execute("SELECT origin || '-' || origin_seq FROM messages").fetchone()[0]
    )
    await (await world.asked_back(f"/purge message {secret.id}")).confirmed()
    await stored(world, [message("a")], live=True)
    hidden = [replace(message(key), is_hidden=True) for key in ("a", "b", "c", origin)]
    added = await stored(world, hidden, live=False)
    assert (added.messages, added.purged) == (2, 1)
    operations = await world.store.read(operation_rows.imports_of, "chorus")
    told = {row.content for row in await world.log() if row.id in journal.hidden_by(journal.effective(operations))}
    assert told == {"say a", "say b", "say c"}
