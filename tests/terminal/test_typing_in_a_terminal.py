"""Text typed while a reply is shown stands below it, and is sent in its turn."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

import pytest

from tests.terminal.driver import PROMPT, SHELL_PROMPT, Home, Terminal
from tests.terminal.patient_provider import LATE, LONG, WORD, PatientProvider, patient
from tests.terminal.small_model import furnish, talking

RETURNED = "The text you had typed when the chat ended is at the prompt again."
LATE_MESSAGE, LONG_MESSAGE = f"a {LATE} one", f"a {LONG} one"


@pytest.fixture
def provider() -> Iterator[PatientProvider]:
    with patient() as running:
        yield running


@pytest.fixture
def chat(home: Home, provider: PatientProvider) -> Iterator[Terminal]:
    furnish(home, 100_000)
    with talking(home, provider.address) as chat:
        yield chat


def begin_a_long_reply(chat: Terminal) -> None:
    chat.say(LONG_MESSAGE)
    chat.await_text(f"\n{WORD}")


def await_rows(chat: Terminal, *rows: str) -> None:
    chat.until(lambda: chat.screen_text().splitlines()[-len(rows) :] == list(rows), f"the rows {rows}")


def await_replies(home: Home, chat: Terminal, count: int) -> None:
    chat.until(lambda: [status for _, status in home.replies()] == ["complete"] * count, f"{count} replies")
    chat.await_line(PROMPT)


def test_the_line_is_seen_and_then_at_the_prompt(home: Home, chat: Terminal, provider: PatientProvider) -> None:
    begin_a_long_reply(chat)
    chat.type("half a lime")
    await_rows(chat, "❯ half a lime")
    chat.type("\x7f\x7fne and mistakes\x17")
    await_rows(chat, "❯ half a line and")
    provider.may_go_on.set()
    chat.await_text("noted: one.")
    chat.await_line(f"{PROMPT} half a line and")
    chat.type("more")
    chat.await_line(f"{PROMPT} half a line and more")
    assert chat.screen_text().count("half a line") == 1
    assert home.said() == [LONG_MESSAGE]


def test_enter_has_lines_wait_and_up_takes_them_back(home: Home, chat: Terminal, provider: PatientProvider) -> None:
    begin_a_long_reply(chat)
    for line in ("line one", "line two", "line three", "line four"):
        chat.say(line)
    await_rows(chat, "+1 more", "waiting: line two", "waiting: line three", "waiting: line four")
    chat.press("up")
    await_rows(chat, "waiting: line one", "waiting: line two", "waiting: line three", "❯ line four")
    chat.say("ty")
    await_rows(chat, "waiting: line fourty")
    provider.may_go_on.set()
    await_replies(home, chat, 5)
    shown = chat.screen_text()
    assert home.said()[1:] == ["line one", "line two", "line three", "line fourty"]
    assert "waiting:" not in shown
    assert [shown.count(f"{PROMPT} line {word}\n") for word in ("one", "two", "three", "fourty")] == [1] * 4
    assert home.unsent() == []


@pytest.mark.parametrize(
    ("end", "returned"), [(signal.SIGKILL, ["line three"]), (signal.SIGTERM, ["line three", "half"])]
)
def test_waiting_lines_outlive_the_program(
    home: Home, chat: Terminal, provider: PatientProvider, end: signal.Signals, returned: list[str]
) -> None:
    begin_a_long_reply(chat)
    chat.say(LATE_MESSAGE)
    chat.say("line three")
    await_rows(chat, f"waiting: {LATE_MESSAGE}", "waiting: line three")
    chat.press("ctrl-c")
    chat.await_text("Stopped.")
    chat.await_text(f"{PROMPT} {LATE_MESSAGE}\n")
    chat.until(lambda: LATE_MESSAGE in home.said(), "the late message in the log")
    # Of a line that is not finished, a kill may take the last three seconds.
    if len(returned) > 1:
        chat.type(returned[-1])
        await_rows(chat, "waiting: line three", f"❯ {returned[-1]}")
    chat.kill(end)
    provider.may_go_on.set()
    last = f"  {returned[-1]}" if len(returned) > 1 else f"{PROMPT} {returned[0]}"
    with home.chat(last, OPENAI_BASE_URL=provider.address, OPENAI_API_KEY="sk-of-nobody") as later:
        later.await_text(RETURNED)
        later.await_text(f"{PROMPT} " + "\n  ".join(returned))
        later.press("enter")
        later.await_text(f"noted: {returned[-1].split()[-1]}.")
        later.await_line(PROMPT)
    assert home.said() == [LONG_MESSAGE, LATE_MESSAGE, "\n".join(returned)]
    assert home.unsent() == []


def test_the_order_of_keys_survives_ctrl_z(home: Home, provider: PatientProvider) -> None:
    furnish(home, 100_000)
    with home.shell_in_terminal(OPENAI_BASE_URL=provider.address, OPENAI_API_KEY="sk-of-nobody") as shell:
        shell.say(f"{sys.executable} -m chorus_cli")
        shell.await_line(PROMPT)
        begin_a_long_reply(shell)
        shell.say("line two")
        shell.type("half")
        await_rows(shell, "waiting: line two", "❯ half")
        shell.press("ctrl-z")
        shell.await_line(SHELL_PROMPT)
        assert "waiting:" not in shell.screen_text()
        shell.say("fg")
        shell.type(" a line")
        await_rows(shell, "waiting: line two", "❯ half a line")
        provider.may_go_on.set()
        shell.await_line(f"{PROMPT} half a line")
    assert home.said() == [LONG_MESSAGE, "line two"]
