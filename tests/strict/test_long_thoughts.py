"""A hundred thousand tokens of thoughts: they come back whole, and nothing waits for their end."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from pathlib import Path

import pytest

from tests.strict.by_services import Stage
from tests.strict.claude import StrictClaude
from tests.strict.providers import PROVIDERS
from tests.strict.server import Call, Held, Reply, StrictServer, serving
from tests.terminal.driver import Home

MANY = 100_000
MOST_MORE_KILOBYTES = 32_000
PATIENCE_SECONDS = 60
_LOOK_SECONDS = 0.002
BY_WORDS = StrictClaude(pieces=re.compile(r"\s*\S+").findall)
LOOK = Call("search_history", {"query": "ring"}, "toolu_1")


async def longest_step(until: asyncio.Task[None]) -> float:
    """Return the longest time that the loop was away, by the processor if that is less, until a task is over."""
    longest = 0.0
    while not until.done():
        since = time.monotonic(), time.process_time()
        await asyncio.sleep(_LOOK_SECONDS)
        longest = max(longest, min(time.monotonic() - since[0], time.process_time() - since[1]))
    await until
    return longest


async def test_they_come_back_whole_and_the_loop_goes_on_meanwhile(stage: Stage) -> None:
    async with stage.players("claude") as (player, (main,)):
        main.server.protocol, main.server.more_words = BY_WORDS, MANY
        main.server.will(Reply("I look.", (LOOK,)), Reply("There.", thinks=False))
        turn = asyncio.create_task(player.say("Where?", "There."))
        step = await longest_step(turn)
        assert step < 0.25
        assert main.server.refused == []
        assert f" word{MANY - 1}" in str(main.server.bodies[-1])


def test_a_kill_leaves_what_had_come_and_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, strict = Home(tmp_path), PROVIDERS["claude"]
    with serving(StrictServer("claude", BY_WORDS)) as server:
        for variable, value in strict.environment(server.address).items():
            monkeypatch.setenv(variable, value)
        home.run("log")
        little = kilobytes_of_killed(home, server)
        server.more_words = MANY
        much = kilobytes_of_killed(home, server)
        assert much - little < MOST_MORE_KILOBYTES
        reasoning, status = home.sql("SELECT reasoning, status FROM messages WHERE role = 'assistant' ORDER BY id")[-1]
        assert (f" word{MANY // 2} " in reasoning, status) == (True, "streaming")
        server.more_words = 0
        server.will(Reply("Here."))
        assert home.run("--model", strict.model, "ask", "--thread", "1", "And now?").output == "Here.\n"
        assert server.refused == []
    assert [status for _, status in home.replies()] == ["interrupted", "interrupted", "complete"]


def kilobytes_of_killed(home: Home, server: StrictServer) -> int:
    """Have a question asked, kill the program when all thoughts have come, and return its peak of memory."""
    server.will(Reply("Never said.", held=Held.THINKING))
    with home.running("--model", PROVIDERS["claude"].model, "ask", "--thread", "1", "Where?") as process:
        assert server.holding.wait(PATIENCE_SECONDS)
        server.holding.clear()
        time.sleep(0.5)
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_SECONDS)
    return int(status.partition("VmHWM:")[2].split()[0])
