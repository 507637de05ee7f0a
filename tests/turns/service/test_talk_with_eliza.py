"""What was said with ELIZA: no other model sees it, ELIZA does, and what is left out is counted with its reason."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chorus_cli.context.service.report import context_report
from chorus_cli.models.rules.choice import ELIZA
from tests.turns.folding.long_talk import Talk, facts
from tests.world import MODEL, World, built

NOTICE = f"{MODEL} does not see the 2 messages that you exchanged with ELIZA."


@pytest.fixture
async def met(world: World) -> World:
    """A world in which ELIZA was met, and another model answers now."""
    await world.told(f"/model {ELIZA} --once")
    world.model.say("I am ELIZA, a program.")
    await world.say("Hello, who are you?")
    assert (await world.told(f"/model {MODEL} --once")).splitlines()[1] == NOTICE
    return world


async def test_neither_question_nor_reply_is_in_a_request_of_another_model(met: World) -> None:
    assert await met.notices("And you?") == []
    assert met.asked() == [("user", "And you?")]
    assert NOTICE in await met.told("/model")
    await met.say("Go on.")
    assert [content for _, content in met.asked()] == ["And you?", "ok", "Go on."]


async def test_nothing_is_captured_from_what_eliza_is_told(world: World) -> None:
    code = "```\na = 1\nb = 2\nc = 3\n```"
    await world.told(f"/model {ELIZA} --once")
    assert (await world.say(code)).remembered == ""
    await world.told(f"/model {MODEL} --once")
    assert (await world.say(code)).remembered.startswith("Remembered #1")


async def test_eliza_gets_what_was_said_with_her_and_with_others(met: World) -> None:
    await met.say("And you?")
    assert await met.told(f"/model {ELIZA} --once") == f"Model: {ELIZA} (for this run)"
    await met.say("Are you back?")
    said = ["Hello, who are you?", "I am ELIZA, a program.", "And you?", "ok", "Are you back?"]
    assert [content for _, content in met.asked()] == said


async def test_the_reports_count_it_with_its_reason(met: World) -> None:
    for command in ("/context", "/why"):
        shown = " ".join((await met.told(command)).split())
        assert "said with chorus/eliza 2 " in shown, command
    report = await context_report(met.context, met.current.target(), met.clock.now())
    assert [(each.reason, each.messages) for each in report.omissions] == [("said with chorus/eliza", 2)]
    assert report.plan.message_tokens == 0


async def test_an_earlier_context_does_not_have_it_either(met: World) -> None:
    await met.say("And you?")
    met.clock.advance(timedelta(minutes=2))
    told = await met.told("/context at 1m")
    assert ": 2 messages, ~" in told
    assert f"\n{NOTICE}\n" in told
    assert [line.split()[-1] for line in told.splitlines()[-2:]] == ["you?", "ok"]
    assert "who are you?" not in told


async def test_a_question_that_another_model_answers_too_is_sent_on(met: World) -> None:
    async for _ in met.conversation.retry(met.current.target()):
        pass
    assert met.asked() == [("user", "Hello, who are you?")]
    await met.say("Go on.")
    assert [content for _, content in met.asked()] == ["Hello, who are you?", "ok", "Go on."]


async def test_the_first_message_of_another_process_says_so_once(met: World) -> None:
    again = await built(met.folder, met.store, met.clock, met.model, limit_tokens=10_000)
    assert await again.notices("And you?") == [NOTICE]
    assert await again.notices("Go on.") == []


async def test_a_session_of_the_talk_has_an_extract_and_no_model_is_asked(met: World) -> None:
    requests = len(met.model.requests)
    assert "ELIZA writes no summaries. Your words: “Hello, who are you?”" in await met.told("/context save")
    assert len(met.model.requests) == requests
    await met.say("And you?")
    await met.told("/context save")
    assert "And you?" in met.asked()[0][1]
    assert "ELIZA" not in met.asked()[0][1]


async def test_a_summary_of_a_longer_talk_is_written_without_it(talk: Talk) -> None:
    await talk.world.told(f"/model {ELIZA} --once")
    await talk.say("eliza!")
    await talk.world.told(f"/model {MODEL} --once")
    assert "Not enough messages to compact" in await talk.world.told("/compact")
    await talk.say(*facts(8))
    assert "f0!" in await talk.summary()
    assert "eliza!" not in "".join(talk.summaries())
    assert "eliza!" not in talk.last_request()
