"""A home that can be read and not written: all of it can be read, and one sentence says that nothing can be stored."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from tests.storage.damaged_files import cut_off
from tests.terminal.command import PROGRAM, Outcome, finished
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.ordinary_user import ordinary_program, small_disk

Place = Callable[[Home], AbstractContextManager[Sequence[str]]]

SAID = ["hello", "good day"]
CANNOT = "cannot be written ("
NOTHING_SENT = "), so nothing was stored and nothing was sent.\n"


@pytest.fixture
def home(home: Home) -> Home:
    """A home with two turns, the second of which is not in the index yet."""
    for words in (("ask", "-c", SAID[0]), ("search", SAID[0]), ("ask", "-c", SAID[1])):
        assert home.run(*words).code == 0
    return home


@contextmanager
def without_permissions(home: Home) -> Iterator[Sequence[str]]:
    """Take the permission to write; yield the program as a command of one to whom permissions apply."""
    program = ordinary_program()
    all_of_it = [home.path, *home.path.rglob("*")]
    modes = {path: path.stat().st_mode for path in all_of_it}
    for path in all_of_it:
        path.chmod(modes[path] & ~0o222)
    try:
        yield program
    finally:
        for path in all_of_it:
            path.chmod(modes[path])


@contextmanager
def on_a_read_only_disk(home: Home) -> Iterator[Sequence[str]]:
    copy = shutil.copytree(home.path, home.path.with_name("copy"))
    with small_disk(home.path, "100m"):
        shutil.copytree(copy, home.path, dirs_exist_ok=True)
        subprocess.run(["mount", "-o", "remount,ro", str(home.path)], check=True)
        yield PROGRAM


@pytest.fixture(params=[without_permissions, on_a_read_only_disk], ids=lambda place: place.__name__)
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.param
    return found


READ = {
    ("log",): SAID[1],
    ("log", "--json"): SAID[1],
    ("search", "day"): "good «day»",
    ("context", "--json"): SAID[1],
    ("context",): "Context window",
    ("cost",): "",
    ("cost", "--json"): "",
    ("memory",): "",
    ("memory", "--json"): "",
    ("personas",): "Frodo",
    ("personas", "--json"): "frodo",
    ("ask", "/context"): "Context window",
}
CHANGES = ["/context 12h", "/thread new", "/retry", "/new", "/persona new Ada", "/memory flash"]


def test_everything_can_be_read_with_one_sentence(home: Home, tmp_path: Path, place: Place) -> None:
    with place(home) as program:
        run = on(home, program)
        # A program of lesser powers is no fork of the test runner, so that each takes a second.
        for arguments, found in [*READ.items()][: 3 if place is without_permissions else None]:
            outcome = run(*arguments)
            assert (outcome.code, found in outcome.output) == (0, True), (arguments, outcome)
            told(outcome)
        outcome = run("export", "--all", str(tmp_path / "exported"))
        assert "4 messages" in outcome.output
        told(outcome)
        doctor = run("doctor", "--json")
        report = json.loads(doctor.output)
        wrong = {each["subject"]: each["sentence"] for each in report["findings"] if each["state"] == "wrong"}
        assert (doctor.code, [*wrong], doctor.errors) == (1, ["home"], "")
        assert ("mounted read-only" in wrong["home"]) is (place is on_a_read_only_disk)
        assert ("chmod" in wrong["home"]) is (place is without_permissions)


def test_a_backup_elsewhere_is_made_and_a_private_question_answered(home: Home, tmp_path: Path, place: Place) -> None:
    with place(home) as program:
        backup = on(home, program)("backup", str(tmp_path / "kept.zip"))
        asked = on(home, program)("ask", "--private", "hello")
    assert (backup.code, (tmp_path / "kept.zip").is_file()) == (0, True), backup
    assert (asked.code, asked.errors) == (0, "")


def test_a_question_and_an_import_are_refused_and_nothing_changes(home: Home, tmp_path: Path, place: Place) -> None:
    (tmp_path / "talk.json").write_text('[{"role": "user", "content": "Hello"}]')
    with place(home) as program:
        for text in CHANGES[: 2 if place is without_permissions else None]:
            outcome = on(home, program)("ask", text)
            assert outcome.code == 1, (text, outcome)
            first, *where, refusal = outcome.errors.splitlines()
            assert where == (["In thread #1."] if text == "/retry" else [])
            assert CANNOT in first
            assert "Traceback" not in refusal
        outcome = on(home, program)("ask", "-c", "remember me")
        assert (outcome.code, outcome.output, outcome.errors.count("\n")) == (1, "", 1)
        why = "no permission" if place is without_permissions else "a read-only file system"
        assert outcome.errors == f"{home.path} cannot be written ({why}{NOTHING_SENT}"
        outcome = on(home, program)("import", str(tmp_path / "talk.json"))
        assert (outcome.code, "already" in outcome.output) == (1, False), outcome
        assert "so nothing was stored." in outcome.errors
    assert home.said() == SAID


def test_a_purge_is_shown_and_refused_with_one_sentence(home: Home, place: Place) -> None:
    assert home.run("backup").code == 0
    with place(home) as program:
        run = on(home, program)
        shown = run("purge", "search", SAID[0], "--dry-run")
        assert (shown.code, shown.output.splitlines()[-1]) == (0, "Nothing was purged.")
        assert "the texts too." in shown.output
        refused = run("purge", "search", SAID[0], "--yes", "--json")
        assert (refused.code, refused.output) == (1, "")
        assert "), so nothing can be purged." in refused.errors.splitlines()[-1]
        assert CANNOT in refused.errors.splitlines()[-1]
    assert home.said() == SAID


def test_the_chat_opens_for_reading_and_gives_a_message_back(home: Home, place: Place) -> None:
    with place(home) as program, closing(Terminal(home.environment, command=[*program])) as terminal:
        terminal.await_line(PROMPT)
        assert "".join(terminal.screen_text().split()).count("itrefusesmessages.") == 1
        terminal.say("remember me")
        terminal.await_text("nothing was sent")
        terminal.until(lambda: "quitChorusandstartitagain" in shown(terminal), "what to do")
        terminal.await_line(f"{PROMPT} remember me")
        terminal.press("ctrl-c")
        terminal.await_line(PROMPT)
        terminal.ask("/search day", "good «day»")
        terminal.say("/persona Frodo")
        terminal.await_text("You are now talking to Frodo")
        terminal.ask("/persona Chorus", "You are now talking to Chorus")
        terminal.ask("/thread 1", "Thread #1")
        terminal.say("/thread new")
        terminal.until(lambda: shown(terminal).endswith("sonothingwasstored."), "the refusal")
        terminal.press("ctrl-d")
        assert terminal.await_end() == 0
    assert home.said() == SAID


def test_a_log_whose_last_write_a_kill_cut_off_is_refused_until_it_can_be_written(home: Home, place: Place) -> None:
    cut_off(home.path / "chorus.db")
    with place(home) as program:
        outcome = on(home, program)("log")
        doctor = on(home, program)("doctor", "--json").output
    assert (outcome.code, outcome.output) == (1, "")
    assert "chorus.db cannot be " in outcome.errors
    wrong = [each for each in json.loads(doctor)["findings"] if each["state"] == "wrong"]
    assert {each["subject"]: each["mend"] for each in wrong} == {"log": None, "home": None}
    assert "can read everything" not in doctor
    assert home.said() == SAID


def test_a_home_whose_restore_was_cut_off_is_not_opened(home: Home, place: Place) -> None:
    (home.path / ".restoring").mkdir()
    with place(home) as program:
        refused = on(home, program)("log")
    assert (refused.code, refused.output) == (1, "")
    assert "A restore was interrupted and cannot be completed: " in refused.errors


def shown(terminal: Terminal) -> str:
    """Return the last answer on the screen, above the prompt, without blanks: it may be wrapped anywhere."""
    return "".join(terminal.screen_text().rpartition(PROMPT)[0].split())


def on(home: Home, program: Sequence[str]) -> Callable[..., Outcome]:
    return lambda *arguments: finished([*program, *arguments], home.environment)


def told(outcome: Outcome) -> None:
    """Check that exactly one sentence says that nothing can be stored."""
    assert outcome.errors.count("\n") == 1, outcome
    assert CANNOT in outcome.errors
