"""Jobs in the real program: commands in the foreground and in the background, stopped, shown safely and told."""

from __future__ import annotations

import os
import signal
import stat
import time
from pathlib import Path

import pytest

from chorus_cli.settings.files import SCHEMA_FILE
from tests.terminal.command import await_death
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.editors import editor

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
        chat.await_text("Its end goes with your next message; /undo keeps it back.")
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
        chat.press("ctrl-c")
        chat.await_text("Stopped after ")
        chat.await_line(PROMPT)


def test_output_is_shown_as_it_arrives_and_safely(home: Home, tmp_path: Path) -> None:
    with home.chat() as chat:
        chat.say(f"!printf 'first\\033[31m \\377 '; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo last; exit 7")
        chat.await_text("\nfirst␛[31m")
        (tmp_path / "go").touch()
        chat.await_text(" last")
        chat.await_text("Exit code 7 after ")
        chat.await_line(PROMPT)
        chat.ask("!", "! needs a command of the shell, for example: !ls")
    assert b"\x1b[31m " not in chat.drawn
    assert home.said() == []


def test_a_job_in_the_background_ends_above_the_prompt_and_goes_with_the_next_message(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("/run sleep 0.5; echo done; exit 2", "Job #1 runs: sleep 0.5; echo done; exit 2")
        chat.type("I am")
        chat.await_text("Job #1 (sleep 0.5; echo done; exit 2): exit code 2 after ")
        chat.await_text("1 line goes with your next message; /undo keeps it back.")
        chat.await_line(f"{PROMPT} I am")
        chat.ask(" tired", "tired?")
        chat.ask("/jobs", "exit code 2")
        chat.ask("/jobs log 1", "\ndone")
    (preamble,) = home.sql("SELECT preamble FROM messages WHERE role = 'user'")
    assert "#1 sleep 0.5; echo done; exit 2: exit code 2 after " in preamble
    assert preamble.endswith("Its output, 1 line:\n    done")


@pytest.mark.parametrize("ending", ["quit", "ctrl-d", "sigterm", "hang-up"])
def test_no_job_survives_the_exit(home: Home, tmp_path: Path, ending: str) -> None:
    with home.chat() as chat:
        stubborn = "trap '' TERM INT HUP; while :; do sleep 0.2; done"
        pid = begun(chat, f"/run echo $$ > {tmp_path}/pid; {stubborn}", tmp_path / "pid")
        chat.await_text("Job #1 runs: ")
        chat.await_line(PROMPT)
        before = time.monotonic()
        if ending == "hang-up":
            chat.hang_up()
        else:
            if ending == "quit":
                chat.say("/quit")
            elif ending == "ctrl-d":
                chat.press("ctrl-d")
            else:
                os.kill(chat.pid, signal.SIGTERM)
            chat.await_end()
            assert "Stopped job #1: echo $$" in chat.screen_text()
        assert time.monotonic() - before < EXIT_SECONDS
        await_death(pid)


def test_a_job_of_a_single_command_is_stopped_with_it(home: Home) -> None:
    outcome = home.run("ask", "/run sleep 100")
    assert outcome.output == "Job #1 runs: sleep 100\n"
    assert outcome.errors == "Stopped job #1: sleep 100\n"


def test_no_job_survives_a_chat_that_is_killed(home: Home, tmp_path: Path) -> None:
    with home.chat() as chat:
        pid = begun(chat, f"/run echo $$ > {tmp_path}/pid; exec sleep 100", tmp_path / "pid")
        os.kill(chat.pid, signal.SIGKILL)
        chat.await_end()
        await_death(pid)


def test_a_daemon_that_left_its_job_is_named(home: Home, tmp_path: Path) -> None:
    with home.chat() as chat:
        daemon = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 100' >/dev/null 2>&1 &"
        chat.ask(f"!{daemon} sleep 0.5", "Left job #1 and runs on by itself: sleep (process ")
        pid = pid_in(tmp_path / "pid")
        chat.say("/quit")
        chat.await_end()
        assert chat.screen_text().count(f"runs on by itself: sleep (process {pid}).") == 2
    os.kill(pid, signal.SIGKILL)


def test_commands_and_editors_make_files_with_the_permissions_of_the_user(home: Home, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with home.chat(EDITOR=editor(tmp_path, f"umask > {tmp_path}/edited")) as chat:
            chat.ask("!umask; env | grep -c UMASK", "\n0027\n0")
            chat.ask("/settings edit", "Nothing was changed")
    finally:
        os.umask(before)
    assert (tmp_path / "edited").read_text() == "0027\n"
    assert stat.S_IMODE((home.path / "chorus.db").stat().st_mode) == 0o600


def test_no_variable_of_a_library_reaches_a_command(home: Home) -> None:
    with home.chat(CHORUS_MODEL="openai/gpt-4o-mini", OPENAI_API_KEY="sk-invented") as chat:
        # The thread that imports the library writes the schema next.
        chat.until((home.path / SCHEMA_FILE).exists, "the end of the import")
        chat.ask("!env | grep -c LITELLM; echo counted", "\ncounted")
        assert "\n0\ncounted" in chat.screen_text()
