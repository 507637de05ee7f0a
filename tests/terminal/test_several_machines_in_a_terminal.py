"""Two chats on two homes that share one log on a server."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.loopback_providers import calling, slow
from tests.machines import await_listening, cut, needs_a_server
from tests.storage.schemas import shared_log
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.test_replies_at_once import SECONDS_FOR_ALL, told

pytestmark = needs_a_server

ELSEWHERE = "in another Chorus ❯ "
"""Both homes are of the machine that runs the test."""


def test_what_is_said_on_one_machine_appears_above_the_prompt_of_the_other_and_is_in_its_next_request(
    tmp_path: Path,
) -> None:
    with shared_log() as url, slow() as provider:
        variables = {**provider.variables, "CHORUS_LOG": url}
        with Home(tmp_path / "a").chat(**variables) as laptop, Home(tmp_path / "b").chat(**variables) as desk:
            await_listening(url, 2)
            desk.type("half a li")
            laptop.say("one goes on")
            desk.await_text(f"{ELSEWHERE}one goes on")
            desk.await_line(f"{PROMPT} half a li")
            laptop.await_text("About one")
            assert "About one" not in desk.screen_text()
            desk.type("ne, two\r")
            desk.await_text("Waiting for the reply in progress in thread #1")
            provider.finish("one")
            desk.await_text("About half")
            provider.finish("half")
            desk.await_text("About half: all.")
            laptop.await_text(f"{ELSEWHERE}half a line, two")
            laptop.await_text("About half: all.")
            laptop.await_line(PROMPT)
            cut(url, listening=True)
            laptop.say("three after the cut")
            provider.finish("three")
            laptop.await_text("About three: all.")
            desk.await_text("About three: all.")
            for chat in (laptop, desk):
                assert "out of reach" not in chat.screen_text()
                chat.leave()
        assert told(provider, "half") == ["one goes on", "half a line, two"]


_UNFOLDED = 300
"""So many of the first requests surely have the whole talk."""


@pytest.mark.timeout(SECONDS_FOR_ALL)
@pytest.mark.parametrize("turns", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_two_machines_in_one_thread_answer_every_message_once_and_see_each_other(tmp_path: Path, turns: int) -> None:
    with shared_log() as url, calling() as provider:
        variables = {**provider.environment("openai/x"), "CHORUS_LOG": url}
        with Home(tmp_path / "a").chat(**variables) as laptop, Home(tmp_path / "b").chat(**variables) as desk:
            await_listening(url, 2)
            for turn in range(turns):
                laptop.say(f"laptop {turn}")
                desk.say(f"desk {turn}")
                for chat, other in ((laptop, "desk"), (desk, "laptop")):
                    await_both(chat, f"{ELSEWHERE}{other} {turn}")
            screens = [laptop.screen_text(), desk.screen_text()]
        with psycopg.connect(url) as server:
            rows = server.execute("SELECT role, content FROM messages ORDER BY id").fetchall()
    assert [role for role, _ in rows] == ["user", "assistant"] * (2 * turns)
    assert sorted(text for _, text in rows[::2]) == sorted(f"{n} {t}" for n in ("laptop", "desk") for t in range(turns))
    requests = [
        [message["content"].rpartition("\n")[2] for message in body["messages"] if message["role"] != "system"]
        for body in provider.asked
    ]
    # The others ask for a summary, which takes the place of the oldest messages of a long talk.
    of_turns = [asked for asked in requests if asked[-1] in {text for _, text in rows[::2]}]
    whole = [[text for _, text in rows[: 2 * position + 1]] for position in range(2 * turns)]
    assert of_turns[:_UNFOLDED] == whole[:_UNFOLDED]
    assert of_turns == [said[-len(asked) :] for asked, said in zip(of_turns, whole, strict=True)]
    assert not [screen for screen in screens if "out of reach" in screen or "Traceback" in screen]


def await_both(chat: Terminal, heard: str) -> None:
    chat.until(lambda: heard in chat.screen_text(), f"the line {heard}")
    chat.await_line(PROMPT)


def test_a_session_saved_on_one_machine_is_restored_on_the_other(tmp_path: Path) -> None:
    with shared_log() as url:
        laptop, desk = Home(tmp_path / "a"), Home(tmp_path / "b")
        laptop.run("--log", url, "ask", "-c", "I went to Rome")
        assert "Saved session" in laptop.run("--log", url, "context", "save", "Trip").output
        with desk.chat(CHORUS_LOG=url) as chat:
            chat.ask("/new", "--- New conversation ---")
            chat.ask("/context restore trip", "2 messages in place of the old context")
            chat.ask("/thread history", "I went to Rome")
            chat.leave()
        [there], [here] = ([*(home.path / "personas/chorus/sessions").iterdir()] for home in (laptop, desk))
        assert here.read_bytes() == there.read_bytes()


def test_what_is_done_on_one_machine_is_told_above_the_prompt_of_the_other_and_counted_below(tmp_path: Path) -> None:
    with shared_log() as url, calling() as provider:
        variables = {**provider.environment("openai/x"), "CHORUS_LOG": url}
        with Home(tmp_path / "a").chat(**variables) as laptop, Home(tmp_path / "b").chat(**variables) as desk:
            await_listening(url, 2)
            desk.until(lambda: gauge(desk) != "", "the empty request")
            empty = gauge(desk)
            laptop.say("one " * 100)
            await_same_gauge(desk, laptop, unlike=empty)
            desk.type("half a li")
            laptop.say("/undo")
            desk.await_text('Undone in another Chorus: your message "one one one')
            desk.await_line(f"{PROMPT} half a li")
            desk.until(lambda: gauge(desk) == empty, "the empty request")
            laptop.await_text("Undone: your message")
            laptop.await_idle()
            laptop.press("ctrl-c")
            laptop.await_line(PROMPT)
            laptop.ask("/redo", "Redone: your message")
            desk.await_text('Redone in another Chorus: your message "one one one')
            await_same_gauge(desk, laptop, unlike=empty)
            laptop.ask("/new", "--- New conversation ---")
            desk.await_text("In another Chorus: new conversation")
            desk.until(lambda: gauge(desk) == empty, "the empty request")
            desk.await_line(f"{PROMPT} half a li")


def gauge(chat: Terminal) -> str:
    """Return the tokens of the next request in the line at the bottom; empty before they are counted."""
    _, is_counted, numbers = chat.bottom_line().rpartition("▱ ")
    return numbers.partition(" /")[0] if is_counted else ""


def await_same_gauge(chat: Terminal, other: Terminal, *, unlike: str) -> None:
    def seen() -> bool:
        other.watch(seconds=0.01)
        return gauge(chat) == gauge(other) not in {"", unlike}

    chat.until(seen, "the same request on both")
