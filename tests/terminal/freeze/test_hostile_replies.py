"""No reply holds up the event loop: keys are read, Ctrl-C acts, the half-second write goes on, nothing is obeyed."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

from chorus_cli.core.text.code_points import join_surrogates
from tests.terminal.driver import Home
from tests.terminal.freeze.hostile_replies import hostile_replies
from tests.terminal.freeze.watched import HEARTBEAT_SECONDS
from tests.terminal.freeze.watched_chat import END, WatchedChat, watching

STOP_SECONDS = 0.1
MIXED = (
    *("a fence of empty lines", "a table of empty rows", "emphasis", "brackets", "a title that goes on", "marks"),
    "all controls",
)
HUGE = (
    *("brackets", "emphasis", "quotes in items", "nested items", "growing quotes", "a line", "lines", "marks alone"),
    *("families", "blanks", "empty lines", "carriage returns", "overrides", "quotes"),
)
_ATTEMPTS = 3  # times that a reply is shown until nothing took long: other work on the machine can only add to a time


def complaints(chat: WatchedChat, names: Iterable[str], seconds: float) -> list[str]:
    found: list[str] = []
    for name in names:
        slow: list[str] = []
        for _ in range(_ATTEMPTS):
            slow = delays(chat, name, seconds)
            found += [f"{name}: the terminal was sent {sign!r}" for sign in set(chat.obeyed())]
            if not slow:
                break
        found += slow
    return found


def delays(chat: WatchedChat, name: str, seconds: float) -> list[str]:
    chat.begin_thread()
    taken = chat.shown(name, seconds)
    # On a crowded machine the drawing that was given up has processor time while the loop waits for its own.
    is_crowded = os.getloadavg()[0] > 2 * (os.cpu_count() or 1)
    found = [f"{name}: {step}" for step in chat.long_steps() if step.seconds > HEARTBEAT_SECONDS]
    if taken is not None and taken > STOP_SECONDS * (1 + is_crowded):
        found.append(f"{name}: Ctrl-C took {taken:.3f} s")
    return found


def test_hostile_replies_hold_up_neither_ctrl_c_nor_the_heartbeat(home: Home) -> None:
    texts = hostile_replies(5_000)
    mixed = "\n\n".join(texts[name] for name in MIXED)
    with watching(home, {"mixed": mixed, "signs": texts["all controls"]}) as chat:
        assert complaints(chat, ["signs", "mixed"], 2) == []
        chat.terminal.type("the keyboard is alive")
        assert chat.seen("alive")
    whole = {"signs": f"{texts['all controls']}\n\n{END}\n", "mixed": f"{mixed}\n\n{END}\n"}
    stored = list(zip(home.said()[1:], home.replies()[1:], strict=True))
    assert {name for name, _ in stored} == set(whole)
    assert whole["signs"] in [content for _, (content, _) in stored]
    assert [name for name, (content, _) in stored if not whole[name].startswith(content)] == []


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(("length", "seconds"), [(100_000, 2), (10_000_000, 8)])
def test_the_whole_corpus_does_not_either(home: Home, length: int, seconds: float) -> None:
    texts = hostile_replies(length)
    texts = {name: text for name, text in texts.items() if name in HUGE} if length > 1_000_000 else texts
    with watching(home, texts) as chat:
        assert complaints(chat, texts, seconds) == []
    whole = {name: f"{join_surrogates(text)}\n\n{END}\n" for name, text in texts.items()}
    stored = zip(home.said()[1:], home.replies()[1:], strict=True)
    assert [name for name, (content, _) in stored if not whole[name].startswith(content)] == []
