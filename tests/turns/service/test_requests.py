"""What a model is asked with: the persona's words and documents, and the messages that have room, counted or not."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.context.rules.plan import BROKEN_OFF
from chorus_cli.core.errors import MessageRefusedError, ModelError
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.messages import Role
from chorus_cli.models.rules import budget as rules
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE, Budget, Calibration, Limit, Room
from chorus_cli.models.rules.events import ReplyEnd, TextDelta, TurnDone
from chorus_cli.storage.store import Store
from chorus_cli.turns.service.opening import OTHER_TOKENS
from tests.fakes import FakeClock, ScriptedModel, WordCounter
from tests.sessions.service.saved_sessions import sql
from tests.turns.service.tool_talk import TOOLS, assert_pairs_are_whole, call, calls, events_of
from tests.world import Tools, World, built

LIMIT = Limit(10_000, "a test")


async def test_context_includes_system_prompt(world: World) -> None:
    world.configure('{"system_prompt": "You are a lighthouse."}')
    await world.say("Hello")
    assert world.model.requests[0].messages[0].content == "You are a lighthouse."


NOTE = "[Note: Stay brief.]"


@pytest.mark.parametrize(
    ("depth", "noted", "told"),
    [
        (4, {"Three": f"{NOTE}\n\nThree"}, "at most 4 messages before the end"),
        (2, {"Four": f"{NOTE}\n\nFour"}, "at most 2 messages before the end"),
        (1, {"Four": f"{NOTE}\n\nFour"}, "at most 1 message before the end"),
        (0, {"Four": f"Four\n\n{NOTE}"}, "at the end of your newest message"),
        (99, {"One": f"{NOTE}\n\nOne"}, "at most 99 messages before the end"),
    ],
)
async def test_a_note_is_in_the_users_message_that_many_messages_before_the_end_and_stored_nowhere(
    world: World, depth: int, noted: dict[str, str], told: str
) -> None:
    world.configure(f'{{"note": " Stay brief. ", "note_depth": {depth}}}')
    for text in ("One", "Two", "Three", "Four"):
        await world.say(text)
    messages = world.model.requests[-1].messages[1:]
    rows = [row for row in await world.log() if row.content][: len(messages)]
    assert [(each.role, each.content) for each in messages] == [
        (row.role, noted.get(row.content, row.content)) for row in rows
    ]
    assert NOTE not in [row.content for row in await world.log()]
    assert "\nnote " in await world.told("/context")
    assert told in await world.told("/why")


async def test_with_a_note_a_request_repeats_the_last_one_but_for_its_tail(world: World) -> None:
    world.configure('{"note": "Stay brief."}')
    for number in range(12):
        await world.say(f"Question {number}")
    for before, after in pairwise(world.model.requests):
        same = max(1, len(before.messages) - 5)
        assert after.messages[:same] == before.messages[:same]


async def test_a_note_keeps_its_place_through_the_rounds_of_a_turn(tooled: World) -> None:
    tooled.configure('{"note": "Stay brief.", "note_depth": 1}')
    calls(tooled, call("echo", {"text": "gold"}), call("echo", {"text": "silver"}, "b"))
    calls(tooled, call("echo", {"text": "tin"}, "c"))
    await tooled.say("What is it?")
    for request in tooled.model.requests:
        assert request.messages[1].content == f"{NOTE}\n\nWhat is it?"
    await tooled.say("And then?")
    assert_pairs_are_whole(tooled.model.requests[-1].messages)
    assert tooled.model.requests[-1].messages[-1].content == f"{NOTE}\n\nAnd then?"


def document(world: World, name: str, text: str) -> None:
    """Give the persona a document."""
    docs = world.personas.settings_path("chorus").parent / "docs"
    docs.mkdir(exist_ok=True)
    (docs / name).write_text(text, encoding="utf-8")


async def test_context_includes_agent_docs(world: World) -> None:
    document(world, "b.md", "Second.")
    document(world, "a.md", "First.")
    document(world, "blank.md", " \n")
    await world.say("Hello")
    system = world.model.requests[0].messages[0].content
    assert system.endswith("# a.md\n\nFirst.\n\n# b.md\n\nSecond.")


async def test_documents_are_counted_again_when_they_change(world: World) -> None:
    sizes = []
    for text in ("One two.", "One two.", "One two three.", "One two three."):
        document(world, "a.md", text)
        sizes.append((await world.context.request_settings(world.current.target())).system_prompt.document_tokens)
    assert sizes == [4, 4, 5, 5]


async def test_context_includes_rolling_window_messages(world: World) -> None:
    world.model.say("One.")
    await world.say("First")
    world.clock.advance(timedelta(minutes=5))
    await world.say("Second")
    assert world.asked() == [("user", "First"), ("assistant", "One."), ("user", "Second")]


async def test_the_user_sees_the_pause_that_the_model_is_told_of(world: World) -> None:
    assert await world.notices("First") == []
    world.clock.advance(timedelta(hours=7, minutes=12))
    (notice,) = await world.notices("Second")
    assert notice == f"7 h 12 m later, {world.clock.now():%a %H:%M}"
    world.clock.advance(timedelta(minutes=59))
    assert await world.notices("Third") == []


async def test_the_clock_can_be_kept_from_the_model(world: World) -> None:
    world.configure('{"clock": false}')
    await world.say("First")
    world.clock.advance(timedelta(hours=2))
    await world.say("Second")
    assert world.asked()[-1] == ("user", "Second")


async def test_sampling_settings_are_sent_only_when_they_are_set(world: World) -> None:
    await world.say("Hello")
    world.configure('{"temperature": 0.5, "max_output_tokens": 100}')
    await world.say("Hello")
    before, after = world.model.requests
    assert (before.temperature, before.max_output_tokens) == (None, None)
    assert (after.temperature, after.max_output_tokens) == (0.5, 100)


async def test_a_broken_reply_is_sent_with_a_mark_and_an_empty_one_not_at_all(world: World) -> None:
    world.model.enqueue(TextDelta("Half"))
    await world.say("First")
    world.model.enqueue(ModelError("Down."))
    await world.say("Second")
    await world.say("Third")
    assert world.asked() == [
        ("user", "First"),
        ("assistant", f"Half\n{BROKEN_OFF}"),
        ("user", "Second"),
        ("user", "Third"),
    ]


async def test_the_oldest_turns_stay_out_when_the_request_would_be_too_large(
    tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel
) -> None:
    world = await built(tmp_path, store, clock, model, limit_tokens=200)
    world.configure('{"system_prompt": "Short.", "summary_model": "chorus/eliza"}')
    for number in ("first", "second", "third"):
        model.say("a " * 25)
        await world.say(f"{number} " + "q " * 25)
    (notice,) = await world.notices("fourth")
    assert notice.startswith("This request to openai/test had no room for the oldest 2 messages in the window.")
    assert world.asked()[0][1].startswith("second")
    assert await world.notices("fifth") == []
    assert len(await world.log()) == 10


async def test_rows_put_in_by_hand_are_counted_once(world: World) -> None:
    world.model.say("fine")
    insert = "INSERT INTO messages(persona, thread_id, role, content, timestamp) VALUES ('chorus', 1, 'user', ?, ?)"
    await sql(world, insert, "three little words", "2026-02-12T14:00:00.000000Z")
    await world.say("Hello")
    assert world.asked()[0] == ("user", "three little words")
    assert (await world.store.read(message_rows.rows, [1]))[0].token_count == 3


async def test_context_survives_restart_via_sqlite(world: World, tmp_path: Path) -> None:
    await world.say("Before")
    again = await built(tmp_path / "elsewhere", world.store, world.clock, world.model, limit_tokens=10_000)
    await again.say("After")
    assert again.asked() == [("user", "Before"), ("assistant", "ok"), ("user", "After")]


async def test_a_persona_that_leaves_no_room_is_to_blame_and_not_the_message(world: World) -> None:
    document(world, "big.md", "word " * 9_000)
    with pytest.raises(MessageRefusedError, match=r"leaves no room for a message: .* the documents 9,00\d"):
        await world.say("hi")
    assert await world.log() == []


TOO_LARGE = (
    "~930 tokens and the system prompt, documents and tools {}, but a request may have 1,000 of the model's 10,000, "
    "because max_output_tokens keeps 9,000 for the reply. The message was not stored; shorten the message, turn tools "
    "off with /set tools false, lower max_output_tokens, or choose"
)
NO_ROOM = (
    "may have 0, because max_output_tokens keeps 20,000 for the reply. The message was not stored; shorten the prompt "
    "or the documents, lower max_output_tokens, or choose"
)


@pytest.mark.parametrize(("kept", "text", "told"), [(9_000, "word " * 930, TOO_LARGE), (20_000, "hi", NO_ROOM)])
async def test_a_refusal_names_all_that_takes_the_room(tooled: World, kept: int, text: str, told: str) -> None:
    tooled.configure(f'{{"max_output_tokens": {kept}}}')
    settings = await tooled.context.request_settings(tooled.current.target())
    assert settings.offer.tokens
    beside = settings.fixed_tokens + OTHER_TOKENS + TOKENS_PER_MESSAGE
    with pytest.raises(MessageRefusedError, match=re.escape(told.format(beside))):
        await tooled.say(text)


class LateCounter(WordCounter):
    """Counts words, once its vocabulary is loaded, and keeps the texts as ``counted``."""

    is_ready = False

    def __init__(self) -> None:
        self.counted: list[str] = []

    def load(self) -> None:
        self.is_ready = True

    def at_most(self, text: str) -> int:
        return self.count(text) if self.is_ready else len(text.encode())

    def count(self, text: str) -> int:
        self.load()
        self.counted.append(text)
        return super().count(text)


@pytest.fixture
def counter() -> LateCounter:
    return LateCounter()


@pytest.fixture
async def late(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel, counter: LateCounter) -> World:
    return await built(tmp_path, store, clock, model, LIMIT.tokens, Tools(counter=counter))


async def counts(world: World) -> list[int | None]:
    return [row.token_count for row in await world.log()]


async def test_a_short_talk_is_sent_uncounted_and_counted_by_a_report(late: World, counter: LateCounter) -> None:
    await late.say("Hello there")
    late.model.say("Fine, thanks.")
    await late.say("How are you?")
    assert not counter.is_ready
    assert await counts(late) == [None] * 4
    assert [content for _, content in late.asked()][:2] == ["Hello there", "ok"]
    await late.told("/context")
    assert None not in await counts(late)
    assert [row.token_count for row in await late.log() if row.role is Role.ASSISTANT] == [1, 2]


async def test_a_system_prompt_is_counted_only_once(late: World, counter: LateCounter) -> None:
    counter.load()
    prompt = "You are a lighthouse."
    late.configure(f'{{"system_prompt": "{prompt}"}}')
    await late.say("Hello")
    assert prompt in counter.counted
    counter.counted.clear()
    await late.say("Hello again")
    assert prompt not in counter.counted


async def test_a_long_reply_is_counted_by_a_report_once_it_is_whole(late: World, counter: LateCounter) -> None:
    counter.load()
    long = "word " * 5_000
    late.model.say(long)
    await late.say("Tell me all.")
    assert await counts(late) == [3, None]
    await late.told("/context")
    assert await counts(late) == [3, 5_000]
    await sql(late, "UPDATE messages SET status = 'streaming', token_count = NULL WHERE role = 'assistant'")
    await late.told("/context")
    assert await counts(late) == [3, None]


@pytest.mark.parametrize(("words", "is_counted"), [(700, False), (1_500, True), (3_500, True)])
async def test_a_message_is_counted_before_it_is_sent_if_its_bytes_might_not_fit(
    late: World, counter: LateCounter, words: int, *, is_counted: bool
) -> None:
    await late.say("word " * words)
    assert counter.is_ready is is_counted
    assert late.asked()[-1][1].split().count("word") == words


async def test_a_talk_is_counted_once_its_bytes_might_not_fit(late: World, counter: LateCounter) -> None:
    notices = [notice for number in range(5) for notice in await late.notices(f"{number} " + "word " * 600)]
    assert counter.is_ready
    assert notices == []
    assert [content.split()[0] for role, content in late.asked() if role == "user"] == list("01234")
    first, *_ = await counts(late)
    assert first == 601


async def test_bounds_teach_nothing_about_usage_and_refuse_no_message(late: World) -> None:
    late.model.enqueue(TextDelta("ok"), ReplyEnd("stop", {"prompt_tokens": 5_000}))
    await late.say("word " * 400)
    assert "Estimates are multiplied" not in await late.told("/context")
    with pytest.raises(MessageRefusedError, match=r"it has ~9,000 tokens"):
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
    assert [row.role for row in await world.log()].count(Role.TOOL_RESULT) == 1
    assert await counts(world) == [None] * 5


@pytest.mark.parametrize(("limit", "offered"), [(1_000, 0), (9_000, len(TOOLS))])
async def test_declarations_that_fill_a_small_model_are_not_offered(tooled: World, limit: int, offered: int) -> None:
    tooled.configure(f'{{"context_token_limit": {limit}}}')
    await tooled.say("Hi")
    assert len(tooled.model.requests[-1].tools) == offered


async def test_tokens_of_calls_results_and_declarations_are_counted(tooled: World) -> None:
    before = (await tooled.context.planned(tooled.current.target(), tooled.clock.now())).tokens
    calls(tooled, call("echo", {"text": "one two three"}))
    await tooled.say("What is it?")
    used, result = [row for row in await tooled.log() if row.role in {Role.TOOL_USE, Role.TOOL_RESULT}]
    assert result.token_count == 3
    assert used.token_count == len((used.tool_calls or "").split())
    assert json.loads(used.tool_calls or "")[0]["function"]["name"] == "echo"
    plan = await tooled.context.planned(tooled.current.target(), tooled.clock.now())
    assert plan.snapshot.request_settings.offer.tokens > 50
    assert before > plan.snapshot.request_settings.offer.tokens
    assert "tools" in await tooled.told("/context")


@pytest.mark.parametrize(
    ("threshold", "output", "tokens", "aside", "undone"),
    [
        (0.8, None, 8_000, 7_000, 9_500),
        (0.8, 1_000, 8_000, 7_000, 9_000),
        (0.8, 3_000, 7_000, 6_125, 7_000),
        (0.5, None, 5_000, 4_375, 9_500),
        (0.8, 20_000, 0, 0, 0),
    ],
)
def test_room_is_left_for_the_reply(threshold: float, output: int | None, tokens: int, aside: int, undone: int) -> None:
    allowed = rules.budget(LIMIT, threshold, output, Calibration())
    assert (allowed.tokens, allowed.background_fold_tokens) == (tokens, aside)
    assert rules.budget(LIMIT, threshold, output, Calibration(), fold_is_undone=True).tokens == undone


def test_a_model_that_counts_more_leaves_less_room() -> None:
    allowed = Budget(LIMIT, 8_000, Calibration(1.6))
    assert allowed.room == Room(5_000, 3_125)
    assert allowed.corrected(1_000) == 1_600
    assert allowed.corrected(allowed.room.budget) <= allowed.tokens


@given(st.lists(st.integers(0, 10_000), max_size=6), st.floats(0.8, 2.0))
def test_expected_parts_add_up_to_what_is_expected_of_the_whole(parts: list[int], factor: float) -> None:
    allowed = Budget(LIMIT, 8_000, Calibration(factor))
    expected = allowed.corrected_parts(parts)
    assert sum(expected) == allowed.corrected(sum(parts))
    assert all(abs(got - factor * part) < 1.001 for part, got in zip(parts, expected, strict=True))


@pytest.mark.parametrize(
    ("before", "estimated", "reported", "factor", "error"),
    [
        pytest.param(Calibration(), 1_000, 1_200, 1.2, -0.167, id="the first is taken as it is"),
        pytest.param(Calibration(1.2, 0.0), 1_000, 1_200, 1.2, 0.0, id="as expected"),
        pytest.param(Calibration(1.0, 0.0), 1_000, 1_100, 1.03, -0.091, id="later ones little by little"),
        pytest.param(Calibration(1.1, 0.1), 50, 500, 1.1, 0.1, id="a small request says nothing"),
        pytest.param(Calibration(1.1, 0.1), 1_000, 30, 1.1, 0.1, id="a report without what was cached"),
        pytest.param(Calibration(), 1_000, 9_000, 2.0, -0.889, id="never more than twice"),
        pytest.param(Calibration(), 1_000, 600, 0.8, 0.667, id="never less than four fifths"),
    ],
)
def test_reports_correct_the_estimate(
    before: Calibration, estimated: int, reported: int, factor: float, error: float
) -> None:
    after = rules.learned_calibration(before, estimated, reported)
    assert (round(after.factor, 3), round(after.error or 0, 3)) == (factor, error)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", '{"factor": 9, "error": 0}', '{"factor": "x", "error": 0}'])
def test_what_cannot_be_read_counts_as_nothing_learned(text: str | None) -> None:
    assert rules.read_calibration(text) == Calibration()


@given(st.floats(0.8, 2.0), st.none() | st.floats(-1, 5))
def test_what_is_written_is_read_back(factor: float, error: float | None) -> None:
    assert not rules.calibrations_differ(
        rules.read_calibration(rules.written_calibration(Calibration(factor, error))), Calibration(factor, error)
    )
