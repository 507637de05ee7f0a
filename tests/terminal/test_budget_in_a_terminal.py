"""Conversations that outgrow their model, what they cost, and the budget of a day, in the real program."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.loopback_providers import RememberingProvider, recording, remembering
from tests.remembering import PREFIX
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.editors import editor, replacing
from tests.terminal.small_model import (
    MODEL,
    asked_of_the_model,
    asked_of_the_summariser,
    assert_each_extends_the_one_before,
    await_folds,
    fits,
    furnish,
    numbered,
    say,
    stored_summaries,
    talking,
)

LIMIT = 1000  # in tokens: a request may have 800, above 700 a fold begins behind the talk, and it leaves some 500
FOLDED = "The model now gets a summary of the oldest"


@pytest.fixture
def provider() -> Iterator[RememberingProvider]:
    with remembering() as running:
        yield running


def await_summariser(chat: Terminal, provider: RememberingProvider, times: int = 1) -> None:
    chat.until(lambda: len(asked_of_the_summariser(provider.asked)) == times, "a request for a summary")


def report(home: Home) -> dict[str, Any]:
    """Return what ``chorus context --json`` tells."""
    told: dict[str, Any] = json.loads(home.run("context", "--json").output)
    return told


def first_words(told: dict[str, Any]) -> list[str]:
    return [message["content"].split()[0] for message in told["messages"] if message["role"] == "user"]


def test_a_talk_goes_on_for_ever_within_its_limit_also_after_a_crash(home: Home, provider: RememberingProvider) -> None:
    furnish(home, LIMIT)
    with talking(home, provider.address) as chat:
        say(chat, "fact-1!", *numbered(2, 13), more=80)
        await_folds(chat, home, lambda: provider.asked)
        chat.kill(signal.SIGKILL)
    with talking(home, provider.address) as chat:
        say(chat, *numbered(14, 25), more=80)
        await_folds(chat, home, lambda: provider.asked)
        requests, stored = list(provider.asked), stored_summaries(home)
        for fold in home.sql("SELECT operation_id FROM summaries ORDER BY operation_id DESC"):
            chat.say(f"/context undo {fold}")
        chat.ask("/settings set context_token_limit 100000", "context_token_limit is now 100000")
        say(chat, "turn-26:", more=0)
    assert all(fits(request, LIMIT) for request in requests)
    assert_each_extends_the_one_before(asked_of_the_summariser(requests), stored, home.said())
    # Every fold takes away what is between 700 and 500 tokens at least.
    tokens_said = sum(home.sql("SELECT token_count FROM messages")[:50])
    assert 3 <= len(stored) <= tokens_said // 200
    before, after = asked_of_the_model(requests)[-1], asked_of_the_model(provider.asked)[-1]
    assert f"Summary of the earlier conversation:\n{PREFIX} fact-1!\n" in before
    assert "fact-1! and" not in before
    assert PREFIX not in after
    assert "fact-1! and" in after
    assert [message.split()[0] for message in home.said()] == ["fact-1!", *numbered(2, 26)]
    assert [status for _, status in home.replies()] == ["complete"] * 26
    assert home.seen()[0].startswith("fact-1! and")


def test_a_summary_is_made_and_shown_and_reworded_and_taken_back(home: Home, provider: RememberingProvider) -> None:
    furnish(home, LIMIT)
    with talking(home, provider.address, VISUAL=editor(home.path, replacing("fact-1!", "FACT ONE"))) as chat:
        say(chat, "fact-1!", "fact-2!", more=40)
        chat.ask("/compact", "Not enough messages to compact")
        assert asked_of_the_summariser(provider.asked) == []
        say(chat, "fact-3!", "fact-4!", more=40)
        chat.ask("/model chorus/eliza", "Model: chorus/eliza")
        chat.ask("/compact", "ELIZA cannot summarise. Choose another model with /model")
        chat.ask(f"/model {MODEL}", f"Model: {MODEL}")
        chat.ask("/context compact the colour of the door", "4 messages summarised")
        assert provider.asked[-1][0]["content"].endswith("Above all keep what concerns: the colour of the door")
        chat.ask("/context summary", f"Summary of 4 messages (#1 to #4), by {MODEL}, ")
        chat.ask("/context summary edit", "Summary replaced.")
        chat.ask("/why", "replaces the 4 oldest messages (operation 2)")
        told = report(home)
        chat.ask("/context ops", "another wording of the summary")
        chat.ask("/undo", "Undone: another wording of the summary")
        chat.say("/context summary")
        chat.await_text(f"{PREFIX} fact-1! fact-2!", times=3)
        chat.say("/undo")
        chat.await_text("Undone: 4 messages summarised")
        chat.ask("/context summary", "There is no summary")
    assert told["messages"][0]["content"].endswith(f"Summary of the earlier conversation:\n{PREFIX} FACT ONE fact-2!")
    assert first_words(told) == ["fact-3!", "fact-4!"]
    assert [part["name"] for part in told["parts"]] == ["system prompt", "documents", "summary", "messages"]
    assert [(each["reason"], each["messages"]) for each in told["left_out"]] == [("summarised", 4)]
    whole = report(home)
    assert whole["left_out"] == []
    assert first_words(whole) == ["fact-1!", "fact-2!", "fact-3!", "fact-4!"]


def test_a_fold_behind_the_talk_holds_up_neither_typing_nor_leaving(home: Home, provider: RememberingProvider) -> None:
    furnish(home, LIMIT)
    with talking(home, provider.address) as chat:
        provider.may_write.clear()
        say(chat, "fact-1!", "fact-2!", "fact-3!", more=230)
        await_summariser(chat, provider)
        chat.type("half a li")
        chat.await_line(f"{PROMPT} half a li")
        chat.await_bottom_line("(75%)")
        provider.may_write.set()
        chat.await_text(f"{FOLDED} 2 messages. /context summary shows it; /context undo 1")
        chat.await_line(f"{PROMPT} half a li")
        chat.await_bottom_line("(52%)")
        assert chat.screen_text().count(PROMPT) == 4
        chat.type("ne")
        chat.await_line(f"{PROMPT} half a line")
        chat.press("ctrl-c")
        provider.may_write.clear()
        say(chat, "fact-4!", more=230)
        await_summariser(chat, provider, 2)
        chat.press("ctrl-d")
        assert chat.await_end(seconds=2) == 0
    assert stored_summaries(home) == [f"{PREFIX} fact-1!"]
    assert home.sql("SELECT count(*) FROM operations") == [1]
    assert len(home.seen()) == 6


def test_whatever_is_said_is_counted_and_what_no_model_holds_is_refused_with_its_size(home: Home) -> None:
    assert home.run("ask", "-c", "I am <|endoftext|> \N{GRINNING FACE}").code == 0
    # A question that surely fits is counted when a count is needed.
    assert home.run("context").code == 0
    assert home.sql("SELECT token_count FROM messages WHERE role = 'user'") == [9]
    megabyte = home.run("ask", "-c", stdin=b"hello world " * 87_382)
    assert "it has ~174,936 tokens" in megabyte.errors
    assert "a request may have 102,400 of the model's 128,000. The message was not stored;" in megabyte.errors
    assert (megabyte.code, len(home.said())) == (1, 1)


USAGE = '{"prompt_tokens": 1000000, "completion_tokens": 100000, "total_tokens": 1100000, "cached_tokens": 500000}'


@pytest.fixture
def spent(tmp_path: Path) -> Home:
    """A home whose one reply is of a model with a price, and has cost more than a cent."""
    home = Home(tmp_path / "home")
    assert home.run("ask", "-c", "I am unhappy").code == 0
    home.sql("UPDATE messages SET model = 'gpt-4o-mini', usage = ? WHERE role = 'assistant'", USAGE)
    return home


def test_no_command_asks_the_model_once_the_budget_is_spent(spent: Home) -> None:
    (spent.path / "commands").mkdir()
    (spent.path / "commands" / "feel.md").write_text("I am $ARGUMENTS")
    assert spent.run("ask", "/settings set budget 0.01").code == 0
    for line in ("/feel happy", "/retry", "/bg I am happy", "/compact"):
        outcome = spent.run("--model", "openai/gpt-4o", "ask", "-c", line)
        assert (outcome.code, outcome.output) == (1, ""), line
        assert "of your budget of $0.01. Nothing was sent." in outcome.errors, line
        assert (spent.said(), len(spent.replies())) == (["I am unhappy"], 1), line
    assert spent.run("ask", "I am happy").output == "What has made you happy?\n"


def test_the_budget_counts_for_the_model_of_summaries_though_the_model_of_messages_is_free(spent: Home) -> None:
    for setting in (("budget", "0.01"), ("summary_model", "openai/gpt-4o")):
        assert spent.run("set", *setting).code == 0
    for words in (("memory", "distil", "#1"), ("ask", "-c", "/compact")):
        assert "of your budget of $0.01. Nothing was sent." in spent.run(*words).errors, words
    assert spent.run("set", "summary_model", "chorus/eliza").code == 0
    outcome = spent.run("--model", "openai/gpt-4o", "memory", "distil", "#1")
    assert outcome.errors.startswith("chorus/eliza cannot propose facts.")


def test_the_budget_counts_for_the_model_that_a_retry_names(spent: Home) -> None:
    assert spent.run("set", "budget", "0.01").code == 0
    assert "of your budget of $0.01. Nothing was sent." in spent.run("ask", "-c", "/retry openai/gpt-4o").errors
    assert spent.run("--model", "openai/gpt-4o", "ask", "-c", "/retry chorus/eliza").code == 0


def test_the_chat_asks_before_each_message_once_the_budget_is_spent_and_shows_the_price(spent: Home) -> None:
    for line in ("/settings set budget 0.01", "/settings set show_price true"):
        assert spent.run("ask", line).code == 0
    with recording() as provider, spent.chat(**provider.environment()) as terminal:
        terminal.await_bottom_line("$0.")
        refused = "Nothing was sent. /set budget N raises the budget"
        for number, line in enumerate(("/retry", "/bg aside", "/compact", "/editor", "I am happy"), 1):
            terminal.say(line)
            terminal.await_text("Ask the model anyway?", times=number)
            terminal.ask("n", refused, f"{PROMPT} {line}" if line == "I am happy" else PROMPT, times=number)
        terminal.press("enter")
        terminal.await_text("Ask the model anyway?", times=6)
        terminal.say("y")
        terminal.until(lambda: len(spent.replies()) == 2, "a second reply")
    assert spent.said() == ["I am unhappy", "I am happy"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_at_the_question_of_the_budget_keeps_the_message_alone(spent: Home, number: signal.Signals) -> None:
    assert spent.run("ask", "/settings set budget 0.01").code == 0
    with spent.chat(CHORUS_MODEL="openai/gpt-4o") as terminal:
        terminal.say("I am happy")
        terminal.await_text("Ask the model anyway?")
        terminal.say("and glad")
        terminal.await_text('"and glad" is not an answer, so it was not sent. Answer y/n.')
        terminal.await_text("Ask the model anyway? (y/n)", times=2)
        terminal.until(lambda: spent.unsent() == ["I am happy"], "a draft")
        terminal.kill(number)
    with spent.chat(f"{PROMPT} I am happy"):
        assert spent.said() == ["I am unhappy"]
