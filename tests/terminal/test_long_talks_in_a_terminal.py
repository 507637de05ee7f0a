"""Two hundred turns with a model of 4,000 tokens, killed half way: nothing is forgotten, and little is asked for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests import mock_provider
from tests.remembering import PREFIX
from tests.remembering_provider import Messages, remembering
from tests.terminal.command import PROGRAM, Outcome, finished
from tests.terminal.driver import Home
from tests.terminal.small_model import (
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

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LIMIT = 4000


def talk(home: Home, address: str, requests: Callable[[], Sequence[Messages]], first: str, *, more: int) -> None:
    """Talk for two hundred turns, each with so many words more; a kill parts them in the middle."""
    furnish(home, LIMIT)
    with talking(home, address) as chat:
        say(chat, first, *numbered(2, 100), more=more)
        await_folds(chat, home, requests)
        os.kill(chat.pid, signal.SIGKILL)
        assert chat.await_end() == -signal.SIGKILL
    with talking(home, address) as chat:
        say(chat, *numbered(101, 200), more=more)
        await_folds(chat, home, requests)
        chat.press("ctrl-d")
        assert chat.await_end() == 0


def test_what_is_asked_of_a_summariser_grows_with_what_is_said_not_with_turns(tmp_path: Path) -> None:
    calls = []
    with mock_provider.running() as provider:
        for more in (70, 7):
            home = Home(tmp_path / str(more))
            provider.behave(type="reply", text="Very well.", times=None)
            talk(home, f"{provider.address}/v1", provider.requests, "turn-1:", more=more)
            requests = provider.requests()
            assert all(fits(request, LIMIT) for request in requests)
            assert [message.split()[0] for message in home.said()] == numbered(1, 200)
            assert home.replies() == [("Very well.", "complete")] * 200
            assert_each_extends_the_one_before(asked_of_the_summariser(requests), stored_summaries(home), home.said())
            calls.append(len(asked_of_the_summariser(requests)))
    many, few = calls
    assert 5 <= many <= 200 * 90 // (LIMIT // 5)
    assert 1 <= few <= many // 3


def test_a_fact_of_the_first_turn_is_in_the_two_hundredth_request_and_its_words_after_every_fold_is_undone(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    with remembering() as provider:
        talk(home, provider.address, lambda: provider.asked, "fact-1!", more=70)
        assert f"{PREFIX} fact-1!\n" in asked_of_the_model(provider.asked)[-1]
        assert "fact-1! and" not in asked_of_the_model(provider.asked)[-1]
        assert all(fits(request, LIMIT) for request in provider.asked)
        with talking(home, provider.address) as chat:
            for fold in home.sql("SELECT operation_id FROM summaries ORDER BY operation_id DESC"):
                chat.ask(f"/context undo {fold}", "messages summarised")
            chat.ask("/settings set context_token_limit 100000", "context_token_limit is now 100000")
            say(chat, "turn-201:", more=0)
        last = asked_of_the_model(provider.asked)[-1]
    assert PREFIX not in last
    assert all(f"{word} and" in last for word in ("fact-1!", *numbered(2, 200)))
    assert home.seen()[0].startswith("fact-1! and")
    assert len(home.said()) == len(home.replies()) == 201


def test_a_single_question_waits_for_no_fold_but_one_that_it_needs(home: Home) -> None:
    furnish(home, 1000)
    with remembering() as provider:
        server = {"OPENAI_BASE_URL": provider.address, "OPENAI_API_KEY": "sk-of-nobody"}

        def ask(word: str) -> Outcome:
            return finished([*PROGRAM, "ask", " ".join([word, *["and"] * 230])], {**home.environment, **server})

        for word in ("fact-1!", "fact-2!", "fact-3!"):
            assert ask(word) == Outcome(0, f"Noted: {word}\n", "")
        assert asked_of_the_summariser(provider.asked) == []
        fourth = ask("fact-4!")
    assert (fourth.code, fourth.output) == (0, "Noted: fact-4!\n")
    assert "the older part is being summarised." in fourth.errors
    assert "The oldest 2 messages in context are summarised now." in fourth.errors
    assert stored_summaries(home) == [f"{PREFIX} fact-1!"]
