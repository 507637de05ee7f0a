"""Texts that the database refused are kept wherever they can be, told at the next start, and brought in or deleted."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from chorus_cli.editing.files import rescued_files
from chorus_cli.storage.files import home_mark, rescue
from tests.storage.unsynced import confirm_folders, confirmed_syncs
from tests.terminal.driver import Home

NOW = datetime(2026, 2, 12, 14, 30, 5, tzinfo=UTC)
NAME = "rescue-20260212T143005Z.jsonl"
RECORD = {"persona": "frodo", "role": "user", "content": 'First line\nsecond "line" — é 😀', "error": "No room."}

_ELSEWHERE = """
import pathlib, resource, sys
from datetime import datetime
from chorus_cli.storage.files import rescue
if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
print(rescue(pathlib.Path(sys.argv[1]), datetime.fromisoformat("2026-02-12T14:30:05Z"), {"content": "kept"}))
"""


def records(path: Path | None) -> list[Mapping[str, str]]:
    assert path is not None
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def rescued_by_another_process(folder: Path, temporary: Path, disk: str) -> str:
    """Rescue in a process with a temporary folder of its own, on a disk that has room or none; return what it says."""
    command = [sys.executable, "-c", _ELSEWHERE, str(folder), disk]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=30)
    assert ended.stderr == ""
    return ended.stdout.strip()


def test_text_is_kept_in_a_file_named_by_the_time_in_utc_that_only_its_owner_may_read(tmp_path: Path) -> None:
    path = rescue(tmp_path / "state" / "rescue", NOW.astimezone(ZoneInfo("Asia/Tokyo")), RECORD)
    assert path == tmp_path / "state" / "rescue" / NAME
    assert records(path) == [RECORD]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_it_is_synced_with_the_names_of_its_file_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    confirmed = confirmed_syncs(monkeypatch)
    path = rescue(tmp_path / "rescue", NOW, RECORD)
    assert path is not None
    assert confirmed.has_all(path)
    assert confirmed.has_name(path.parent)


@pytest.mark.parametrize("times", [0, 1])
def test_it_is_kept_where_no_name_can_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    confirm_folders(monkeypatch, times)
    path = rescue(tmp_path / "rescue", NOW, RECORD)
    assert path == tmp_path / "rescue" / NAME
    assert records(path) == [RECORD]


def test_a_second_text_of_the_same_moment_joins_the_first(tmp_path: Path) -> None:
    paths = {rescue(tmp_path, NOW, {"content": content}) for content in ("one", "two", "three")}
    (path,) = paths
    assert records(path) == [{"content": "one"}, {"content": "two"}, {"content": "three"}]


@pytest.mark.parametrize("content", ["\ud83d", "a\ud800b", "\udce9t\udce9"])
def test_even_what_is_not_unicode_is_kept_and_can_be_read_back(tmp_path: Path, content: str) -> None:
    assert records(rescue(tmp_path, NOW, {"content": content})) == [{"content": content}]


@pytest.mark.parametrize("is_link", [False, True], ids=["the folder cannot be made", "a link is not followed"])
def test_the_temporary_folder_takes_what_its_own_folder_does_not(tmp_path: Path, *, is_link: bool) -> None:
    folder, temporary = tmp_path / "state" / "rescue", tmp_path / "temporary"
    temporary.mkdir()
    if is_link:
        folder.mkdir(parents=True)
        (folder / NAME).symlink_to(tmp_path / "somebody elses")
    else:
        (tmp_path / "state").write_text("a file where the folder should be")
    said = rescued_by_another_process(folder, temporary, "roomy")
    assert said == str(temporary / NAME.replace(".", f"-{home_mark(folder)}."))
    assert records(Path(said)) == [{"content": "kept"}]
    assert not (tmp_path / "somebody elses").exists()


def test_an_attempt_without_room_says_so_and_leaves_the_texts_that_are_there_and_no_empty_file(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    assert rescued_by_another_process(tmp_path / "rescue", tmp_path / "temporary", "full") == "None"
    assert [*(tmp_path / "rescue").iterdir(), *(tmp_path / "temporary").iterdir()] == []
    kept = rescue(tmp_path / "rescue", NOW, RECORD)
    assert rescued_by_another_process(tmp_path / "rescue", tmp_path / "temporary", "full") == "None"
    assert records(kept) == [RECORD]


def test_texts_in_the_temporary_folder_are_found_by_their_own_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = [tmp_path / name / "rescue" for name in ("one", "two")]
    for folder in homes:
        folder.parent.mkdir()
        folder.write_text("a file where the folder should be")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    kept = [rescue(folder, NOW, RECORD | {"content": folder.parent.name}) for folder in homes]
    (tmp_path / "temporary" / NAME).write_bytes((kept[0] or tmp_path).read_bytes())
    for folder, path in zip(homes, kept, strict=True):
        found = rescued_files.find(folder)
        assert (found.read, [each.text.content for each in found.texts]) == ((path,), [folder.parent.name])
        # Named alike again, they are stored once even if an attempt to store them was interrupted.
        assert rescued_files.find(folder) == found


# In the real program

TEXTS = [("user", "A long\nletter."), ("assistant", "A reply \ud83d.")]


class HomeAlone(Home):
    """A home whose programs have a folder of their own for temporary files, where rescued texts are looked for too."""

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "TMPDIR": str(self.path.parent)}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = HomeAlone(tmp_path / "home")
    assert home.run("ask", "-c", "hello").code == 0
    folder = home.path / "state" / "rescue"
    folder.mkdir()
    lines = [json.dumps({"persona": "chorus", "role": role, "content": content}) for role, content in TEXTS]
    (folder / NAME).write_text("\n".join(lines) + "\n")
    return home


def test_they_are_brought_into_the_log_and_into_no_context(home: Home) -> None:
    assert "A long letter." in home.run("ask", "/rescue").output
    outcome = home.run("ask", "/rescue keep")
    assert outcome.output == "In the log now:\n2 texts of chorus in thread #2, which is closed; /thread 2 opens it.\n"
    found = home.sql("SELECT role, content, timestamp FROM messages WHERE thread_id = 2 ORDER BY id")
    assert found == [
        ("user", "A long\nletter.", "2026-02-12T14:30:05.000000Z"),
        ("assistant", "A reply \ufffd.", "2026-02-12T14:30:05.000000Z"),
    ]
    assert [*(home.path / "state" / "rescue").iterdir()] == []
    assert home.seen()[0] == "hello"
    assert home.run("ask", "/rescue").output == "No text waits to be stored or sent.\n"


def test_a_message_that_was_not_sent_is_shown_and_brought_into_the_log_with_them(home: Home) -> None:
    home.sql(
        "INSERT INTO outbox(persona, role, content, is_sent, run, created_at) "
        "VALUES ('chorus', 'user', 'Unsaid', 0, '1-ab', '2026-02-12T15:00:00.000000Z')"
    )
    assert "Unsaid" in home.run("ask", "/rescue").output
    assert "3 texts of chorus in thread #2" in home.run("ask", "/rescue keep").output
    assert (home.said()[-1], home.unsent()) == ("Unsaid", [])


def test_the_next_chat_tells_of_them_and_deletes_them_only_with_consent(home: Home) -> None:
    assert "2 texts" in json.loads(home.run("doctor", "--json").output)["findings"][-2]["sentence"]
    assert home.run("ask", "/rescue discard").code == 1
    with home.chat() as terminal:
        terminal.await_text("/rescue shows 2 texts that were not sent or not stored in an earlier run.")
        terminal.say("/rescue discard")
        terminal.await_text("for good?")
        terminal.say("y")
        terminal.await_text("Deleted 2 texts.")
    assert ([*(home.path / "state" / "rescue").iterdir()], home.unsent()) == ([], [])
