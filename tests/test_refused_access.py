"""Folders and files that permissions keep the user from: a sentence for each, and all else goes on."""

from __future__ import annotations

import errno
import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.core.errors import HomeError
from chorus_cli.storage.permissions import advised
from chorus_cli.storage.permissions import refused as sentence
from tests.terminal.command import Outcome, finished
from tests.terminal.driver import Home
from tests.terminal.ordinary_user import ordinary_program, refused

_WORDS = "a word of mine"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a message, a session and a backup."""
    home = Home(tmp_path_factory.mktemp("template") / "home")
    for words in (["ask", "-c", _WORDS], ["ask", "/context save"], ["backup"]):
        assert home.run(*words).code == 0
    return home


def run(home: Home, *words: str) -> Outcome:
    """Run a subcommand as one to whom permissions apply."""
    return finished([*ordinary_program(), *words], home.environment)


def wrong(home: Home) -> dict[str, dict[str, Any]]:
    report = json.loads(run(home, "doctor", "--json").output)
    return {each["subject"]: each for each in report["findings"] if each["state"] == "wrong"}


FOLDERS = (
    *("personas/frodo", "personas/chorus/sessions", "."),
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("personas", "personas/chorus", "backups", "state")),
)


@pytest.mark.parametrize("name", FOLDERS)
def test_the_doctor_names_a_folder_that_cannot_be_read(home: Home, name: str) -> None:
    with refused(home.path / name):
        found = wrong(home)
    assert found["access"]["sentence"].startswith(f"{home.path / name} cannot be read. Give yourself access with: ")


@pytest.mark.parametrize(
    ("names", "others"),
    [
        (("chorus/docs", "frodo", "reviewer"), ""),
        (("chorus/docs", "chorus/sessions", "frodo", "reviewer"), " and 1 more"),
    ],
)
def test_the_doctor_and_a_purge_name_all_that_cannot_be_read_in_one_command(
    home: Home, names: tuple[str, ...], others: str
) -> None:
    paths = [home.path / "personas" / name for name in names]
    paths[0].mkdir(exist_ok=True)
    with ExitStack() as closed:
        for path in paths:
            closed.enter_context(refused(path))
        doctor, purge = wrong(home)["access"]["sentence"], run(home, "purge", "search", _WORDS, "--yes")
        backup = run(home, "backup").errors.removeprefix("No backup was made: ")
    for told in (doctor, purge.errors, backup):
        named = told.partition(" cannot be read")[0]
        command = told.strip().partition("chmod -R u+rwX ")[2].partition(";")[0].split()
        assert named.removesuffix(others).replace(" and ", ", ").split(", ") == command
        assert {*command} <= {*map(str, paths)}
        assert len(command) == 3
    assert "so a purge cannot look for the words in them. " in purge.errors


COMMANDS = (("ask", "-c", "hi"), ("personas",), ("log",), ("search", _WORDS), ("context",), ("memory",))


def test_one_refused_persona_does_not_stop_another(home: Home) -> None:
    with refused(home.path / "personas" / "frodo"):
        outcome = run(home, "ask", "-c", "hi")
    assert (outcome.code, outcome.errors) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["personas/frodo", "backups"])
def test_one_refused_folder_stops_no_other_work(home: Home, name: str) -> None:
    export = ("export", "--all", str(home.path.parent / "out"))
    with refused(home.path / name):
        for words in (*COMMANDS, export):
            outcome = run(home, *words)
            assert (words, outcome.code, outcome.errors.count("bug")) == (words, 0, 0), outcome.errors


@pytest.mark.parametrize(
    "name", ["personas/frodo", "personas/frodo/docs", "personas/chorus/sessions", "personas/chorus/sessions/*"]
)
def test_a_purge_stops_at_texts_that_it_cannot_look_into(home: Home, name: str) -> None:
    (path,) = home.path.glob(name)
    with refused(path):
        outcome = run(home, "purge", "search", _WORDS, "--yes")
    assert (outcome.code, outcome.output) == (1, "")
    told = f"{path} cannot be read, so a purge cannot look for the words in it. Give yourself access with: chmod "
    assert outcome.errors.startswith(told)
    assert home.said() == [_WORDS]


NEEDED = {
    ("ask", "-c", "hi"): ("personas", "personas/chorus", "state", "."),
    ("purge", "search", _WORDS, "--dry-run"): ("backups",),
    ("backup",): ("personas/frodo", "personas/chorus/sessions", "backups", "attachments", "attachments/ab"),
}


@pytest.mark.parametrize(("words", "name"), [(words, name) for words, names in NEEDED.items() for name in names])
def test_a_refused_folder_that_is_needed_is_a_sentence(home: Home, words: tuple[str, ...], name: str) -> None:
    path = home.path / name
    path.mkdir(parents=True, exist_ok=True)
    with refused(path):
        outcome = run(home, *words)
    assert (outcome.code, outcome.output) == (1, "")
    assert str(path) in outcome.errors
    assert "bug" not in outcome.errors
    assert words[0] != "purge" or outcome.errors.endswith(f"access with: chmod -R u+rwX {path}\n")


def test_a_folder_in_place_of_the_log_is_told_of_and_no_salvage_offered(home: Home) -> None:
    log = home.path / "chorus.db"
    log.unlink()
    log.mkdir()
    told = f"{log} cannot be opened: it is a folder. Move it away; then chorus restore FILE restores a "
    assert (wrong(home)["log"]["mend"], wrong(home)["log"]["sentence"]) == (None, f"{told}backup.")
    outcome = run(home, "ask", "-c", "hi")
    assert (outcome.code, outcome.errors) == (1, f"{told}backup.\n")


@pytest.mark.parametrize(
    ("name", "mode", "subject", "told"),
    [
        ("chorus.db", 0, "log", "cannot be read."),
        ("chorus.db", 0o400, "home", "cannot be written, so nothing can be stored."),
        ("personas/chorus/sessions/*.json", 0, "sessions", "cannot be read: Permission denied."),
    ],
)
def test_a_refused_file_is_named_and_no_repair_offered(
    home: Home, name: str, mode: int, subject: str, told: str
) -> None:
    (path,) = home.path.glob(name)
    with refused(path, mode):
        found = wrong(home)
    assert found[subject]["mend"] is None
    assert found[subject]["sentence"].endswith(f"{path} {told} Give yourself access with: chmod 600 {path}")
    assert found.keys() & {"home", "log", "sessions"} == {subject}


def test_a_folder_in_place_of_a_session_is_not_replaced(home: Home) -> None:
    (session,) = (home.path / "personas" / "chorus" / "sessions").glob("*.json")
    session.unlink()
    session.mkdir()
    found = wrong(home)["sessions"]
    assert found["mend"] is None
    assert str(session) in found["sentence"]
    session.rmdir()
    assert "sessions" not in wrong(home), "The log has the session."


@pytest.mark.parametrize("name", ["frodo", "frodo/system.jsonc"])
def test_the_list_of_personas_has_the_reason_in_place_of_a_description(home: Home, name: str) -> None:
    with refused(home.path / "personas" / name):
        outcome, printed = run(home, "ask", "/persona"), run(home, "personas")
    assert "Reviewer" in printed.output
    assert "frodo/system.jsonc cannot be read: Permission denied" in printed.errors
    [row] = [line for line in outcome.output.splitlines() if "frodo" in line]
    assert row.split("never")[1].strip() == ("system.jsonc cannot be read: Permission denied; Chorus ignores this file")


def test_documents_that_cannot_be_read_are_told_of(home: Home) -> None:
    folder = home.path / "personas" / "frodo" / "docs"
    with refused(folder):
        outcome = run(home, "ask", "--persona", "frodo", "hi")
    told = f"{folder} cannot be read, so the documents are left out. Give yourself access with: chmod -R u+rwX {folder}"
    assert (outcome.code, outcome.errors.splitlines()[0]) == (0, told)


def test_a_document_that_lies_out_of_reach_leaves_the_others(home: Home) -> None:
    folder = home.path / "personas" / "frodo" / "docs"
    link, closed = folder / "bad.md", home.path / "closed"
    (folder / "folder.md").mkdir(parents=True)
    closed.mkdir()
    link.symlink_to(closed / "bad.md")
    (folder / "a.md").write_text("One ring.")
    with refused(closed):
        outcome = run(home, "ask", "--persona", "frodo", "hi")
        context = run(home, "context", "--persona", "frodo", "--json")
    assert outcome.errors.splitlines()[0] == f"{link} is left out: Permission denied."
    assert "folder.md" not in outcome.errors
    assert "a.md" in context.output


def test_a_sentence_about_a_refusal_has_the_command_that_helps(home: Home) -> None:
    sessions = home.path / "personas" / "chorus" / "sessions"
    (session,) = sessions.glob("*.json")
    with refused(session):
        outcome = run(home, "ask", f"/context show {session.stem}")
    assert outcome.output.endswith(f"Permission denied. Give yourself access with: chmod 600 {session}\n")
    with refused(sessions, 0o500):
        outcome = run(home, "ask", "/context save")
    assert outcome.errors.endswith(f"Nothing was saved. Give yourself access with: chmod -R u+rwX {sessions}\n")


def test_where_permissions_are_not_at_fault_no_command_is_advised(tmp_path: Path) -> None:
    cause = PermissionError(errno.EPERM, "Operation not permitted", str(tmp_path / "new"))
    error = HomeError("It cannot be written.")
    error.__cause__ = cause
    assert advised(error) == "It cannot be written."


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.ELOOP, errno.EMFILE])
def test_nothing_but_a_refusal_is_mended_with_permissions(number: int) -> None:
    assert (
        sentence(OSError(number, os.strerror(number), "/a/file")) == f"/a/file cannot be used: {os.strerror(number)}."
    )
