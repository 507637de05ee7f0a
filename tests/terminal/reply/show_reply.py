"""Shows a file, or piped text, as a reply: ``python -m tests.terminal.reply.show_reply FILE``."""

from __future__ import annotations

import asyncio
import codecs
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import BinaryIO

from chorus_cli.models.rules.events import TextDelta, TurnEvent
from chorus_cli.terminal.reply.stream import show_events
from chorus_cli.terminal.screen.output import Screen, standard_output

_PIECE_BYTES = 4096


def show(path: str) -> None:
    screen = standard_output()
    with Path(path).open("rb", buffering=0) as file:
        asyncio.run(_shown(_reply(file), screen))
    screen.line(f"blocked: {screen.guard.blocked}")


async def _shown(events: AsyncGenerator[TurnEvent, None], screen: Screen) -> None:
    await show_events(events, screen, screen)


async def _reply(file: BinaryIO) -> AsyncGenerator[TurnEvent, None]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
        yield TextDelta(decoder.decode(piece))


if __name__ == "__main__":
    show(sys.argv[1])
