"""A model that thinks before its replies."""

from __future__ import annotations

import json

from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.rules.costs import THOUGHT
from chorus_cli.models.rules.events import ReasoningDelta, ReplyEnd, TextDelta
from tests.world import World

TOKENS = 640


def parts_of(thought: str) -> str:
    """Return parts of a provider with a thought, as the log keeps them."""
    return json.dumps({"form": "demo", "parts": [{"type": "thinking", "thinking": thought, "signature": "c2ln"}]})


def think(world: World, thought: str, said: str = "", *calls: ToolCall, parts: str = "") -> None:
    """Enqueue a reply, or one of calls alone, with a thought before it; an empty thought cannot be read."""
    end = ReplyEnd("tool_calls" if calls else "stop", {THOUGHT: TOKENS}, calls, parts)
    pieces = ([ReasoningDelta(thought)] if thought else [], [TextDelta(said)] if said else [])
    world.model.enqueue(*pieces[0], *pieces[1], end)


async def measure(world: World, seconds: float = 12.4) -> None:
    """Have every thought taken so long: the clock of a test stands still during a reply."""
    await world.store.write(
        lambda connection: connection.execute(
            "UPDATE messages SET thought_seconds = ? WHERE thought_tokens IS NOT NULL", (seconds,)
        )
    )
