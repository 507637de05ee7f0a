"""``chorus doctor`` in the real program, at a terminal: it offers to settle and clear up what killed processes left."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from chorus_cli.storage import file_lock
from chorus_cli.stores.rules.findings import Repair
from chorus_cli.subcommands.repairs import MENDS
from tests.terminal.command import PROGRAM
from tests.terminal.driver import Home, Terminal
from tests.test_doctor import await_question

BYTES = b"a picture"
DIGEST = sha256(BYTES).hexdigest()
NAMED = json.dumps([{"name": "photo.png", "media_type": "text/plain", "size_bytes": 9, "sha256": DIGEST}])
SESSION = "2026-02-12_kept"
DEAD_RUN = "17-0123abcd"
LEFT = (".restoring-ab12_z9k/chorus.db", "personas/chorus/.chorus-ab12_z9k.tmp", "backups/.chorus-ab12_z9k.tmp")
THEIRS = ("notes.tmp", "state/drafts/draft-17-0123abcd-x-message.md", "state/rescue/rescue-notes.txt")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("template") / "home")
    assert home.run("ask", "hello").code == 0
    return home


def stored(home: Home) -> Path:
    """Store an attachment, and return its path."""
    path = home.path / "attachments" / DIGEST[:2] / DIGEST
    path.parent.mkdir(parents=True)
    path.write_bytes(BYTES)
    return path


def orphaned(home: Home) -> list[Path]:
    """Put there what killed processes leave, and files of the user; return the former."""
    paths = [home.path / name for name in (*LEFT, *THEIRS)]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left")
        os.utime(path, (time.time() - 7200, time.time() - 7200))
    (home.path / "state" / "run" / DEAD_RUN).touch()
    home.sql("UPDATE messages SET status = 'streaming', run = ? WHERE role = 'assistant'", DEAD_RUN)
    return [*paths[: len(LEFT)], stored(home)]


def findings(home: Home, state: str) -> dict[str, str | None]:
    """Return the repairs of findings of a state, by their subjects, as a program gets them."""
    outcome = home.run("doctor", "--json")
    report = json.loads(outcome.output)
    assert outcome.code == (0 if report["well"] else 1)
    return {each["subject"]: each["mend"] for each in report["findings"] if each["state"] == state}


def answered(home: Home, answers: Sequence[str]) -> tuple[str, int]:
    """Let the doctor ask at a terminal, and return its words and its exit code."""
    with closing(Terminal(home.environment, command=[*PROGRAM, "doctor"])) as terminal:
        for number, answer in enumerate(answers, 1):
            await_question(terminal, number)
            terminal.say(answer)
        code = terminal.await_end()
        return " ".join(terminal.screen_text().split()), code


NOTES = ["interrupted", "unnamed", "leftovers"]


def of_doctor(home: Home) -> list[str]:
    return [subject for subject in findings(home, "note") if subject in NOTES]


def test_what_killed_processes_left_is_a_note_and_goes_with_consent(home: Home) -> None:
    left = orphaned(home)
    assert of_doctor(home) == NOTES
    assert findings(home, "wrong") == {}
    told, code = answered(home, ["n", "n"])
    assert (code, [path for path in left if not path.exists()]) == (0, [])
    assert of_doctor(home) == NOTES, told
    told, code = answered(home, ["y", "y"])
    assert (code, [path for path in left if path.exists()]) == (0, [])
    assert "Deleted 1 attachment (9 bytes)." in told
    assert "Deleted 3 temporary files and folders (12 bytes)." in told
    assert [(home.path / name).read_bytes() for name in THEIRS] == [b"left"] * len(THEIRS)
    assert of_doctor(home) == ["interrupted"]
    assert home.run("ask", "on we go").code == 0
    assert [status for _, status in home.replies()] == ["interrupted", "complete"]
    assert of_doctor(home) == []


@pytest.fixture
def living_run(home: Home) -> Iterator[str]:
    """The name of a run whose process lives."""
    (home.path / "state" / "run").mkdir(parents=True, exist_ok=True)
    with file_lock.hold(home.path / "state" / "run" / DEAD_RUN):
        yield DEAD_RUN


def test_what_a_running_chorus_uses_is_not_offered(home: Home, living_run: str) -> None:
    orphaned(home)
    assert {*of_doctor(home)} == {"unnamed", "leftovers"}
    assert findings(home, "note")["unnamed"] is None
    told, code = answered(home, ["y"])
    assert code == 0
    assert "Deleted 2 temporary files and folders" in told
    assert (home.path / ".restoring-ab12_z9k" / "chorus.db").exists()
    assert (home.path / "state" / "run" / living_run).exists()
    assert [status for _, status in home.replies()] == ["streaming"]


def test_an_attachment_that_is_gone_comes_from_the_backup(home: Home) -> None:
    home.sql("UPDATE messages SET attachments = ? WHERE role = 'user'", NAMED)
    path = stored(home)
    assert home.run("backup").code == 0
    path.write_bytes(b"something else")
    assert findings(home, "wrong") == {"attachments": "attachments"}
    _, code = answered(home, ["n"])
    assert (code, path.read_bytes()) == (1, b"something else")
    told, code = answered(home, ["y"])
    assert (code, path.read_bytes()) == (0, BYTES)
    assert "1 file brought from" in told
    assert findings(home, "wrong") == {}


def test_lost_files_that_no_backup_has_are_told_after_the_others_were_brought(home: Home) -> None:
    gone = json.loads(NAMED)[0] | {"sha256": "ab" * 32}
    home.sql("UPDATE messages SET attachments = ? WHERE role = 'user'", json.dumps([*json.loads(NAMED), gone]))
    path = stored(home)
    assert home.run("backup").code == 0
    path.unlink()
    told, code = answered(home, ["y"])
    assert (code, path.read_bytes()) == (1, BYTES)
    assert "No backup can give 1 file back; chorus doctor names what is lost." in told


def test_a_repair_that_the_disk_refuses_ends_with_a_sentence(home: Home) -> None:
    home.sql("UPDATE messages SET attachments = ? WHERE role = 'user'", NAMED)
    path = stored(home)
    assert home.run("backup").code == 0
    path.unlink()
    path.parent.rmdir()
    path.parent.touch()
    told, code = answered(home, ["y"])
    assert code == 1
    # The terminal breaks the long path.
    sentence = f"The repair stopped at {path.parent}: File exists. Mend that and run chorus doctor again"
    assert sentence.replace(" ", "") in told.replace(" ", "")


def test_a_damaged_session_comes_from_the_backup_and_is_kept(home: Home) -> None:
    with home.chat() as terminal:
        terminal.say("/context save about the hello")
        terminal.await_text("Saved")
    (path,) = (home.path / "personas" / "chorus" / "sessions").glob("*.json")
    saved = path.read_bytes()
    assert home.run("backup").code == 0
    path.write_bytes(saved[:-20])
    told, code = answered(home, ["y"])
    assert (code, path.read_bytes()) == (0, saved)
    assert "The damaged file is kept as" in told
    (kept,) = (home.path / "state" / "drafts").glob("damaged-*.json")
    assert kept.read_bytes() == saved[:-20]
    assert findings(home, "wrong") == {}


ROWS = {
    "a question and its thread": ("DELETE FROM messages WHERE role = 'user'", "DELETE FROM threads"),
    "a value that cannot be read": ("UPDATE messages SET usage = 'x'",),
}


@pytest.mark.parametrize("gone", ROWS)
def test_rows_that_are_gone_or_damaged_are_mended_by_a_salvage(home: Home, gone: str) -> None:
    assert home.run("backup").code == 0
    before = home.sql("SELECT id, content, thread_id FROM messages ORDER BY id")
    for statement in ROWS[gone]:
        home.sql(statement)
    assert findings(home, "wrong") == {"rows": "salvage"}
    told, code = answered(home, ["y", "y"])
    assert code == 0, told
    assert home.sql("SELECT id, content, thread_id FROM messages ORDER BY id") == before
    assert findings(home, "wrong") == {}


def test_the_room_of_attachments_that_backups_keep_is_told(home: Home) -> None:
    first, second = stored(home), home.path / "attachments" / "ab" / ("ab" * 32)
    second.parent.mkdir()
    second.write_bytes(b"other bytes")
    kept = home.path / "backups" / "attachments" / first.relative_to(home.path / "attachments")
    kept.parent.mkdir(parents=True)
    kept.hardlink_to(first)
    told, _ = answered(home, ["y"])
    assert "Deleted 2 attachments (20 bytes, 9 bytes of which backups keep)." in told
    first.hardlink_to(kept)
    told, _ = answered(home, ["y"])
    assert "Deleted 1 attachment (9 bytes, which backups keep)." in told


def test_a_link_that_another_program_made_is_not_called_a_backup(home: Home, tmp_path: Path) -> None:
    left = home.path / LEFT[-1]
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"left")
    os.utime(left, (time.time() - 7200, time.time() - 7200))
    for number, path in enumerate([left, stored(home)]):
        (tmp_path / f"mirror{number}").hardlink_to(path)
    told, _ = answered(home, ["y", "y"])
    assert "Deleted 1 attachment (9 bytes)." in told
    assert "Deleted 1 temporary file or folder (4 bytes)." in told


def test_a_salvage_says_which_faults_would_remain(home: Home) -> None:
    assert home.run("backup").code == 0
    assert home.run("ask", "hello again").code == 0
    home.sql("DELETE FROM messages WHERE role = 'user'")
    told, code = answered(home, ["y", "y"])
    assert code == 1
    assert "These faults would remain: 1 message" in told
    assert home.said() == ["hello"]
    assert findings(home, "wrong") == {"rows": "salvage"}


def test_a_restore_that_was_decided_is_told_and_carried_on_by_the_next_start(home: Home) -> None:
    (home.path / ".restoring").mkdir()
    shutil.rmtree(home.path / "state")
    (home.path / ".restoring" / "config.jsonc").write_text("{}\n")
    assert findings(home, "wrong") == {"restore": None}
    assert home.run("log").code == 0
    assert (home.path / "config.jsonc").read_text() == "{}\n"
    assert findings(home, "wrong") == {}


def test_each_repair_has_a_question_and_a_function() -> None:
    assert {*MENDS} == {*Repair}
    assert len({repair.question for repair in Repair}) == len(Repair)
    assert [repair for repair in Repair if repair.question.count("?") != 1] == []
