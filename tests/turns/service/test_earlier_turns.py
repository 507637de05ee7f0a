"""Turns from before the window in preambles: which come, how often, and how they go again."""

from __future__ import annotations

from datetime import timedelta
from itertools import count, pairwise
from zlib import crc32

import pytest

from chorus_cli.context.rules.earlier import ids_in, most_with_a_word_that_brings
from chorus_cli.context.service.report import context_report
from chorus_cli.core.text.phrases import shortened
from chorus_cli.framework.replies import plain
from chorus_cli.memory.rules.items import ItemType
from chorus_cli.models.rules.choice import ELIZA
from tests.storage.database import traced
from tests.world import World, another_thread

SISTER = "My sister Anna moved to Lisbon in spring."
REPLY = "Lisbon will suit her."
TURN = f"Said earlier:\n#1 (2026-02-12, Human): {SISTER}\n#2 (2026-02-12, chorus): {REPLY}"
QUESTION = "Where does Anna live?"
MONTH = timedelta(days=30)


@pytest.fixture
async def later(world: World) -> World:
    """Return a world in which a turn was said a month ago, and turns from before the window come back."""
    world.configure('{"recall": "history", "clock": false}')
    world.model.say(REPLY)
    await world.say(SISTER)
    world.clock.advance(MONTH)
    return world


def preamble(world: World, question: str = QUESTION, number: int = -1) -> str:
    """Return what was sent before a question."""
    content = world.asked(number)[-1][1]
    assert content.endswith(question)
    return content.removesuffix(question).removesuffix("\n\n")


async def test_a_turn_comes_once_with_its_date_and_the_prefix_is_kept(later: World) -> None:
    told = await later.notices(QUESTION)
    assert told == [f"Said earlier: #1 (Thu 2026-02-12 14:30) {shortened(SISTER)}"]
    assert preamble(later) == TURN
    assert await later.notices("Does Anna like it?") == []
    assert later.asked()[-1][1] == "Does Anna like it?"
    later.clock.advance(timedelta(hours=1))
    await later.say("And Lisbon?")
    for earlier, following in pairwise(request.messages for request in later.model.requests[1:]):
        assert following[: len(earlier)] == earlier


async def test_context_lists_it_with_the_reason(later: World) -> None:
    await later.say(QUESTION)
    shown = plain(await later.carry_out("/context"))
    assert "Said earlier" in shown
    assert "shares rare words with message #3" in shown
    report = await context_report(later.context, later.current.target(), later.clock.now())
    assert report.as_json()["earlier"] == [
        {"id": id_, "by": 3, "reason": "its turn shares rare words with message #3"} for id_ in (1, 2)
    ]


@pytest.mark.parametrize("recall", ["off", "memory"])
async def test_the_other_settings_bring_no_turn(later: World, recall: str) -> None:
    later.configure(f'{{"recall": "{recall}", "clock": false}}')
    await later.say(QUESTION)
    assert preamble(later) == ""


@pytest.mark.parametrize("greeting", ["Hello, good morning!", "Thanks, that was great.", "Can you explain it again?"])
async def test_words_of_courtesy_bring_nothing(later: World, greeting: str) -> None:
    await later.say("Hello, thanks, good morning, explain it again, great!")
    later.clock.advance(MONTH)
    await later.say(greeting)
    assert preamble(later, greeting) == ""


async def test_nothing_comes_from_before_a_clear_but_an_undo_of_it_lets_it_come(later: World) -> None:
    await later.carry_out("/new")
    later.clock.advance(MONTH)
    await later.say(QUESTION)
    assert preamble(later) == ""
    await later.carry_out("/undo")
    await later.carry_out("/undo")
    later.clock.advance(MONTH)
    await later.say(QUESTION)
    assert preamble(later) == TURN


async def test_it_comes_from_another_thread_and_from_no_other_persona(later: World) -> None:
    later.persona_admin.personas.settings_path("frodo").parent.mkdir()
    later.configure('{"recall": "history", "clock": false}', "frodo")
    other = await another_thread(later)
    [event async for event in later.conversation.answer(other, QUESTION)]
    assert preamble(later) == TURN
    await later.carry_out("/persona frodo")
    await later.say(QUESTION)
    assert preamble(later) == ""


@pytest.mark.parametrize("is_retried", [False, True])
async def test_what_eliza_answered_does_not_come_even_if_another_reply_was_undone(
    world: World, *, is_retried: bool
) -> None:
    world.configure('{"recall": "history", "clock": false}')
    await world.say(SISTER)
    await world.store.write(
        lambda connection: connection.execute("UPDATE messages SET model = ? WHERE id = 2", [ELIZA])
    )
    if is_retried:
        assert [event async for event in world.conversation.retry(world.current.target())]
        await world.carry_out("/undo")
    world.clock.advance(MONTH)
    await world.say(QUESTION)
    assert preamble(world) == ""


async def test_a_question_to_eliza_brings_nothing(later: World) -> None:
    target = later.current.target()
    asked = later.conversation.answer(target._replace(choice=target.choice._replace(model=ELIZA)), QUESTION)
    assert [event async for event in asked]
    assert (await later.log())[2].preamble == ""


async def test_what_another_thread_said_within_the_window_does_not_come(world: World) -> None:
    world.configure('{"recall": "history", "clock": false}')
    await world.say(SISTER)
    assert [event async for event in world.conversation.answer(await another_thread(world), QUESTION)]
    assert preamble(world) == ""


async def test_the_turns_fit_into_a_twentieth_of_the_limit(later: World) -> None:
    later.configure('{"recall": "history", "clock": false, "context_token_limit": 1000}')
    names = [f"Quince {number}{' word' * 12}" for number in range(3)]
    for name in names:
        await later.say(name)
    later.clock.advance(MONTH)
    await later.say("The quince?")
    brought = preamble(later, "The quince?")
    assert 0 < brought.count("Quince") < len(names)
    assert len(brought.split()) <= 50


@pytest.mark.parametrize("seconds", [0.06, 0.04])
async def test_a_search_that_takes_too_long_brings_nothing(later: World, seconds: float) -> None:
    class Slow(type(later.clock)):  # type: ignore[misc]
        def monotonic(self) -> float:
            self.advance(timedelta(seconds=seconds))
            return float(super().monotonic())

    later.clock.__class__ = Slow
    await later.say(QUESTION)
    assert preamble(later) == ""


async def test_a_search_that_takes_too_long_reads_no_further_turn(later: World) -> None:
    class Slow(type(later.clock)):  # type: ignore[misc]
        def monotonic(self) -> float:
            self.advance(timedelta(seconds=0.03))
            return float(super().monotonic())

    await later.say("Anna sings.")
    later.clock.advance(MONTH)
    later.clock.__class__ = Slow
    await later.say(QUESTION)
    assert preamble(later).count("Anna") == 1


async def test_a_message_that_the_index_has_found_is_not_looked_through_again(later: World) -> None:
    await later.search.catch_up()
    await later.store.write(
        lambda connection: connection.execute("UPDATE messages SET content = 'She moved.' WHERE id = 1")
    )
    await later.say(QUESTION)
    assert "She moved." in preamble(later)


@pytest.mark.parametrize("by_eliza", [True, False])
async def test_the_index_is_not_written_where_nothing_is_missing_or_nothing_comes_back(
    later: World, *, by_eliza: bool
) -> None:
    if not by_eliza:
        await later.search.catch_up()
    statements = await traced(later.store)
    target = later.current.target()
    choice = target.choice._replace(model=ELIZA) if by_eliza else target.choice
    assert [event async for event in later.conversation.answer(target._replace(choice=choice), QUESTION)]
    assert [each for each in statements if "search_index" in each and not each.startswith("SELECT")] == []


async def test_a_turn_of_which_two_messages_are_found_comes_once(later: World) -> None:
    await later.say("What of Lisbon?")
    assert preamble(later, "What of Lisbon?") == TURN


async def test_a_replaced_reply_does_not_come(world: World) -> None:
    world.configure('{"recall": "history", "clock": false}')
    world.model.say("Porto?")
    world.model.say("Lisbon?")
    await world.say(SISTER)
    assert [event async for event in world.conversation.retry(world.current.target())]
    world.clock.advance(MONTH)
    await world.say(QUESTION)
    assert "Lisbon?" in preamble(world)
    assert "Porto?" not in preamble(world)


@pytest.mark.parametrize("text", ["Anna: quinces!", f"Anna likes quinces{' very' * 300} much."])
async def test_a_purge_takes_a_turn_out_of_preambles_and_sessions(world: World, text: str) -> None:
    world.configure('{"recall": "history", "clock": false}')
    await world.say(text)
    world.clock.advance(MONTH)
    await world.say(QUESTION)
    assert "quinces" in preamble(world)
    await world.carry_out("/context save some talk")
    await (await world.asked_back("/purge message 1")).confirmed()
    await world.say("And now?")
    assert world.asked()[0] == ("user", QUESTION)
    kept = (*world.folder.glob("chorus.db"), *world.folder.rglob("sessions/*"))
    assert [path.name for path in kept if b"quinces" in path.read_bytes()] == []
    assert len(kept) == 2


async def test_off_brings_no_memory_item_by_words_but_by_its_number(world: World) -> None:
    world.configure('{"recall": "off"}')
    await world.services.memory.remember("chorus", ItemType.TASK, "call the plumber")
    world.clock.advance(timedelta(days=1))
    await world.services.memory.renew_if_due("chorus")
    statements = await traced(world.store)
    await world.say("Did the plumber come?")
    assert world.asked()[-1][1] == "Did the plumber come?"
    assert [each for each in statements if "MATCH" in each or "@@" in each] == []
    await world.say("What of #1?")
    assert "call the plumber" in world.asked()[-1][1]


class Story:
    """A talk with undone turns and cleared contexts, which knows what may come back into its next question."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.chances = (crc32(f"{seed}, {number}".encode()) for number in count())
        self.gone: set[int] = set()
        self.is_warm = False
        self.brought = 0

    def chance(self, below: int) -> int:
        return next(self.chances) % below

    async def say(self) -> None:
        question = f"quince{self.chance(16)} medlar{self.chance(16)}"
        view, log = await self.world.view(), await self.world.log()
        await self.world.say(question)
        *others, asked = (content for role, content in self.world.asked() if role == "user")
        assert asked.endswith(question)
        brought, held = ids_in(asked), set[int]().union(*map(ids_in, others))
        may_come = {
            row.id
            for row in log
            if row.id not in self.gone | held | {seen.id for seen in view.messages} and row.timestamp <= view.cutoff
        }
        numbers = {word: sum(word in row.content.split() for row in log) for word in question.split()}
        rare = {word for word, number in numbers.items() if 0 < number <= most_with_a_word_that_brings(len(log))}
        assert brought <= may_come
        assert bool(brought) is any(row.id in may_come and rare.intersection(row.content.split()) for row in log)
        if self.is_warm:
            before, after = (request.messages for request in self.world.model.requests[-2:])
            assert after[: len(before)] == before
        self.is_warm = True
        self.brought += len(brought)

    async def undo(self) -> None:
        if self.is_warm:
            self.gone |= {row.id for row in (await self.world.log())[-2:]}
            await self.world.carry_out("/undo")
            self.is_warm = False

    async def clear(self) -> None:
        self.gone |= {row.id for row in await self.world.log()}
        await self.world.carry_out("/new")
        self.is_warm = False

    async def wait(self) -> None:
        self.world.clock.advance(timedelta(hours=(1, 5, 9, 100)[self.chance(4)]))
        self.is_warm = False


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_is_undone_or_cleared_all_that_may_come_comes_and_nothing_else(world: World, seed: int) -> None:
    world.configure('{"recall": "history", "clock": false}')
    story = Story(world, seed)
    acts = [*[story.say] * 24, *[story.undo] * 4, *[story.wait] * 10, story.clear]
    for _ in range(60):
        await acts[story.chance(len(acts))]()
    assert story.brought
