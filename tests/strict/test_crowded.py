"""Turns that outgrow the model while they last: what is cut or folded takes the thoughts along that hang on it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.strict.by_services import Stage
from tests.strict.claude import StrictClaude
from tests.strict.server import Reply, StrictServer
from tests.strict.story import Actor

NAMES = ["deepseek", "openrouter", "claude", "claude-bound", "claude-manual", "responses", "gemini-3"]


def long(actor: Actor, words: int) -> Reply:
    """Return a reply with a call whose result is long."""
    return Reply(calls=(actor.call("echo", text="gold ", times=words),))


def let_thoughts_begin_late(server: StrictServer) -> None:
    """Have a Claude do without its first thoughts, as it may."""
    if isinstance(server.protocol, StrictClaude):
        server.protocol = server.protocol.lenient()


@pytest.mark.parametrize("name", NAMES)
async def test_a_turn_whose_results_are_cut_goes_on(name: str, stage: Stage) -> None:
    async with replace(stage, limit_tokens=6_000).players(name) as (player, (main,)):
        let_thoughts_begin_late(main.server)
        main.server.will(*(long(main, 2_000 + number) for number in range(4)), Reply("So much gold."))
        await player.say("Dig.", "So much gold.")
        assert main.server.refused == []


@pytest.mark.parametrize("name", NAMES)
async def test_a_turn_goes_on_after_a_fold_in_its_middle(name: str, stage: Stage) -> None:
    async with replace(stage, limit_tokens=6_000).players(name) as (player, (main,)):
        let_thoughts_begin_late(main.server)
        for number in range(4):
            main.server.will(Reply(f"Silver {number}."))
            await player.say(f"{number}. " + "silver " * 600, f"Silver {number}.")
        main.server.will(long(main, 1_000), long(main, 1_500), Reply("A summary."), long(main, 10), Reply("Gold."))
        await player.say("Dig.", "Gold.")
        assert main.server.refused == []
        assert any("A summary." in str(body) for body in main.server.bodies)


@pytest.mark.parametrize("name", ["deepseek", "openrouter"])
async def test_what_the_context_shows_is_sent_also_after_very_long_thoughts(name: str, stage: Stage) -> None:
    async with replace(stage, limit_tokens=6_000).players(name) as (player, (main,)):
        main.server.protocol = main.server.protocol.lenient()
        for number, more_words in enumerate((500, 500, 9_000), 1):
            main.server.more_words = more_words
            main.server.will(Reply(f"Answer {number}."))
            await player.say(f"Question {number}?", f"Answer {number}.")
        plan = await player.world.services.context.planned(player.world.current.target(), player.world.clock.now())
        main.server.will(Reply("Answer 4."))
        await player.say("Question 4?", "Answer 4.")
        newest = str(main.server.bodies[-1])
        texts = [text.format(number) for number in range(1, 4) for text in ("Question {}?", "Answer {}.")]
        shown = [message.content for message in plan.request.messages if message.role != "system"]
        assert (shown, plan.cut, plan.too_large) == (texts, (), ())
        assert [text for text in texts if text not in newest] == []
        assert main.server.refused == []
