"""What interrupts the chat: Ctrl-C on a silent model, signals, Ctrl-Z also within a commit, and another window size."""

from __future__ import annotations

import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.loopback_server import serving
from tests.mock_provider import MockProvider
from tests.models.providers.fault_server import DONE, chunk
from tests.terminal.command import PROGRAM
from tests.terminal.driver import LONG_MESSAGE, PROMPT, SHELL_PROMPT, Home, Terminal
from tests.terminal.editors import editor
from tests.terminal.small_model import LATE, patient

CHAT = shlex.join(PROGRAM)
REPLY = "Since when are you word0"  # how the answer to `LONG_MESSAGE` begins


@contextmanager
def answering(
    pieces: Callable[[str, threading.Event], Iterator[bytes]],
) -> Iterator[tuple[dict[str, str], threading.Event]]:
    """A provider that answers with the pieces for a message: its variables, and what lets the answer go on."""
    may_go_on = threading.Event()
    with serving(lambda body: (200, pieces(str(body["messages"][-1]["content"]), may_go_on))) as address:
        try:
            yield {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-test", "CHORUS_MODEL": "openai/x"}, may_go_on
        finally:
            may_go_on.set()


def halting(said: str, may_go_on: threading.Event) -> Iterator[bytes]:
    """Answer, and halt in the middle of the answer to `LONG_MESSAGE`."""
    if said == LONG_MESSAGE:
        words = LONG_MESSAGE.removeprefix("I am ").split()
        yield chunk(f"Since when are you {' '.join(words[:25])}")
        may_go_on.wait(60)
        yield chunk(f" {' '.join(words[25:])}?")
    else:
        yield chunk(f"What has made you {said.rsplit(maxsplit=1)[-1]}?")
    yield chunk(finish_reason="stop") + DONE


def trickling(_said: str, may_end: threading.Event) -> Iterator[bytes]:
    """Answer with a word more every moment."""
    yield chunk(REPLY)
    for _ in range(1200):
        if may_end.wait(0.05):
            break
        yield chunk(" and")
    yield chunk(finish_reason="stop") + DONE


def test_ctrl_c_ends_the_waiting_for_a_silent_model_within_a_second(home: Home, mock_provider: MockProvider) -> None:
    model = {"OPENAI_BASE_URL": f"{mock_provider.address}/v1", "OPENAI_API_KEY": "sk-test", "CHORUS_MODEL": "openai/x"}
    with home.chat(**model) as chat:
        for line, chunks, seen, told in (
            ("say something", 4, "Mock response from", "Stopped. The part that arrived is kept; /retry asks again."),
            ("/continue", 0, "waiting for openai/x … 1 s", "Stopped before the reply began; /continue asks again."),
            ("say nothing", 0, "waiting for openai/x … 1 s", "Stopped before the reply began; /retry asks again."),
            (
                "/context save",
                0,
                "/context save … 1 s, press Ctrl-C to stop",
                "The summary was stopped; the session is saved without one.",
            ),
        ):
            mock_provider.behave(type="stream_fault", kind="stall", after_chunks=chunks)
            told_before = chat.screen_text().count(told)
            chat.say(line)
            chat.await_text(seen)
            chat.press("ctrl-c")
            chat.await_text(told, seconds=1, times=told_before + 1)
            chat.await_line(PROMPT, seconds=1)
        assert " … " not in chat.screen_text()
        assert "failed" not in chat.screen_text()
        chat.leave()
        assert chat.echoes
    assert home.replies() == [("Mock response from ", "interrupted"), *[("", "interrupted")] * 2]
    assert home.sql("SELECT summary FROM sessions") == ["(no summary: stopped)"]


def test_ctrl_c_right_after_enter_stops_what_enter_began(home: Home) -> None:
    with patient() as provider:
        model = {"OPENAI_BASE_URL": provider.address, "OPENAI_API_KEY": "sk-test", "CHORUS_MODEL": "openai/x"}
        with home.chat(**model) as chat:
            for number, pause_seconds in enumerate((0, 0.001, 0.003, 0.01, 0.03, 0.1), 1):
                for line, told in ((LATE, "Stopped before the reply began"), ("!sleep 50", "Stopped after ")):
                    chat.say(line)
                    time.sleep(pause_seconds)
                    chat.press("ctrl-c")
                    chat.await_text(told, seconds=5, times=number)
                    chat.await_line(PROMPT)


def test_a_window_of_another_size_keeps_what_is_being_typed_and_what_is_being_said(home: Home) -> None:
    with answering(halting) as (model, may_go_on), home.chat(**model) as chat:
        chat.type(LONG_MESSAGE)
        chat.await_text("word49")
        for columns in (50, 120, 80):
            chat.resize(columns)
            chat.await_text(f"{PROMPT} I am word0 word1")
            # All is drawn again once a minute whatever happens.
            chat.await_line(typed_line(LONG_MESSAGE, columns), seconds=10)
            assert chat.screen_text().count("❯") == 1
        chat.press("enter")
        chat.await_text(REPLY)
        # The narrowest first: once a reply has ended, this screen cuts its lines off as the window gets narrower.
        for columns in (50, 80, 120):
            chat.resize(columns)
            chat.watch(0.1)
        may_go_on.set()
        chat.await_text("word49?")
        chat.await_line(PROMPT)
        reply = chat.screen_text().partition(REPLY)[2]
        assert all(f" word{number}" in reply.replace("\n", " ") for number in range(1, 50))
        assert chat.screen_text().count(REPLY) == 1
    assert home.said() == [LONG_MESSAGE]


def test_ctrl_z_leaves_the_shell_a_sane_terminal_and_fg_goes_on(home: Home, tmp_path: Path) -> None:
    # A process that is reading when Ctrl-Z arrives may still take the first key that is meant for the shell.
    resumed = tmp_path / "resumed"
    await_fg = f"until [ -e {shlex.quote(str(resumed))} ]; do sleep 0.02; done"
    scribe = editor(tmp_path, f'echo now editing; {await_fg}; read line; echo "$line" > "$file"')
    with answering(halting) as (model, may_go_on), home.shell_in_terminal(EDITOR=scribe, **model) as shell:
        shell.say(CHAT)
        shell.await_line(PROMPT)
        shell.type("I am ti")
        shell.await_line(f"{PROMPT} I am ti")
        suspend(shell)
        resume(shell)
        shell.await_line(f"{PROMPT} I am ti")
        assert shell.marks_pastes
        shell.ask("red", "made you tired?")

        shell.say(LONG_MESSAGE)
        shell.await_text(REPLY)
        shell.type("typed ahead")
        suspend(shell)
        assert [status for _, status in home.replies()] == ["complete", "streaming"]
        resume(shell)
        may_go_on.set()
        shell.await_text("word49?")
        shell.await_line(f"{PROMPT} typed ahead")
        # The line stands below the reply in the same way.
        shell.until(lambda: shell.marks_pastes, "the prompt")
        assert shell.screen_text().count(REPLY) == 1

        shell.press("ctrl-c")
        shell.say("/editor")
        shell.await_text("now editing")
        suspend(shell)
        resume(shell)
        resumed.touch()
        shell.type("I am glad")
        shell.await_line("I am glad")
        assert shell.echoes
        shell.ask("", "glad?")
        assert shell.marks_pastes
        shell.press("ctrl-d")
        shell.await_line(SHELL_PROMPT)
        assert shell.echoes
    assert home.said() == ["I am tired", LONG_MESSAGE, "I am glad"]
    assert {status for _, status in home.replies()} == {"complete"}


def test_a_chat_that_another_program_suspends_goes_on_as_well(home: Home) -> None:
    with home.shell_in_terminal() as shell:
        shell.say(CHAT)
        shell.await_line(PROMPT)
        shell.type("I am ti")
        shell.await_line(f"{PROMPT} I am ti")
        [run] = (home.path / "state" / "run").iterdir()
        os.kill(int(run.name.partition("-")[0]), signal.SIGTSTP)
        shell.await_line(SHELL_PROMPT)
        assert shell.echoes
        resume(shell)
        shell.await_line(f"{PROMPT} I am ti")
        shell.ask("red", "made you tired?")


def suspend(shell: Terminal) -> None:
    """Press Ctrl-Z and look whether the shell has the terminal as it wants it."""
    shell.press("ctrl-z")
    shell.await_line(SHELL_PROMPT)
    assert shell.echoes


def resume(shell: Terminal) -> None:
    """Continue the suspended program by the shell; it names the program first."""
    resumed = f"{SHELL_PROMPT} fg\n{CHAT[:20]}"
    times = shell.screen_text().count(resumed) + 1
    shell.say("fg")
    shell.await_text(resumed, times=times)


def typed_line(text: str, columns: int) -> str:
    rest = f"{PROMPT} {text}"
    while len(rest) >= columns:
        rest = f"  {rest[columns:]}"
    return rest


AT_ONCE_SECONDS = 2.0


@pytest.mark.parametrize(
    ("line", "number"),
    [("/context save", signal.SIGTERM), ("/context compact", signal.SIGHUP), ("say nothing", signal.SIGTERM)],
)
def test_a_signal_ends_what_waits_for_a_silent_model_and_keeps_what_was_typed(
    home: Home, mock_provider: MockProvider, line: str, number: int
) -> None:
    for text in ("hello", "hello again", "and again"):
        assert home.run("ask", "-c", text).code == 0
    # ELIZA has answered, whose talk no other model is sent.
    home.sql("UPDATE messages SET model = 'openai/x' WHERE model IS NOT NULL")
    model = {"OPENAI_BASE_URL": f"{mock_provider.address}/v1", "OPENAI_API_KEY": "sk-test", "CHORUS_MODEL": "openai/x"}
    with home.chat(**model) as chat:
        mock_provider.behave(type="stream_fault", kind="stall", after_chunks=0)
        chat.say(line)
        chat.await_text("… 1 s")
        chat.type("typed meanwhile")
        chat.watch(0.2)
        began = time.monotonic()
        chat.kill(number)
        assert time.monotonic() - began < AT_ONCE_SECONDS
        assert chat.echoes
    with home.chat(f"{PROMPT} typed meanwhile") as chat:
        chat.press("ctrl-c")


def ask_alone(shell: Terminal) -> None:
    shell.say(f"{CHAT} ask '{LONG_MESSAGE}'")
    shell.await_text(REPLY)


def ask_in_the_chat(shell: Terminal) -> None:
    shell.say(CHAT)
    shell.await_line(PROMPT)
    shell.say(LONG_MESSAGE)
    shell.await_text(REPLY)


def ask_behind_the_prompt(shell: Terminal) -> None:
    ask_in_the_chat(shell)
    shell.press("ctrl-b")
    shell.await_text("continues in the background")
    shell.await_line(PROMPT)


@pytest.mark.parametrize("ask", [ask_alone, ask_in_the_chat, ask_behind_the_prompt])
def test_others_write_while_a_program_is_stopped(home: Home, ask: Callable[[Terminal], None]) -> None:
    assert home.run("ask", "-c", "hello").code == 0
    with answering(trickling) as (model, may_end), home.shell_in_terminal(**model) as shell:
        ask(shell)
        with reading(home):
            # A reader keeps the program from committing, in the middle of it.
            shell.until(lambda: is_committing(home), "a commit")
            shell.press("ctrl-z")
            shell.watch(0.5)
        shell.await_line(SHELL_PROMPT)
        with closing(sqlite3.connect(home.path / "chorus.db", timeout=0)) as other, other:
            other.execute("INSERT INTO meta VALUES ('written', 'while it is stopped')")
        shell.say("fg")
        may_end.set()
        shell.until(lambda: home.replies()[-1][1] == "complete", "the end of the reply")
    assert home.sql("SELECT value FROM meta WHERE key = 'written'") == ["while it is stopped"]


def test_ctrl_c_is_answered_before_the_reply_is_stored(home: Home) -> None:
    assert home.run("ask", "-c", "hello").code == 0
    with answering(trickling) as (model, _), home.shell_in_terminal(**model) as shell:
        ask_in_the_chat(shell)
        with reading(home):
            shell.until(lambda: is_committing(home), "a commit")
            shell.press("ctrl-c")
            shell.await_text("Stopping …")
        shell.await_text("Stopped. The part that arrived is kept; /retry asks again.")
    assert home.replies()[-1][1] == "interrupted"


def test_nothing_is_called_kept_that_could_not_be_stored(home: Home) -> None:
    assert home.run("ask", "-c", "hello").code == 0
    home.sql(
        "CREATE TRIGGER refused BEFORE UPDATE ON messages WHEN NEW.status = 'interrupted' "
        "BEGIN SELECT RAISE(ABORT, 'not today'); END"
    )
    with answering(trickling) as (model, _), home.shell_in_terminal(**model) as shell:
        ask_in_the_chat(shell)
        shell.press("ctrl-c")
        shell.await_text("The text is kept in")
        assert "is kept; /retry" not in shell.screen_text()


@contextmanager
def reading(home: Home) -> Iterator[None]:
    """Hold a transaction that reads, in a process of its own: within a process SQLite shares locks."""
    program = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)\n"
        "c.execute('BEGIN')\n"
        "print(c.execute('SELECT count(*) FROM messages').fetchone(), flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, str(home.path / "chorus.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline()
        yield
        assert process.stdin
        process.stdin.close()
        assert process.wait(10) == 0


def is_committing(home: Home) -> bool:
    """Return whether a process that waits for the end of readers keeps new ones away."""
    time.sleep(0.01)
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(home.path / "chorus.db", timeout=0)) as other:
        other.execute("SELECT count(*) FROM messages").fetchone()
        return False
    return True
