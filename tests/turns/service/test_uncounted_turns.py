"""Turns before the vocabulary is loaded: a request that surely fits is sent uncounted, any other is counted first."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.log.rules.messages import Role
from chorus_cli.models.rules.events import ReplyEnd, TextDelta, TurnDone
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel, WordCounter
from tests.turns.service.tool_talk import TOOLS, call, calls, events_of
from tests.world import Tools, World, built

LIMIT = 10_000


class LateCounter(WordCounter):
    """Counts words, once its vocabulary is loaded."""

    is_ready = False

    def load(self) -> None:
        self.is_ready = True

    def at_most(self, text: str) -> int:
        return self.count(text) if self.is_ready else len(text.encode())

    def count(self, text: str) -> int:
        self.load()
        return super().count(text)


@pytest.fixture
def counter() -> LateCounter:
    return LateCounter()


@pytest.fixture
async def late(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel, counter: LateCounter) -> World:
    return await built(tmp_path, store, clock, model, LIMIT, Tools(counter=counter))


async def counts(world: World) -> list[int | None]:
    return [row.token_count for row in await world.log()]


async def test_a_short_talk_is_sent_and_stored_uncounted_and_counted_by_a_report(
    late: World, counter: LateCounter
) -> None:
    await late.say("Hello there")
    late.model.say("Fine, thanks.")
    await late.say("How are you?")
    assert not counter.is_ready
    assert await counts(late) == [None] * 4
    assert [content for _, content in late.asked()][:2] == ["Hello there", "ok"]
    await late.told("/context")
    assert None not in await counts(late)
    assert [row.token_count for row in await late.log() if row.role is Role.ASSISTANT] == [1, 2]


async def test_a_reply_that_takes_long_to_count_is_stored_first_and_counted_by_a_report(
    late: World, counter: LateCounter
) -> None:
    counter.load()
    long = "word " * 5_000
    late.model.say(long)
    await late.say("Tell me all.")
    assert await counts(late) == [3, None]
    await late.told("/context")
    assert await counts(late) == [3, 5_000]


async def test_a_reply_that_still_grows_is_not_counted_by_a_report(late: World, counter: LateCounter) -> None:
    counter.load()
    await late.say("Hello there")
    await late.store.write(
        lambda connection: connection.execute(
            "UPDATE messages SET status = 'streaming', token_count = NULL WHERE role = 'assistant'"
        )
    )
    await late.told("/context")
    assert await counts(late) == [2, None]


@pytest.mark.parametrize(("words", "is_counted"), [(700, False), (1_500, True), (3_500, True)])
async def test_a_message_is_counted_before_it_is_sent_if_its_bytes_might_not_fit(
    late: World, counter: LateCounter, words: int, *, is_counted: bool
) -> None:
    await late.say("word " * words)
    assert counter.is_ready is is_counted
    assert late.asked()[-1][1].split().count("word") == words


async def test_a_talk_is_counted_as_soon_as_its_bytes_might_not_fit_and_stays_whole(
    late: World, counter: LateCounter
) -> None:
    notices = [notice for number in range(5) for notice in await late.notices(f"{number} " + "word " * 600)]
    assert counter.is_ready
    assert notices == []
    assert [content.split()[0] for role, content in late.asked() if role == "user"] == list("01234")
    first, *_ = await counts(late)
    assert first == 601


async def test_a_report_of_usage_teaches_nothing_about_bounds(late: World) -> None:
    late.model.enqueue(TextDelta("ok"), ReplyEnd("stop", {"prompt_tokens": 5_000}))
    await late.say("word " * 400)
    assert "Estimates are multiplied" not in await late.told("/context")


async def test_a_message_that_does_not_fit_is_refused_by_its_count(late: World) -> None:
    with pytest.raises(Exception, match=r"it has ~9,000 tokens"):
        await late.say("word " * 9_000)


async def test_calls_of_tools_are_answered_uncounted(
    tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel, counter: LateCounter
) -> None:
    world = await built(tmp_path, store, clock, model, 100_000, Tools(TOOLS, counter=counter))
    calls(world, call("echo", {"text": "again"}))
    world.model.say("Done.")
    *_, done = await events_of(world, "Say it again.")
    assert isinstance(done, TurnDone)
    assert not counter.is_ready
    assert [row.role for row in await world.log()] == [
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL_USE,
        Role.TOOL_RESULT,
        Role.ASSISTANT,
    ]
    assert await counts(world) == [None] * 5
