"""The extent of a purge of many messages is found in one pass over the log, which is told of and can be stopped."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.stores.rules.purging import asked_purge
from chorus_cli.stores.rules.traces import MOST_PHRASES, RUN_WORDS, Traces
from tests.fakes import START, FakeClock
from tests.world import built

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.store import Connection, Store
    from tests.fakes import ScriptedModel

LONG = " ".join(f"word{number}" for number in range(2 * RUN_WORDS))


def text(number: int) -> str:
    """A message of two runs of words that no other has."""
    return " ".join(f"n{number}w{place}" for place in range(2 * RUN_WORDS))


def say_many(connection: Connection, number: int) -> None:
    for each in range(number):
        message_rows.insert_row(connection, "chorus", MessageContent(1, Role.USER, text(each), START, token_count=3))


@pytest.mark.parametrize(
    ("said", "other", "is_repeated"),
    [
        (LONG, f"Before {LONG} after", True),
        (LONG, LONG.replace("word3 ", "x ").replace("word11 ", "y "), False),
        (LONG, " ".join(LONG.split()[-RUN_WORDS:]), True),
        ("The gate is red", "I say the Gate, is red!", True),
        ("The gate is red", "The gate is", False),
        ("Extraordinarily incomprehensible", "How extraordinarily incomprehensible.", True),
        ("Good", "Good morning", False),
    ],
)
def test_a_repetition_is_a_run_of_a_long_text_or_all_of_a_short_one(
    said: str, other: str, *, is_repeated: bool
) -> None:
    traces = Traces([said])
    assert traces.have_run_in(other) is is_repeated
    assert Traces([text(1), said, text(2)]).have_run_in(other) is is_repeated
    assert traces.are_in(said)


def test_phrases_for_an_index_are_those_of_few_texts() -> None:
    assert Traces([LONG]).phrases
    assert Traces(map(text, range(MOST_PHRASES))).phrases == ()


async def test_a_message_that_repeats_one_of_very_many_is_named(
    tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel
) -> None:
    world = await built(tmp_path, store, clock, model, 10_000)
    await world.say(f"You will say: {text(7)}")
    await store.write(say_many, MOST_PHRASES)
    numbers = " ".join(map(str, range(3, MOST_PHRASES + 3)))
    question = await world.asked_back(f"/purge message {numbers}")
    assert "#1 has the same words and would stay" in question.text


class PausingClock(FakeClock):
    """Goes on by some seconds whenever it is looked at, and waits from the third time on until ``goes_on``."""

    looks = 0
    goes_on = threading.Event()

    def monotonic(self) -> float:
        self.looks += 1
        if self.looks > 2:
            self.goes_on.wait(30)
        return 5.0 * self.looks


async def test_the_search_for_repetitions_is_told_of_and_ends_when_it_is_stopped(
    tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel
) -> None:
    world = await built(tmp_path, store, clock, model, 10_000)
    await store.write(say_many, 3_000)
    pausing, told = PausingClock(), list[str]()
    purging = replace(world.services.upkeep.purging, clock=pausing)
    asked = asked_purge("persona", "chorus", START)

    def tell(line: str) -> None:
        told.append(line)
        finding.cancel()

    finding = asyncio.ensure_future(purging.find(asked, "chorus", tell))
    with pytest.raises(asyncio.CancelledError):
        await finding
    pausing.goes_on.set()
    await store.read(lambda _connection: None)
    assert told[0] == "Looking for repetitions: 500 texts compared so far."
    assert pausing.looks <= 3
