"""Memory items for tests, and short ways to use the memory of the persona in focus."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from chorus_cli.log.rules.messages import Message, Role
from chorus_cli.memory.rows import item_rows
from chorus_cli.memory.rules.items import FlashReport, Item, ItemType, Source, Tier
from chorus_cli.memory.service.memory import Memory
from tests.fakes import START
from tests.world import World


def item(  # noqa: PLR0913 - an item has many columns, and a test names the few that matter
    number: int = 1,
    content: str = "call the plumber",
    item_type: ItemType = ItemType.TASK,
    *,
    score: float = 0.5,
    tier: Tier = Tier.WARM,
    pinned: bool = False,
    accesses: int = 0,
    age: timedelta = timedelta(),
    accessed: datetime = START,
    source: int | None = None,
    tokens: int | None = 10,
    origin: Source = Source.YOU,
) -> Item:
    at = START - age
    return Item(
        number, "frodo", item_type, content, score, tier, at, accessed, pinned, accesses, source, tokens, origin
    )


FIGURES = (10, 100)
"""The tokens of a request, and the mark from which on a flash save needs no force."""


@dataclass
class Remembering:
    """The memory of the persona in focus."""

    world: World

    @property
    def service(self) -> Memory:
        return self.world.services.memory

    @property
    def slug(self) -> str:
        return self.world.current.slug

    async def told(self, line: str) -> str:
        return await self.world.told(line)

    async def capture(self, text: str, message_id: int = 7) -> str:
        """Capture what a message of the user holds, and return the notice."""
        row = Message(message_id, self.slug, 1, message_id, Role.USER, text, self.world.clock.now())
        return await self.service.capture_turn(self.world.current.target().persona, [row])

    async def add(self, content: str, item_type: ItemType = ItemType.TASK) -> Item:
        return (await self.service.remember(self.slug, item_type, content)).items[0]

    async def listed(self) -> list[str]:
        """Return the contents in the memory, in order of id."""
        items = await self.service.listing(self.slug)
        return [item.content for item in sorted(items, key=lambda item: item.id)]

    async def item(self, item_id: int) -> Item:
        return await self.service.item(self.slug, item_id)

    async def forget(self, item_id: int) -> None:
        await self.service.forget(self.slug, item_id)

    async def flash(self) -> FlashReport:
        return await self.service.flash(self.slug, *FIGURES, force=True)

    async def recalled(self, text: str) -> list[str]:
        return [item.content for item in await self.service.recall(self.slug, text)]

    async def referred_to(self, text: str) -> list[str]:
        """Return the items that a message refers to."""
        return [item.content for item in await self.world.store.read(item_rows.referred_to, self.slug, text, 20)]

    async def sql(self, statement: str, *values: object) -> list[Any]:
        """Carry out a statement and return its rows."""
        return await self.world.store.write(lambda connection: connection.execute(statement, values).fetchall())
