"""Turns that outgrow the model, whose cut takes thoughts along, and servers that refuse what earlier turns left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.strict.by_services import Stage
from tests.strict.claude import StrictClaude
from tests.strict.providers import PROVIDERS
from tests.strict.server import HISTORY_REFUSED, Refuses, Reply, StrictServer, serving, thinking_of
from tests.strict.story import Actor
from tests.terminal.driver import Home

CROWDED = ["deepseek", "openrouter", "claude", "claude-bound", "claude-manual", "responses", "gemini-3"]


def long(actor: Actor, words: int) -> Reply:
    """Return a reply with a call whose result is long."""
    return Reply(calls=(actor.call("echo", text="gold ", times=words),))


def let_thoughts_begin_late(server: StrictServer) -> None:
    """Have a Claude do without its first thoughts, as it may."""
    if isinstance(server.protocol, StrictClaude):
        server.protocol = server.protocol.lenient()


@pytest.mark.parametrize("name", CROWDED)
async def test_a_turn_whose_results_are_cut_goes_on(name: str, stage: Stage) -> None:
    async with replace(stage, limit_tokens=6_000).players(name) as (player, (main,)):
        let_thoughts_begin_late(main.server)
        main.server.will(*(long(main, 2_000 + number) for number in range(4)), Reply("So much gold."))
        await player.say("Dig.", "So much gold.")
        assert main.server.refused == []


@pytest.mark.parametrize("name", CROWDED)
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


NAMES = ["deepseek", "openrouter", "mistral", "claude", "claude-bound", "responses", "gemini-3"]
TOLD = "rejected this conversation, so it gets earlier turns as plain text until /new."


def refuse_history(server: StrictServer) -> None:
    """Have a server refuse calls of earlier turns, and do without thoughts of them."""
    server.refuses = Refuses.CALLS_OF_EARLIER_TURNS
    server.protocol = server.protocol.lenient()


def answer(actor: Actor, text: str) -> str:
    """Have a question answered with a call before, and return the text."""
    actor.server.will(Reply("I look.", (actor.search(text),)), Reply(text))
    return text


@pytest.mark.parametrize("name", NAMES)
async def test_it_is_asked_with_plain_text_until_the_next_clear(name: str, stage: Stage) -> None:
    async with stage.players(name, "vllm") as (player, (main, other)):
        told = [f"{main.strict.model} {TOLD}"]
        await player.say("One?", answer(main, "The first."))
        refuse_history(main.server)
        await player.say("Two?", answer(main, "The second."))
        assert (main.server.fell_through, player.notices) == (1, told)
        await player.say("Three?", answer(main, "The third."))
        await player.restart()
        await player.say("Four?", answer(main, "The fourth."))
        await player.command(f"/model {other.strict.model}", "Model:")
        await player.say("Five?", answer(other, "The fifth."))
        assert "[tool call" not in str(other.server.bodies)
        await player.command(f"/model {main.strict.model}", "Model:")
        await player.say("Six?", answer(main, "The sixth."))
        assert (main.server.fell_through, player.notices) == (1, told)
        await player.command("/new", "New conversation")
        await player.say("Seven?", answer(main, "The seventh."))
        assert (main.server.fell_through, player.notices) == (1, told)
        await player.say("Eight?", answer(main, "The eighth."))
        assert (main.server.fell_through, player.notices) == (2, told * 2)
        assert main.server.refused == other.server.refused == []


@pytest.mark.parametrize("name", NAMES)
async def test_the_turn_in_which_it_refused_keeps_its_own_thoughts(name: str, stage: Stage) -> None:
    async with stage.players(name) as (player, (main,)):
        await player.say("One?", answer(main, "The first."))
        refuse_history(main.server)
        main.server.will(Reply("I look.", (main.search("a"),)), Reply(calls=(main.search("b"),)), Reply("Done."))
        await player.say("Two?", "Done.")
        assert (main.server.fell_through, main.server.refused) == (1, [])
        third, newest = thinking_of(name, 3, 0), str(main.server.bodies[-1])
        assert f"{name} thought 3" in newest or third.signature in newest


@pytest.mark.parametrize("name", NAMES)
async def test_one_that_refuses_even_plain_text_leaves_the_way_out(name: str, stage: Stage) -> None:
    async with stage.players(name) as (player, (main,)):
        await player.say("One?", answer(main, "The first."))
        main.server.refuses = Refuses.EVERYTHING
        problem = await player.failure("Two?")
        assert HISTORY_REFUSED in problem
        assert problem.endswith("or start over with /new.")
        assert main.server.fell_through == 2
        main.server.refuses = None
        await player.say("Three?", answer(main, "The third."))
        assert (player.notices, main.server.refused) == ([], [])


def test_it_is_remembered_from_process_to_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strict, home = PROVIDERS["deepseek"], Home(tmp_path)
    with serving(StrictServer("deepseek", strict.protocol)) as server:
        for variable, value in strict.environment(server.address).items():
            monkeypatch.setenv(variable, value)
        actor = Actor(strict, server)

        def ask(text: str) -> str:
            done = home.run("--model", strict.model, "ask", "--thread", "1", text)
            assert done.code == 0
            return done.errors

        home.run("log")
        answer(actor, "The first.")
        assert TOLD not in ask("One?")
        refuse_history(server)
        assert ask("Two?").count(TOLD) == 1
        answer(actor, "The third.")
        assert (ask("Three?"), server.fell_through) == ("", 1)
        assert "New conversation" in home.run("ask", "/new").output
        answer(actor, "The fourth.")
        ask("Four?")
        assert server.fell_through == 1
        assert TOLD in ask("Five?")
        assert (server.fell_through, server.refused) == (2, [])
