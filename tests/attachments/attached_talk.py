"""Messages with attachments, sent as the chat does."""

from __future__ import annotations

from tests.world import World


async def say(world: World, text: str) -> None:
    """Send a message with the files that it names and those that wait."""
    target = world.current.target()
    message = await world.services.attachments.prepared(text, target.choice.model)
    _ = [event async for event in world.conversation.answer(target, *message)]
