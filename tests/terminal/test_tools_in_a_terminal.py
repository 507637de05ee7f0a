"""Thoughts, tools, the memory and jobs in the real program, and requests to a provider on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.settings.files import SCHEMA_FILE
from tests.loopback_providers import (
    ANSWER,
    THOUGHT_TOKENS,
    CallingProvider,
    ThinkingProvider,
    piece,
    split_call,
    thinking,
)
from tests.terminal.command import await_death
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.editors import editor

SEARCH = split_call("search_history", {"query": "ring", "since": "7d"})


def assert_begins_with(request: dict[str, Any], before: dict[str, Any]) -> None:
    """The provider's cache knows the beginning of a request: tools and messages are the same, byte for byte."""
    assert request["tools"] == before["tools"]
    known = json.dumps(before["messages"])[:-1]
    assert json.dumps(request["messages"]).startswith(known)


def test_a_tool_is_used_and_its_call_is_in_every_later_request(talking: Home, provider: CallingProvider) -> None:
    provider.say("The ring lies in the river.")
    provider.call(*SEARCH, before="Let me *look*.")
    provider.call(
        piece('{"query": "zebra"', id_="a", name="search_history"), piece("{}", index=1, id_="a", name="read_thread")
    )
    provider.say("In the **river**.")
    with talking.chat() as chat:
        chat.ask("Where is the ring?", "The ring lies in the river.")
        chat.ask("Where was that?", "In the river.")
        chat.say("Thanks")
        chat.until(lambda: len(provider.asked) == 5, "the last request")
    _, first, second, third, last = provider.asked
    assert [tool["function"]["name"] for tool in first["tools"]][:2] == ["search_history", "read_thread"]
    for before, after in [(first, second), (second, third), (third, last)]:
        assert_begins_with(after, before)
    called, result = second["messages"][-2:]
    assert called["content"] == "Let me *look*."
    assert called["tool_calls"][0]["function"]["arguments"] == '{"query": "ring", "since": "7d"}'
    assert (result["role"], result["tool_call_id"]) == ("tool", "c1")
    assert "The ring lies in the river." in result["content"]
    repaired, missing = third["messages"][-2:]
    assert [call["id"] for call in third["messages"][-3]["tool_calls"]] == [
        repaired["tool_call_id"],
        missing["tool_call_id"],
    ]
    assert repaired["content"].startswith("(The arguments were not valid JSON; they were understood as")
    assert missing["content"].startswith("The argument 'id' is missing")
    assert repaired["tool_call_id"] != missing["tool_call_id"]


PLUMBER = "call the plumber about the boiler"


def asked(home: Home, provider: CallingProvider, question: str) -> tuple[str, str]:
    assert home.run("ask", "-c", question).code == 0
    messages: list[dict[str, Any]] = provider.asked[-1]["messages"]
    return messages[0]["content"], messages[-1]["content"]


def test_a_task_goes_before_the_question_and_later_into_the_system_message(
    talking: Home, provider: CallingProvider
) -> None:
    with talking.chat() as chat:
        chat.say("Hello")
        chat.until(lambda: len(provider.asked) == 1, "the first request")
        chat.await_line(PROMPT)
        chat.ask(f"/remember {PLUMBER}", "Remembered #1")
        chat.say("What next?")
        chat.await_text(f"From memory: #1 {PLUMBER}")
        chat.until(lambda: len(provider.asked) == 2, "the second request")
        chat.await_line(PROMPT)
    first, second = (request["messages"] for request in provider.asked)
    assert second[: len(first)] == first
    written = rf"#1 \(\d{{4}}-\d\d-\d\d, from the human\): {PLUMBER}"
    assert re.fullmatch(rf"From memory:\n{written}\n\nWhat next\?", second[-1]["content"])
    system, question = asked(talking, provider, "And now?")
    assert re.search(rf"\n\nMemory:\n{written}$", system)
    assert question == "And now?"


RING = "So:\n\n```python\nclass Ring:\n    def push(self, row):\n        self.rows.append(row)\n```\n\nThat is all."
COUNTING_TEST = """#!/bin/sh
echo . >> runs
echo "$(grep -c . runs) failed in 0.09s"
exit 1
"""


def has(chat: Terminal, pattern: str, times: int) -> bool:
    return len(re.findall(pattern, chat.screen_text(), re.MULTILINE)) == times


def test_ten_minutes_of_work_leave_one_result_in_the_memory_and_every_undo_to_the_user(
    talking: Home, provider: CallingProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest").write_text(COUNTING_TEST)
    (tmp_path / "pytest").chmod(0o700)
    (tmp_path / "walk.py").write_text("def walk(path):\n    for step in path:\n        yield step\n")
    talk = [
        ("Write a buffer.", f"Answer 1.\n\n{RING}"),
        ("!./pytest", ""),
        ("Why does it fail?", f"Answer 2.\n\n{RING.replace('Ring', 'Other')}"),
        ("What is in @walk.py here?", "Answer 3."),
        ("!./pytest", ""),
        ("And after lunch?", f"Answer 4.\n\n{RING.replace('rows', 'lines')}"),
        ("/thread new", ""),
        ("A commit message, please.", "Answer 5.\n\n```\ngit add .\ngit commit\ngit push\n```"),
        ("/thread 1", ""),
        ("!./pytest", ""),
        ("Good, thanks.", "Answer 6."),
    ]
    with talking.chat() as chat:
        for position, (line, reply) in enumerate(talk, 1):
            if reply:
                provider.say(reply)
            chat.say(line)
            times = [each for each, _ in talk[:position]].count(line)
            chat.until(partial(has, chat, f"^{PROMPT} {re.escape(line)}", times), line)
            if reply:
                chat.await_text(reply[:9])
            chat.await_line(PROMPT)
        for number in range(1, 6):
            # The prompt may hold the message that was undone.
            chat.type("\x15/undo")
            chat.await_line(f"{PROMPT} /undo")
            chat.press("enter")
            chat.until(partial(has, chat, "^Undone", number), "an undo")
            chat.await_bottom_line("openai/test")
        chat.type("\x15")
        chat.ask("What was that?", "ok")
        told = chat.screen_text()
    assert told.count("Remembered") == 1
    assert 'Remembered #1 "1 failed in 0.09s". /memory forget 1 removes it.' in told
    found = json.loads(talking.run("memory", "list", "--json").output)
    assert [(item["item_type"], item["content"]) for item in found] == [("TEST_RESULT", "3 failed in 0.09s")]
    users = [message["content"] for message in provider.asked[-1]["messages"] if message["role"] == "user"]
    assert [text.splitlines()[-1] for text in users] == ["Write a buffer.", "Why does it fail?", "What was that?"]


def test_ask_says_on_stderr_what_was_remembered(talking: Home, provider: CallingProvider) -> None:
    provider.call(*split_call("remember", {"type": "task", "content": PLUMBER}))
    provider.say("Noted.")
    asked = talking.run("ask", "Note the plumber.\n```\na = 1\nb = 2\nc = 3\n```")
    assert asked.output == "Noted.\n"
    called, captured = asked.errors.splitlines()
    assert called.startswith('remember("task", "call the plumber about')
    assert called.endswith(": #1; /memory forget 1 removes it")
    assert captured == 'Remembered #2 "a = 1 b = 2 c = 3". /memory forget 2 removes it.'


def test_what_is_captured_is_told_after_the_whole_reply_and_one_blank_line(
    talking: Home, provider: CallingProvider
) -> None:
    provider.say("Three of them.\n\nThat is all.")
    with talking.chat() as chat:
        chat.paste("Look:\n```\na = 1\nb = 2\nc = 3\n```")
        chat.press("enter")
        chat.await_text("Remembered #1")
        assert 'That is all.\n\nRemembered #1 "a = 1 b = 2 c = 3". /memory forget 1 removes it.' in chat.screen_text()


WHILE_THINKING = "thinking … The user asks for tea. Green is best."
AFTERWARDS = re.compile(rf"^Green tea\.\n\nthought for [\d.]+ s, {THOUGHT_TOKENS} tokens$", re.MULTILINE)
NOTHING = "No reply in context has thoughts."
MANY = 100_000
MOST_BYTES, MOST_KILOBYTES = 200_000, 100_000


@pytest.fixture
def thinker() -> Iterator[ThinkingProvider]:
    with thinking() as running:
        yield running


def test_its_newest_words_are_seen_while_a_model_thinks_and_all_on_request(
    home: Home, thinker: ThinkingProvider
) -> None:
    with home.chat(**thinker.variables) as chat:
        chat.press("ctrl-t")
        chat.await_text(NOTHING)
        chat.say("Tea?")
        chat.await_text(WHILE_THINKING)
        chat.type("typed meanwhile")
        chat.await_text("typed meanwhile")
        thinker.may_answer.set()
        chat.until(lambda: AFTERWARDS.search(chat.screen_text()) is not None, "the end of the reply")
        chat.await_line(f"{PROMPT} typed meanwhile")
        assert "thinking" not in chat.screen_text()
        chat.press("ctrl-t", "ctrl-c")
        chat.await_line(PROMPT)
        chat.press("ctrl-t")
        chat.await_text("\nThe user asks for tea.\n\nGreen is best.\n")
        assert b"\x1b[2mthought for" in chat.drawn
        chat.await_line(PROMPT)
        chat.press("up", "up")
        chat.await_line(f"{PROMPT} Tea?")
        assert "/thoughts" not in chat.screen_text()
        chat.press("ctrl-c")
        chat.say("/thoughts")
        printed = "\nThe user asks for tea.\n\nGreen is best.\n"
        chat.until(lambda: chat.screen_text().count(printed) == 2, "the thoughts once more")
        chat.await_line(PROMPT)
        chat.ask("/set show_thoughts true --once", "show_thoughts is true until you quit.")
        chat.ask("Tea?", f"{printed}\nGreen tea.")
    assert home.said() == ["Tea?"] * 2


def test_a_script_gets_the_reply_alone_and_the_thoughts_as_json(
    home: Home, thinker: ThinkingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in thinker.variables.items():
        monkeypatch.setenv(name, value)
    thinker.may_answer.set()
    assert home.run("ask", "/settings set show_thoughts true").code == 0
    outcome = home.run("ask", "-c", "Tea?")
    assert (outcome.output, outcome.errors) == (f"{ANSWER}\n", "")
    told = json.loads(home.run("ask", "--json", "Tea?").output)
    assert (told["reply"], told["thoughts"]) == (ANSWER, "".join(thinker.thoughts))
    assert (told["thought_seconds"] >= 0, told["thought_tokens"]) == (True, THOUGHT_TOKENS)
    (line,) = json.loads(home.run("cost", "--json").output)["lines"]
    assert line["reasoning_tokens"] == 2 * THOUGHT_TOKENS
    assert home.run("ask", "/thoughts").output.endswith("\nThe user asks for tea.\n\nGreen is best.\n")


def test_a_very_long_thought_leaves_the_screen_alive_and_is_stored(home: Home, thinker: ThinkingProvider) -> None:
    thinker.thoughts = [f" word{number}" for number in range(MANY)]
    with home.chat(**thinker.variables) as chat:
        chat.ask("/thoughts", NOTHING)
        drawn, resident = len(chat.drawn), kilobytes(chat.pid)
        chat.say("Tea?")
        chat.await_text("thinking … ")
        for number in range(8):
            chat.type(str(number))
            chat.await_text("01234567"[: number + 1], 5)
        chat.await_text(f" word{MANY - 1}")
        assert home.sql("SELECT status FROM messages WHERE reasoning LIKE ?", f"%word{MANY // 2}%") == ["streaming"]
        assert len(chat.drawn) - drawn < MOST_BYTES
        assert kilobytes(chat.pid) - resident < MOST_KILOBYTES
        chat.press("ctrl-c")
        chat.await_text("Stopped before the reply began; /retry asks again.", 5)


def kilobytes(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0])


EXIT_SECONDS = 4.0  # the time to exit that a test allows on a busy machine; the program itself needs about one second


def pid_in(file: Path) -> int:
    deadline = time.monotonic() + 60
    while not file.exists() or not file.read_text().endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(file.read_text())


def begun(chat: Terminal, command: str, file: Path) -> int:
    chat.say(command)
    return pid_in(file)


def test_ctrl_c_stops_the_command_and_not_the_chat(home: Home, tmp_path: Path) -> None:
    with home.chat() as chat:
        pid = begun(chat, f"!echo $$ > {tmp_path}/pid; exec sleep 100", tmp_path / "pid")
        chat.await_busy()
        chat.press("ctrl-c")
        chat.await_text("Stopped after ")
        chat.await_text("Your next message will have the result; /undo leaves it out.")
        chat.await_line(PROMPT)
        await_death(pid)
        chat.ask("I am tired", "tired?")
    assert home.said() == ["I am tired"]


def test_ctrl_d_during_a_command_does_nothing_and_other_keys_are_for_the_prompt(home: Home) -> None:
    with home.chat() as chat:
        chat.say("!echo begun; sleep 1")
        chat.await_text("\nbegun")
        chat.press("ctrl-d")
        chat.type("hel")
        chat.press("ctrl-d")
        chat.type("lo")
        chat.await_line(f"{PROMPT} hello")
        chat.press("ctrl-c")
        chat.ask("I am tired", "tired?")


def test_a_second_ctrl_c_kills_a_command_that_ignores_the_first(home: Home) -> None:
    with home.chat() as chat:
        chat.say("!trap 'echo ignored' INT; echo begun; while :; do sleep 0.1; done")
        chat.await_text("\nbegun")
        chat.press("ctrl-c")
        chat.await_text("\nignored")
        chat.stop("Stopped after ")


def test_output_is_shown_as_it_arrives_and_safely(home: Home, tmp_path: Path) -> None:
    with home.chat() as chat:
        chat.say(f"!printf 'first\\033[31m \\377 '; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo last; exit 7")
        chat.await_text("\nfirst \ufffd")
        (tmp_path / "go").touch()
        chat.await_text(" last")
        chat.await_text("Exit code 7 after ")
        chat.await_line(PROMPT)
        chat.ask("!", "! needs a shell command, for example: !ls")
        chat.ask("!cd /", "Write both commands in one line: !cd / && ls")
        assert "␛" not in chat.screen_text()
    assert b"\x1b[31m " not in chat.drawn
    assert home.said() == []


def test_a_job_in_the_background_ends_above_the_prompt_and_goes_with_the_next_message(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("/run sleep 0.5; echo done; exit 2", "Job #1 is running: sleep 0.5; echo done; exit 2")
        chat.type("I am")
        chat.await_text("Job #1 (sleep 0.5; echo done; exit 2): exit code 2 after ")
        chat.await_text("Your next message will have the result; /undo leaves it out.")
        chat.await_line(f"{PROMPT} I am")
        chat.ask(" tired", "tired?")
        chat.ask("/jobs", "exit code 2")
        chat.ask("/jobs log 1", "\ndone")
    (preamble,) = home.sql("SELECT preamble FROM messages WHERE role = 'user'")
    assert "#1 sleep 0.5; echo done; exit 2: exit code 2 after " in preamble
    assert preamble.endswith("Its output, 1 line:\n    done")


def test_undo_list_numbers_messages_and_jobs_and_each_step_comes_back(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("I am tired", "tired?")
        chat.ask("!echo out", "Your next message will have the result; /undo leaves it out.")
        chat.ask("/undo list", "the output of job #1 (echo out)")
        chat.await_text('"I am tired" and its reply')
        chat.ask("/undo 1", 'Undone: your message "I am tired" and its reply', f"{PROMPT} I am tired")
        chat.ask("/undo", "Undone: your next message will not have the output of job #1 (echo out).")
        chat.ask("/redo", "Redone: your next message will have the output of job #1 (echo out).")
        chat.ask("/redo", 'Redone: your message "I am tired" and its reply')
        chat.ask("Why?", "What answer would you like best?")
    (preamble,) = home.sql("SELECT preamble FROM messages WHERE content = 'Why?'")
    assert preamble.endswith("Its output, 1 line:\n    out")


EXITS: dict[str, Callable[[Terminal], object]] = {
    "quit": lambda chat: chat.say("/quit"),
    "ctrl-d": lambda chat: chat.press("ctrl-d"),
    "sigterm": lambda chat: os.kill(chat.pid, signal.SIGTERM),
    "sigkill": lambda chat: os.kill(chat.pid, signal.SIGKILL),
    "hang-up": Terminal.hang_up,
}


@pytest.mark.parametrize("ending", EXITS)
def test_no_job_survives_the_exit(home: Home, tmp_path: Path, ending: str) -> None:
    with home.chat() as chat:
        stubborn = "trap '' TERM INT HUP; while :; do sleep 0.2; done"
        pid = begun(chat, f"/run echo $$ > {tmp_path}/pid; {stubborn}", tmp_path / "pid")
        chat.await_text("Job #1 is running: ")
        chat.await_line(PROMPT)
        before = time.monotonic()
        EXITS[ending](chat)
        chat.await_end()
        assert time.monotonic() - before < EXIT_SECONDS
        assert ending in {"sigkill", "hang-up"} or "Stopped job #1: echo $$" in chat.screen_text()
        await_death(pid)


def test_a_job_of_a_single_command_is_stopped_with_it(home: Home) -> None:
    outcome = home.run("ask", "/run sleep 100")
    assert outcome.output == "Job #1 is running: sleep 100\n"
    assert outcome.errors == "Stopped job #1: sleep 100\n"


def test_a_daemon_that_left_its_job_is_named(home: Home, tmp_path: Path) -> None:
    with home.chat() as chat:
        daemon = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 100' >/dev/null 2>&1 &"
        chat.ask(f"!{daemon} sleep 0.5", "Running outside job #1, and not stopped when Chorus ends: sleep (process ")
        pid = pid_in(tmp_path / "pid")
        chat.say("/quit")
        chat.await_end()
        assert chat.screen_text().count(f"not stopped when Chorus ends: sleep (process {pid}).") == 2
    os.kill(pid, signal.SIGKILL)


def test_commands_and_editors_have_the_mask_of_the_user_and_no_variable_of_a_library(
    home: Home, tmp_path: Path
) -> None:
    model = {"CHORUS_MODEL": "openai/gpt-4o-mini", "OPENAI_API_KEY": "sk-invented"}
    before = os.umask(0o027)
    try:
        with home.chat(EDITOR=editor(tmp_path, f"umask > {tmp_path}/edited"), **model) as chat:
            # The thread that imports the library writes the schema next.
            chat.until((home.path / SCHEMA_FILE).exists, "the end of the import")
            chat.ask("!umask; env | grep -c -e UMASK -e LITELLM", "\n0027\n0\n")
            chat.ask("/settings edit", "Nothing was changed")
    finally:
        os.umask(before)
    assert (tmp_path / "edited").read_text() == "0027\n"
    assert stat.S_IMODE((home.path / "chorus.db").stat().st_mode) == 0o600
