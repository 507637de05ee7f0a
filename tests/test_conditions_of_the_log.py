"""Each condition of the log, also any damage, has its own true sentence, in the chat and in the commands around it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.storage.damaged_files import readable, spoil
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.ordinary_user import small_disk

SAID, HELLO, LATER = ["hello", "hello again", "and again"], "I am unhappy", "I am tired"
MOVED = "was moved, deleted or replaced while Chorus had it open. Quit Chorus and start it again."


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("template") / "home")
    for text in (*SAID, "/context 24h"):
        assert home.run("ask", "-c", text).code == 0
    assert home.run("search", "hello").code == 0
    return home


def database(home: Home) -> Path:
    return home.path / "chorus.db"


def pragma(name: str, value: int) -> Callable[[Home], None]:
    def set_value(home: Home) -> None:
        with closing(sqlite3.connect(database(home))) as connection, connection:
            connection.execute(f"PRAGMA {name} = {value}")

    return set_value


def a_directory(home: Home) -> None:
    database(home).unlink()
    database(home).mkdir()


def nothing_in_it(home: Home) -> None:
    database(home).write_bytes(b"")


def a_diary(home: Home) -> None:
    database(home).write_text("Dear diary, " * 1000)


FOUND = {
    "user_version higher": (pragma("user_version", 999), "was made by a newer Chorus."),
    "application_id of another": (pragma("application_id", 7), "belongs to another program. Move it away"),
    "a directory": (a_directory, "cannot be opened"),
    "zero bytes": (nothing_in_it, "is empty (0 bytes). Chorus never leaves an empty log."),
    "no database": (a_diary, "is damaged or is not a database"),
}


@pytest.mark.parametrize("condition", FOUND)
def test_a_log_that_cannot_be_opened_is_one_sentence_everywhere(home: Home, condition: str) -> None:
    make, sentence = FOUND[condition]
    make(home)
    for arguments in (
        ("log",),
        ("search", "said"),
        ("ask", "-c", "hello"),
        ("context", "--json"),
        ("export", "--all", "x"),
    ):
        outcome = home.run(*arguments)
        assert (outcome.code, outcome.output, outcome.errors.count("\n")) == (1, "", 1), (arguments, outcome)
        assert str(database(home)) in outcome.errors
        assert sentence in outcome.errors, outcome.errors
    with closing(Terminal(home.environment)) as terminal:
        assert terminal.await_end() == 1
        assert told(terminal, sentence)


def replaced(home: Home) -> None:
    shutil.copy(database(home), home.path / "other.db")
    (home.path / "other.db").replace(database(home))


def deleted(home: Home) -> None:
    database(home).unlink()


@pytest.mark.parametrize("change", [replaced, deleted])
def test_a_log_that_goes_while_the_chat_is_open_takes_no_message_and_is_called_that(
    home: Home, change: Callable[[Home], None]
) -> None:
    with home.chat() as terminal:
        terminal.ask(HELLO, "made you unhappy?")
        change(home)
        terminal.say("are you there?")
        terminal.until(lambda: told(terminal, MOVED), MOVED)
        terminal.await_line(PROMPT)
        terminal.press("ctrl-d")
        assert terminal.await_end() in (0, 1)
    [rescued] = (home.path / "state" / "rescue").glob("*.jsonl")
    assert "are you there?" in rescued.read_text()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_log_that_another_program_does_not_let_go_is_called_busy(home: Home) -> None:
    program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN IMMEDIATE'); input()"
    with home.chat() as terminal:
        command = ["python3", "-c", program, str(database(home))]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as other:
            terminal.watch(1)
            terminal.say("are you there?")
            terminal.until(lambda: told(terminal, "Another program uses"), "the sentence", 90)
            outcome = home.run("ask", "-c", "hello")
            assert (outcome.code, outcome.errors.count("\n")) == (1, 1)
            assert "Another program uses" in outcome.errors
            other.communicate(b"\n")
        terminal.await_line(f"{PROMPT} are you there?")
        terminal.press("ctrl-c")
        terminal.await_line(PROMPT)
        terminal.ask(LATER, "tired?")
    assert home.said() == [*SAID, LATER]


def test_a_full_disk_is_called_that_and_the_message_is_kept_elsewhere(home: Home) -> None:
    size = sum(path.stat().st_size for path in home.path.rglob("*") if path.is_file())
    full = Home(home.path.with_name("full"))
    with small_disk(full.path, f"{4 * size}"):
        shutil.copytree(home.path, full.path, dirs_exist_ok=True)
        full.sql("UPDATE messages SET status = 'streaming', run = '999999-dead' WHERE role = 'assistant'")
        fill(full.path / "filling")
        assert SAID[0] in full.run("log").output
        (full.path / "filling").unlink()
        with full.chat(TMPDIR=str(home.path.parent)) as terminal:
            terminal.ask(HELLO, "made you unhappy?")
            fill(full.path / "filling")
            terminal.paste("are you there? " + "word " * 2000)
            terminal.press("enter")
            full_disk = f"There is no room left on the disk of {full.path / 'chorus.db'}"
            terminal.until(lambda: told(terminal, full_disk), "the sentence")
            terminal.await_line(PROMPT)
            (full.path / "filling").unlink()
            terminal.ask(LATER, "tired?")
        assert full.said() == [*SAID, HELLO, LATER]


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (65536, 512):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def told(terminal: Terminal, sentence: str) -> bool:
    """Return whether a sentence stands on the screen, however it is wrapped."""
    return "".join(sentence.split()) in "".join(terminal.screen_text().split())


def is_as_it_was(home: Home, original: Home) -> bool:
    """Return whether every message is as it was written, as far as SQLite can tell."""
    found = []
    with suppress(sqlite3.Error, UnicodeDecodeError):
        for each in (home, original):
            with closing(sqlite3.connect(each.path / "chorus.db")) as connection:
                found.append(connection.execute("SELECT id, role, content, timestamp FROM messages").fetchall())
    return len(found) == 2 and found[0] == found[1]


def traceback_of(home: Home) -> str:
    kept = home.path / "state" / "chorus.log"
    return kept.read_text(encoding="utf-8") if kept.exists() else ""


def exit_code_of_a_chat(home: Home) -> int:
    """Open the chat and leave it at once, if it opens at all."""
    with closing(Terminal(home.environment)) as terminal:
        with suppress(AssertionError):
            terminal.await_line(PROMPT)
            terminal.press("ctrl-d")
        return terminal.await_end()


def a_damage_is_told_and_nothing_changed(original: Home, home: Home, number: int) -> None:
    spoil(home.path / "chorus.db", number)
    before = readable(home.path / "chorus.db", 100)
    doctor, log = home.run("doctor", "--json"), home.run("log", "--json")
    codes = {doctor.code, log.code, exit_code_of_a_chat(home)}
    assert codes <= {0, 1}, (number, codes, traceback_of(home))
    assert "Traceback" not in doctor.errors + log.errors
    assert readable(home.path / "chorus.db", 100) == before
    if log.code:
        assert (log.output, log.errors.count("\n")) == ("", 1), log
    if not is_as_it_was(home, original):
        assert doctor.code == 1, doctor
        assert not json.loads(doctor.output)["well"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [3, 4, 5, 6, 7, 8, 17, 26])
def test_a_damage_is_a_sentence_wherever_it_is_met(template: Home, home: Home, number: int) -> None:
    a_damage_is_told_and_nothing_changed(template, home, number)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_damages_are_sentences_wherever_they_are_met(template: Home, tmp_path: Path) -> None:
    for number in range(200):
        home = Home(shutil.copytree(template.path, tmp_path / str(number)))
        a_damage_is_told_and_nothing_changed(template, home, number)
        shutil.rmtree(home.path)
