"""A server that refuses what earlier turns have left: it gets them as plain text, and the user is told once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.strict.by_services import Stage
from tests.strict.providers import PROVIDERS
from tests.strict.server import HISTORY_REFUSED, Refuses, Reply, StrictServer, serving, thinking_of
from tests.strict.story import Actor
from tests.terminal.driver import Home

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
        assert problem.endswith("or begin anew with /new.")
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
