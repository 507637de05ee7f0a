"""Bracketed paste is on from the first prompt until the chat ends, except while another program has the terminal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.remembering_provider import remembering
from tests.terminal.driver import PROMPT, SHELL_PROMPT, Home, Terminal
from tests.terminal.editors import changing, editor
from tests.terminal.small_model import furnish, say, talking
from tests.terminal.tmux import await_pane

ON, OFF = b"\x1b[?2004h", b"\x1b[?2004l"
FOLDED = "messages in context are summarised now."
ROWS = [f"row {number} of the message" for number in range(1, 21)]


def switches(drawn: bytes) -> list[bytes]:
    """Return how bracketed paste was switched, in order."""
    found = [(place, switch) for switch in (ON, OFF) for place in range(len(drawn)) if drawn.startswith(switch, place)]
    return [switch for _, switch in sorted(found)]


def end_with_ctrl_d(chat: Terminal) -> int:
    chat.press("ctrl-d")
    return 0


def end_with_sigterm(chat: Terminal) -> int:
    os.kill(chat.pid, signal.SIGTERM)
    return 128 + signal.SIGTERM


@pytest.mark.parametrize("end", [end_with_ctrl_d, end_with_sigterm], ids=lambda end: end.__name__)
def test_notices_above_the_prompt_and_replies_leave_pastes_marked_until_the_end(
    home: Home, end: Callable[[Terminal], int]
) -> None:
    furnish(home, 1000)
    with remembering() as provider, talking(home, provider.address) as chat:
        say(chat, "one", "two", "three", more=230)
        chat.await_text(FOLDED)
        chat.await_line(PROMPT)
        assert switches(chat.drawn) == [ON]
        code = end(chat)
        assert chat.await_end() == code
    assert switches(chat.drawn) == [ON, OFF]


def test_an_editor_gets_the_terminal_with_pastes_unmarked(home: Home, tmp_path: Path) -> None:
    with home.chat(EDITOR=editor(tmp_path, changing("text += ' than ever'"))) as chat:
        chat.type("I am happier")
        chat.press("ctrl-x", "ctrl-e")
        chat.await_line(f"{PROMPT} I am happier than ever")
        seen = switches(chat.drawn)
        assert (seen[:2], seen[-1]) == ([ON, OFF], ON)


@pytest.mark.parametrize("busy", [False, True], ids=["at the prompt", "during a command"])
def test_so_does_the_shell_after_ctrl_z(home: Home, *, busy: bool) -> None:
    with home.shell_in_terminal() as shell:
        shell.say(f"{sys.executable} -m chorus_cli")
        shell.await_line(PROMPT)
        if busy:
            shell.say("I am " + " ".join(f"word{number}" for number in range(50)))
            shell.await_text(" word0", times=2)
        shell.press("ctrl-z")
        shell.await_line(SHELL_PROMPT)
        assert switches(shell.drawn) == [ON, OFF]
        shell.say("fg")
        shell.await_line(PROMPT)
        assert switches(shell.drawn) == [ON, OFF, ON]


def test_pastes_at_any_moment_are_one_message_each(home: Home, tmux: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "message").write_text("\n".join(ROWS))
    variables = f"LC_ALL=C.UTF-8 CHORUS_HOME={home.path}"
    tmux("send-keys", f"clear; {variables} {sys.executable} -m chorus_cli", "Enter")
    await_pane(tmux, "thread 1")
    tmux("load-buffer", str(tmp_path / "message"))
    times = 6
    for _ in range(times):
        tmux("send-keys", "I am here", "Enter")
        tmux("paste-buffer", "-p")
        tmux("send-keys", "Enter")
    tmux("send-keys", "I am done", "Enter")
    await_pane(tmux, "done?")
    assert home.said() == [*(["I am here", "\n".join(ROWS)] * times), "I am done"]
