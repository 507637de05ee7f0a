"""``chorus import`` and ``chorus export`` as a shell sees them: what moves, what fails, and a kill."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.imports.service.foreign_talk import LATIUM, OFTEN, OSLO, ROME, WHERE, written
from tests.terminal.driver import Home

_SIZES = (
    "SELECT COUNT(message_id) FROM imported_conversations JOIN imported_messages ON id = conversation_id GROUP BY id"
)
_TALKS, _MESSAGES = 40, 400


def test_conversations_move_from_one_home_to_another(home: Home, tmp_path: Path) -> None:
    path = written(tmp_path, ROME, WHERE, LATIUM, OSLO, OFTEN)
    assert "Imported 3 new messages in 2 new threads" in home.run("import", str(path)).output
    assert home.run("ask", "/context undo").code == 0
    assert home.run("search", "latium").code == 1
    assert json.loads(home.run("import", str(path), "--json").output)["imports_redone"] == 1
    assert "In «Latium»" in home.run("search", "latium").output
    folder, other = str(tmp_path / "out"), Home(tmp_path / "other")
    assert home.run("export", "--all", folder).output == (
        f"Exported 2 conversations with 3 messages to {folder}. chorus import {folder} brings them back.\n"
    )
    report = json.loads(other.run("import", folder, "--json").output)
    assert (report["new_conversations"], report["new_messages"], report["sources"]) == (2, 3, {"demo": 2})
    assert json.loads(other.run("log", "--json").output)[0]["timestamp"] == "2025-01-01T10:00:00.000000Z"


def test_a_question_finds_what_was_imported_and_shows_what_was_said_around_it(home: Home, tmp_path: Path) -> None:
    assert home.run("import", str(written(tmp_path, ROME, WHERE, LATIUM, OSLO, OFTEN))).code == 0
    (found,) = json.loads(home.run("search", "--json", "--", "Which", "town", "is", "in", "Latium?").output)["results"]
    assert (found["content"], found["before"]["role"], found["after"]) == ("In Latium", "user", None)
    assert found["before"]["excerpt"] == "Where is Rome?"
    assert home.run("search", "+latium", "+oslo").code == home.run("search", "--", "latium", "-latium").code == 1


def test_no_title_of_an_export_commands_the_terminal(home: Home, tmp_path: Path) -> None:
    path = written(tmp_path, {**ROME, "title": "\x1b]0;owned\x07Rome\n\x1b[2J"}, WHERE)
    outcomes = [home.run(*line) for line in (("import", f"{path}"), ("ask", "/thread 2"), ("search", "rome"))]
    assert [(outcome.code, "\x1b" in outcome.output + outcome.errors) for outcome in outcomes] == [(0, False)] * 3


def test_an_export_that_fails_says_how_much_was_written(home: Home, tmp_path: Path) -> None:
    home.run("import", str(written(tmp_path, ROME, WHERE, LATIUM, OSLO, OFTEN)))
    folder = tmp_path / "out"
    outcome = home.run("export", "--all", "/proc/nope")
    assert (outcome.code, outcome.output) == (1, "")
    assert "cannot be written: No such file or directory. 0 conversations had been written." in outcome.errors
    home.run("export", "--all", str(folder))
    *_, last = sorted(folder.glob("*/*.md"), key=lambda path: path.stat().st_mtime_ns)
    last.unlink()
    last.mkdir()
    outcome = home.run("export", "--all", str(folder))
    assert outcome.errors == (
        f"{last} cannot be written: Is a directory. 1 conversation had been written. Remove the cause (chorus doctor "
        "repairs a damaged log) and repeat the export.\n"
    )
    last.rmdir()
    assert home.run("export", "--all", str(folder)).output.startswith("Exported 2 conversations")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("import", __file__),
            f"{__file__} has an unknown format. The known formats are another Chorus, our own Markdown and JSONL, the",
        ),
        (("import", __file__, "--timezone", "Mars/Phobos"), "There is no time zone 'Mars/Phobos'."),
        (("import", __file__, "--persona", "nobody"), "There is no persona called 'nobody'."),
        (("import",), "chorus import needs <file…>, for example: chorus import"),
        (("export",), "There is nothing to write; /export FILE all"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(home: Home, arguments: tuple[str, ...], told: str) -> None:
    outcome = home.run(*arguments)
    assert (outcome.code, len(outcome.errors.splitlines()), outcome.output) == (1, 1, "")
    assert told in outcome.errors


def test_a_killed_import_leaves_whole_conversations_and_the_next_one_goes_on(home: Home, tmp_path: Path) -> None:
    path = written(tmp_path, *_many())
    home.run("personas")
    with home.running("import", str(path)) as importing:
        _wait_for_some(home)
        importing.kill()
        importing.wait()
    left = home.sql(_SIZES)
    assert 0 < len(left) < _TALKS
    assert set(left) == {_MESSAGES}
    again = json.loads(home.run("import", str(path), "--json").output)
    assert (again["new_conversations"], again["known_messages"]) == (_TALKS - len(left), _MESSAGES * len(left))
    assert home.sql(_SIZES) == [_MESSAGES] * _TALKS
    assert home.sql("PRAGMA integrity_check") == ["ok"]


def _many() -> list[object]:
    said = [{**WHERE, "key": f"m{number}", "content": "word " * 20} for number in range(_MESSAGES)]
    return [line for each in range(_TALKS) for line in ({**ROME, "key": f"c{each}"}, *said)]


def _wait_for_some(home: Home) -> None:
    for _ in range(3_000):
        if (home.path / "chorus.db").exists() and home.sql("SELECT 1 FROM imported_conversations LIMIT 1"):
            return
        time.sleep(0.01)
    raise AssertionError("nothing came in")
