"""Where it is hard to live: each time one clear sentence, the right exit code, nothing lost, and no traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.terminal.command import PROGRAM, Outcome, finished
from tests.terminal.driver import Home
from tests.test_refused_access import run as run_without_privileges

UNHAPPY, WHY_UNHAPPY = "I am unhappy", "That sounds hard. What has made you unhappy?\n"
NO_SUCH_PLACE = "Choose another place with --home DIR or CHORUS_HOME."


def test_an_unknown_model_is_one_sentence_and_the_question_is_kept(home: Home) -> None:
    refused(home.run("ask", "--model", "chorus/parry", UNHAPPY), "There is no embedded model 'chorus/parry'")
    assert home.said() == [UNHAPPY]
    assert home.replies() == [("", "failed")]
    assert home.run("ask", "-c", UNHAPPY).code == 0


def test_a_persona_without_its_files_still_answers(home: Home) -> None:
    frodo = home.path / "personas" / "frodo"
    assert home.run("ask", "--persona", "frodo", "hello").code == 0
    shutil.rmtree(frodo / "docs")
    (frodo / "system.jsonc").unlink()
    outcome = home.run("ask", "-c", "hello")
    assert (outcome.code, outcome.errors) == (0, "")
    (frodo / "docs").write_text("a file where a folder should be")
    assert home.run("ask", "-c", "hello").code == 0


def test_files_of_a_persona_that_cannot_be_read_are_named_and_the_rest_counts(home: Home) -> None:
    frodo = home.path / "personas" / "frodo"
    assert home.run("ask", "hello").code == 0
    (frodo / "docs" / "bad.md").write_bytes(b"caf\xe9")
    outcome = home.run("ask", "--persona", "frodo", "hello")
    assert (outcome.code, outcome.errors) == (0, f"{frodo / 'docs' / 'bad.md'} is left out: it is not UTF-8.\n")


@pytest.mark.parametrize("question", ["hello again", "/retry"])
@pytest.mark.parametrize("path", ["personas/frodo/system.jsonc", "config.jsonc"])
def test_nothing_is_asked_of_a_persona_whose_settings_cannot_be_read(home: Home, path: str, question: str) -> None:
    assert home.run("ask", "-c", "--persona", "frodo", "hello").code == 0
    file, before = home.path / path, home.replies()
    file.write_text('{\n  "name": "Frodo",\n  "context_hours" 24\n}\n')
    outcome = home.run("ask", "--persona", "frodo", question)
    assert (outcome.code, outcome.output) == (1, "")
    assert outcome.errors.endswith(f"so the prompt may be missing. Correct {file}:3:19 and ask again.\n")
    assert (home.said(), home.replies()) == (["hello"], before)


def test_a_persona_whose_folder_is_gone_gives_way_to_the_default_one(home: Home) -> None:
    assert home.run("ask", "/persona frodo").code == home.run("ask", "hello").code == 0
    shutil.rmtree(home.path / "personas" / "frodo")
    assert home.run("ask", "-c", UNHAPPY).code == 0
    assert home.sql("SELECT DISTINCT persona FROM messages ORDER BY persona") == ["chorus", "frodo"]


def test_a_home_directory_that_is_none_and_a_home_below_a_file_are_one_sentence(home: Home, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {name: value for name, value in home.environment.items() if name != "CHORUS_HOME"}
    for nowhere in ("/dev/null", str(tmp_path / "file")):
        outcome = finished([*PROGRAM, "ask", "-c", UNHAPPY], {**environment, "HOME": nowhere})
        refused(outcome, f"Chorus cannot keep anything in {nowhere}/", NO_SUCH_PLACE)
    told = f"Chorus cannot keep anything in {tmp_path / 'file'}: it is a file, not a folder."
    refused(Home(tmp_path / "file").run("ask", "-c", UNHAPPY), told)
    refused(Home(tmp_path / "file" / "home").run("log"), f"Chorus cannot keep anything in {tmp_path / 'file'}")


def test_a_read_only_home_is_one_sentence_and_stays_as_it_is(home: Home) -> None:
    home.path.mkdir(mode=0o500)
    refused(run_without_privileges(home, "ask", "-c", UNHAPPY), f"Chorus cannot write in {home.path}", NO_SUCH_PLACE)
    refused(run_without_privileges(Home(home.path / "below"), "ask", "-c", UNHAPPY), "Permission denied", NO_SUCH_PLACE)
    assert list(home.path.iterdir()) == []


def test_input_that_is_not_utf8_is_refused_and_nothing_is_sent(home: Home) -> None:
    refused(home.run("ask", "-c", stdin=b"caf\xe9"), "not UTF-8 (byte 4 is 0xe9)")
    refused(home.run("ask", "-c", stdin=b"\xef\xbb\xbfcaf\xe9"), "not UTF-8 (byte 7 is 0xe9)")
    refused(home.run("ask", "-c", "what is this?", stdin=b"\xff\xfe\x00"), "not UTF-8 (byte 1 is 0xff)")
    refused(home.run("ask", "-c", b"caf\xe9"), "not valid UTF-8")
    refused(home.run("ask", b"/context caf\xe9"), "not valid UTF-8")
    refused(home.run("log", "--persona", b"caf\xe9"), "There is no persona called")
    refused(home.run("ask", "--model", b"caf\xe9", "hi"), "The name of the model is not valid UTF-8.")
    assert home.run("log").output == ""


def test_stdin_that_is_closed_is_no_message(home: Home) -> None:
    refused(home.shell("chorus ask <&-"), "There is nothing to ask.")
    refused(home.shell("chorus <&-"), "The chat needs a terminal to type in.")


def test_a_working_directory_that_is_gone_matters_to_nobody(home: Home) -> None:
    source = os.getcwd()  # noqa: PTH109 - the shell is told where the program lies
    script = f'gone=$(mktemp -d); cd "$gone"; rmdir "$gone"; PYTHONPATH="{source}" chorus ask "{UNHAPPY}"'
    outcome = home.shell(script)
    assert (outcome.code, outcome.output) == (0, WHY_UNHAPPY)


def refused(outcome: Outcome, *sentences: str) -> None:
    """Check that a command failed with one line that says all of ``sentences``, and nothing else."""
    assert outcome.code == 1, outcome
    assert outcome.output == ""
    assert outcome.errors.count("\n") == 1, outcome.errors
    assert all(sentence in outcome.errors for sentence in sentences), outcome.errors


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without an entry in the list of users")
def test_a_user_without_any_home_gets_one_sentence() -> None:
    program = """
import os, platformdirs, platformdirs.unix, pwd
from chorus_cli.machine.paths import paths
from chorus_cli.core.errors import HomeError
os.environ.pop("HOME")
os.setuid(54321)
try:
    paths({}, None)
except HomeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30)
    assert done.stdout.startswith("There is no home directory to keep your messages in.")
    assert done.stderr == ""
