"""SillyTavern's chats: a file each, or a folder of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.reading import sources
from chorus_cli.imports.rules.conversation import ForeignConversation, Skipped
from tests.imports.rules.exports import said

if TYPE_CHECKING:
    from pathlib import Path

HEADER = {"user_name": "Ann", "character_name": "Mara", "create_date": "2024-7-12@01h31m37s", "chat_metadata": {}}
GREETING = {"name": "Mara", "send_date": "July 12, 2024 1:31am", "mes": "Hello {{user}}."}


def written(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


def read(path: Path) -> list[ForeignConversation | str]:
    zone = ZoneInfo("Europe/Berlin")
    items = [
        item for source in sources(path, zone) if not isinstance(source, Skipped) for item in source.conversations()
    ]
    return [item.reason if isinstance(item, Skipped) else item for item in items]


def test_a_chat_is_named_after_its_file_and_has_local_times(tmp_path: Path) -> None:
    (found,) = read(written(tmp_path / "Mara - 2024.jsonl", "\ufeff" + json.dumps(HEADER), GREETING, "", "{broken"))
    assert isinstance(found, ForeignConversation)
    assert (found.title, said(found)) == ("Mara - 2024", [("assistant", "Hello Ann.")])
    assert found.messages[0].timestamp == datetime(2024, 7, 11, 23, 31, tzinfo=UTC)
    assert dict(found.skipped) == {"line that cannot be read": 1}


def test_a_folder_holds_many(tmp_path: Path) -> None:
    for name in "ab":
        written(tmp_path / f"{name}.jsonl", HEADER, GREETING)
    written(tmp_path / "c.jsonl", HEADER)
    first, second, third = read(tmp_path)
    assert isinstance(first, ForeignConversation)
    assert isinstance(second, ForeignConversation)
    assert first.key != second.key
    assert third == "conversation without messages"


@pytest.mark.parametrize("line", [{"user_name": "Ann"}, GREETING, "{", ["chat_metadata"]])
def test_other_lines_are_no_header(tmp_path: Path, line: object) -> None:
    with pytest.raises(ImportFormatError, match="no known format"):
        read(written(tmp_path / "a.jsonl", line, GREETING))


def test_a_header_may_be_longer_than_the_beginning(tmp_path: Path) -> None:
    header = {**HEADER, "chat_metadata": {"variables": "x" * 200_000}}
    assert len(read(written(tmp_path / "a.jsonl", header, GREETING))) == 1
