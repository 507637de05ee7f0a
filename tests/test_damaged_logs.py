"""Logs that are damaged in any way: the chat, ``log`` and ``doctor`` say so in a sentence, and change no message."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.storage.damaged_files import readable, spoil
from tests.terminal.driver import PROMPT, Home, Terminal

SAID = ["hello", "hello again", "and again"]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("template") / "home")
    for text in (*SAID, "/context 24h"):
        assert home.run("ask", text).code == 0
    assert home.run("search", "hello").code == 0
    return home


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
    terminal = Terminal(home.environment)
    try:
        with suppress(AssertionError):
            terminal.await_line(PROMPT)
            terminal.press("ctrl-d")
        return terminal.await_end()
    finally:
        terminal.close()


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
def test_a_damage_is_a_sentence_wherever_it_is_met(template: Home, tmp_path: Path, number: int) -> None:
    a_damage_is_told_and_nothing_changed(template, copied(template, tmp_path / "home"), number)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_damages_are_sentences_wherever_they_are_met(template: Home, tmp_path: Path) -> None:
    for number in range(200):
        a_damage_is_told_and_nothing_changed(template, copied(template, tmp_path / str(number)), number)
        shutil.rmtree(tmp_path / str(number))


def copied(home: Home, path: Path) -> Home:
    return Home(shutil.copytree(home.path, path))
