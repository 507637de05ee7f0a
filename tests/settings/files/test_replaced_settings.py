"""The whole text of a settings file, replaced at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import JsoncError, SettingsError
from chorus_cli.settings.files import change_key, held, read_text
from tests.settings.files.frodos_settings import DATA

if TYPE_CHECKING:
    from pathlib import Path


def replace_text(path: Path, expected: str, text: str) -> bool:
    """Replace the whole text if it still is ``expected``, and return whether it was."""
    with held(path) as file:
        if file.text != expected:
            return False
        file.replace(text)
    return True


def test_a_whole_text_is_replaced_and_the_one_before_is_kept(file: Path) -> None:
    assert read_text(file).encode() == DATA
    assert replace_text(file, read_text(file), '{ "clock": true }\r\n')
    assert file.read_bytes() == b'{ "clock": true }\r\n'
    assert file.with_name("system.jsonc.bak").read_bytes() == DATA


def test_a_text_that_was_changed_since_is_not_replaced(file: Path) -> None:
    opened = read_text(file)
    change_key(file, "context_hours", 48)
    changed = file.read_bytes()
    assert not replace_text(file, opened, "{}")
    assert file.read_bytes() == changed


def test_the_same_whole_text_is_not_written(file: Path) -> None:
    before = file.stat()
    assert replace_text(file, read_text(file), read_text(file))
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_missing_file_is_replaced_as_an_empty_one(tmp_path: Path) -> None:
    file = tmp_path / "system.jsonc"
    assert read_text(file) == ""
    assert replace_text(file, "", "{}")
    assert file.read_text() == "{}"
    assert not replace_text(file, "", "[]")


def test_a_broken_file_is_replaced_like_any_other(file: Path) -> None:
    file.write_text('{ "clock": }')
    assert replace_text(file, '{ "clock": }', '{ "clock": true }')
    assert file.with_name("system.jsonc.bak").read_text() == '{ "clock": }'


def test_a_whole_text_keeps_the_link_and_the_privacy_of_its_file(tmp_path: Path, file: Path) -> None:
    link = tmp_path / "link.jsonc"
    link.symlink_to(file.name)
    file.chmod(0o700)
    assert replace_text(link, read_text(link), "{}")
    assert link.is_symlink()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("{}", 0o700)


def test_what_cannot_be_read_or_replaced_is_told_in_a_sentence(tmp_path: Path, file: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot be read: Is a directory\."):
        read_text(tmp_path)
    with pytest.raises(SettingsError, match=r"cannot be changed: No such file or directory\. It is left as it was\."):
        replace_text(tmp_path / "missing" / "system.jsonc", "", "{}")
    file.write_bytes(b'{"name": "\xe9"}')
    with pytest.raises(JsoncError, match="expected text in UTF-8"):
        read_text(file)
