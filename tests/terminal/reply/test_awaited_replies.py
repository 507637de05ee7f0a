"""While a reply is waited for: who is asked, and what it thinks, in a line that is gone when it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.log.rules.messages import Status
from chorus_cli.models.rules.events import Notice, ReasoningDelta, TextDelta, TurnDone, TurnEvent
from chorus_cli.terminal.reply.stream import show_events
from tests.terminal.reply.shown_turns import ASKING, DONE, shown, turn
from tests.terminal.screen.terminal_file import on_terminal, seen, stopped

_LONGER_THAN_A_FRAME_SECONDS = 0.2  # a line that is not gone would be painted anew

pytestmark = pytest.mark.usefixtures("_usual_size")


async def test_thoughts_take_one_dim_line_until_the_reply_comes() -> None:
    file, screen = on_terminal()
    thoughts = [ReasoningDelta("Let me see.\n\nThe use"), ReasoningDelta("r asks\x1b[2J for " + "more " * 100 + "tea.")]
    spoken = asyncio.Event()

    async def events() -> AsyncGenerator[TurnEvent, None]:
        for thought in thoughts:
            yield thought
        await spoken.wait()
        yield TextDelta("Tea *it* is.")
        yield DONE

    showing = asyncio.create_task(show_events(events(), screen, screen))
    await seen(lambda: file.window.text() != [])
    (line,) = file.window.text()
    assert line.startswith("thinking … more more ")
    assert line.endswith(" more tea.")
    assert "\x1b[2mthinking" in file.written
    spoken.set()
    await showing
    assert file.window.text() == ["Tea it is."]
    assert screen.guard.blocked == 0


async def test_thoughts_are_repainted_four_times_a_second_and_nothing_moves_without_one() -> None:
    file, screen = on_terminal()
    thoughts = [step for number in range(100) for step in (ReasoningDelta(f" word{number}"), 0.01)]
    showing = asyncio.create_task(show_events(turn(*thoughts, 60.0), screen, screen))
    begun = time.monotonic()
    await seen(lambda: file.window.text() != [])
    await seen(lambda: file.window.text()[0].endswith(" word98 word99"))
    assert file.written.count("thinking") <= 1 + (time.monotonic() - begun) / 0.25
    assert file.window.text()[0].split()[2].startswith("word")
    written = file.written
    await asyncio.sleep(1.2)
    assert file.written == written
    await stopped(showing)


async def test_thoughts_between_two_parts_of_the_reply_leave_nothing_either() -> None:
    file = await shown(
        TextDelta("One"), 0.1, ReasoningDelta("hm"), 0.2, TextDelta(" two"), 0.1, ReasoningDelta("well"), 0.2, DONE
    )
    assert "thinking" in file.written
    assert file.window.text() == ["One two"]


WAITING = " waiting for gpt-4o-mini … "


@pytest.mark.parametrize(
    ("something", "line"),
    [
        (TextDelta("Tea *it* is."), "Tea it is."),
        (ReasoningDelta("hm"), "thinking … "),
        (Notice("Trying again in 1 s."), "Trying again in 1 s."),
    ],
    ids=["words", "a thought", "what happened"],
)
async def test_who_is_waited_for_is_said_until_something_comes(something: TurnEvent, line: str) -> None:
    file, screen = on_terminal()
    comes = asyncio.Event()

    async def events() -> AsyncGenerator[TurnEvent, None]:
        yield ASKING
        await comes.wait()
        yield something
        await asyncio.sleep(60)

    showing = asyncio.create_task(show_events(events(), screen, screen))
    await seen(lambda: WAITING in "".join(file.window.text()))
    comes.set()
    await seen(lambda: "".join(file.window.text()).startswith(line))
    written = file.written.count(WAITING)
    await asyncio.sleep(_LONGER_THAN_A_FRAME_SECONDS)
    assert file.written.count(WAITING) == written
    await stopped(showing)


@pytest.mark.parametrize("end", ["a failure", "Ctrl-C"])
async def test_who_is_waited_for_is_gone_when_nothing_comes(end: str) -> None:
    file, screen = on_terminal()
    over = asyncio.Event()

    async def events() -> AsyncGenerator[TurnEvent, None]:
        yield ASKING
        await over.wait()
        yield TurnDone(1, Status.FAILED, error=ModelError("The line is dead."))

    showing = asyncio.create_task(show_events(events(), screen, screen))
    await seen(lambda: WAITING in "".join(file.window.text()))
    if end == "Ctrl-C":
        showing.cancel()
    over.set()
    with suppress(asyncio.CancelledError):
        await showing
    assert file.window.text() == (
        [] if end == "Ctrl-C" else ["The line is dead. Your message is kept; /retry asks again."]
    )


async def test_a_quick_answer_is_not_waited_for() -> None:
    file = await shown(ASKING, 0.1, TextDelta("Tea."), DONE)
    assert "waiting" not in file.written
