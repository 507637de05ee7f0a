"""A chat without a terminal that talks as long as it is told to, measured from inside.

Each line of standard input is a number of turns; each line of standard output tells how they went, as a JSON object.
The model is asked over the wire, time passes by ten minutes from turn to turn, and memory is limited to a gigabyte.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.prose import prose
from chorus_cli.app import App, Frontend, Options, opened
from chorus_cli.log.rules.messages import Status
from chorus_cli.machine.clock import SystemClock
from chorus_cli.models.rules.events import TurnDone

if TYPE_CHECKING:
    from chorus_cli.services import Services

_MEMORY_BYTES = 1 << 30
_BETWEEN_TURNS = timedelta(minutes=10)
_QUESTION_WORDS = 20
_KIBIBYTES_PER_MEBIBYTE = 1024


class _PassingClock(SystemClock):
    """The system's clock, some way ahead, so that messages leave the window as fast as they come."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead.total_seconds()


async def _talk() -> None:
    clock, chance = _PassingClock(), random.Random(5)  # noqa: S311 - words, no secret
    async with opened(Options(), os.environ, Frontend(is_chat=True)) as app:
        app.clock = clock
        app.warm_up()
        services = await asyncio.to_thread(app.services)
        while line := await asyncio.to_thread(sys.stdin.readline):
            seconds = []
            for _ in range(int(line)):
                clock.ahead += _BETWEEN_TURNS
                begun = time.perf_counter()
                await _say(app, services, prose(chance, _QUESTION_WORDS))
                seconds.append(time.perf_counter() - begun)
            told = {"seconds": seconds, "mebibytes": _resident_mebibytes(), "descriptors": _descriptors()}
            print(json.dumps(told), flush=True)


async def _say(app: App, services: Services, text: str) -> None:
    """Have a message answered as the chat has it.

    Raises:
        RuntimeError: the reply is not whole.
    """
    turn = await services.replies.send(app.current.target(), text)
    events = [event async for event in turn.followed()] if turn is not None else []
    if not events or not isinstance(events[-1], TurnDone) or events[-1].status is not Status.COMPLETE:
        raise RuntimeError(f"There is no whole reply to {text!r}: {events[-1:]}")


def _resident_mebibytes() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / _KIBIBYTES_PER_MEBIBYTE


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    asyncio.run(_talk())
