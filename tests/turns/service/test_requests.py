"""What a model is asked with: the persona's words and documents, and the messages that have room."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.context.rules.plan import BROKEN_OFF
from chorus_cli.core.errors import MessageRefusedError, ModelError
from chorus_cli.log.rows import message_rows
from chorus_cli.models.rules.events import TextDelta
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel, WordCounter
from tests.world import World, built


async def test_context_includes_system_prompt(world: World) -> None:
    world.configure('{"system_prompt": "You are a lighthouse."}')
    await world.say("Hello")
    assert world.model.requests[0].messages[0].content == "You are a lighthouse."


async def test_context_includes_agent_docs(world: World) -> None:
    docs = world.personas.settings_path("chorus").parent / "docs"
    docs.mkdir()
    (docs / "b.md").write_text("Second.", encoding="utf-8")
    (docs / "a.md").write_text("First.", encoding="utf-8")
    (docs / "blank.md").write_text(" \n", encoding="utf-8")
    await world.say("Hello")
    system = world.model.requests[0].messages[0].content
    assert system.endswith("# a.md\n\nFirst.\n\n# b.md\n\nSecond.")


class CuriousCounter(WordCounter):
    """Remembers what it was asked to count."""

    def __init__(self) -> None:
        self.counted: list[str] = []

    def count(self, text: str) -> int:
        self.counted.append(text)
        return super().count(text)


async def test_documents_are_counted_again_only_when_they_change(world: World) -> None:
    docs = world.personas.settings_path("chorus").parent / "docs"
    docs.mkdir()
    counter = CuriousCounter()
    context = replace(world.context, counter=counter)
    sizes = []
    for text in ("One two.", "One two.", "One two three.", "One two three."):
        (docs / "a.md").write_text(text, encoding="utf-8")
        sizes.append((await context.request_settings(world.current.target())).system_prompt.document_tokens)
    assert sizes == [4, 4, 5, 5]
    assert len([text for text in counter.counted if "One two" in text]) == 2


async def test_context_includes_rolling_window_messages(world: World) -> None:
    world.model.say("One.")
    await world.say("First")
    world.clock.advance(timedelta(minutes=5))
    await world.say("Second")
    assert world.asked() == [("user", "First"), ("assistant", "One."), ("user", "Second")]


async def test_what_is_older_than_the_window_is_not_sent_but_kept(world: World) -> None:
    await world.say("Old")
    world.clock.advance(timedelta(hours=9))
    await world.say("New")
    assert world.asked() == [("user", "New")]
    assert [message.content for message in await world.log()] == ["Old", "ok", "New", "ok"]


async def test_a_preamble_is_stored_and_sent_again_word_for_word(world: World) -> None:
    await world.say("First")
    world.clock.advance(timedelta(hours=2))
    await world.say("Second")
    told = world.asked()[-1]
    world.clock.advance(timedelta(minutes=1))
    await world.say("Third")
    assert world.asked()[2] == told
    assert world.model.requests[2].messages[: len(world.model.requests[1].messages)] == world.model.requests[1].messages


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
    assert notice.startswith("The oldest 2 messages in the window did not fit openai/test")
    assert world.asked()[0][1].startswith("second")
    assert await world.notices("fifth") == []
    assert len(await world.log()) == 10


async def test_rows_put_in_by_hand_are_counted_once(world: World) -> None:
    world.model.say("fine")
    await world.store.write(
        lambda connection: (
            connection.execute(
                "INSERT INTO messages(persona, thread_id, role, content, timestamp) "
                "VALUES ('chorus', 1, 'user', 'three little words', '2026-02-12T14:00:00.000000Z')"
            )
            and None
        )
    )
    await world.say("Hello")
    assert world.asked()[0] == ("user", "three little words")
    assert (await world.store.read(message_rows.rows, [1]))[0].token_count == 3


async def test_context_survives_restart_via_sqlite(world: World, tmp_path: Path) -> None:
    await world.say("Before")
    again = await built(tmp_path / "elsewhere", world.store, world.clock, world.model, limit_tokens=10_000)
    await again.say("After")
    assert again.asked() == [("user", "Before"), ("assistant", "ok"), ("user", "After")]


async def test_a_persona_that_leaves_no_room_is_to_blame_and_not_the_message(world: World) -> None:
    docs = world.personas.settings_path("chorus").parent / "docs"
    docs.mkdir()
    (docs / "big.md").write_text("word " * 9_000, encoding="utf-8")
    with pytest.raises(MessageRefusedError, match=r"leaves no room for a message: .* the documents 9,00\d"):
        await world.say("hi")
    assert await world.log() == []
