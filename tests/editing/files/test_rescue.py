"""The last resort keeps text when the database does not, wherever it still can."""

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


def in_temporary_folder(folder: Path) -> str:
    """Return the name of a file there with texts of the home with this folder."""
    return NAME.replace(".", f"-{home_mark(folder)}.")


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


def test_a_folder_that_cannot_be_made_gives_way_to_the_temporary_one(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    (tmp_path / "state").write_text("a file where the folder should be")
    said = rescued_by_another_process(tmp_path / "state" / "rescue", tmp_path / "temporary", "roomy")
    assert said == str(tmp_path / "temporary" / in_temporary_folder(tmp_path / "state" / "rescue"))
    assert records(Path(said)) == [{"content": "kept"}]


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    (tmp_path / "rescue").mkdir()
    (tmp_path / "rescue" / NAME).symlink_to(tmp_path / "somebody elses")
    said = rescued_by_another_process(tmp_path / "rescue", tmp_path / "temporary", "roomy")
    assert said == str(tmp_path / "temporary" / in_temporary_folder(tmp_path / "rescue"))
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
