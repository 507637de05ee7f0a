"""The bytes of attachments: stored once, private, and checked when they are read."""

from __future__ import annotations

import stat
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from chorus_cli.attachments.files.attachments import path_of, read, store
from chorus_cli.core.errors import AttachmentError

if TYPE_CHECKING:
    from pathlib import Path

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
DIGEST = sha256(PICTURE).hexdigest()


@pytest.mark.parametrize("data", [PICTURE, b"", bytes(20_000_000)], ids=["picture", "empty", "20 MB"])
def test_bytes_come_back_as_they_were_stored(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path / "attachments", store(tmp_path / "attachments", data)) == data


def test_the_same_bytes_are_stored_once(tmp_path: Path) -> None:
    assert store(tmp_path, PICTURE) == DIGEST
    first = path_of(tmp_path, DIGEST).stat()
    assert store(tmp_path, PICTURE) == DIGEST
    assert path_of(tmp_path, DIGEST).stat().st_ino == first.st_ino
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [path_of(tmp_path, DIGEST)]


def test_only_the_owner_may_read_them(tmp_path: Path) -> None:
    folder = tmp_path / "attachments"
    path = path_of(folder, store(folder, PICTURE))
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (folder, path.parent, path)]
    assert modes == [0o700, 0o700, 0o600]


def test_a_file_that_was_cut_short_is_stored_again(tmp_path: Path) -> None:
    path = path_of(tmp_path, store(tmp_path, PICTURE))
    path.write_bytes(PICTURE[:10])
    store(tmp_path, PICTURE)
    assert read(tmp_path, DIGEST) == PICTURE


def test_changed_bytes_are_told_as_damage(tmp_path: Path) -> None:
    path_of(tmp_path, store(tmp_path, PICTURE)).write_bytes(PICTURE[::-1])
    with pytest.raises(AttachmentError, match=r"is damaged: its bytes have changed since it was stored\.$"):
        read(tmp_path, DIGEST)


def test_bytes_that_are_gone_are_told(tmp_path: Path) -> None:
    with pytest.raises(AttachmentError, match=r"is gone, and with it an attachment\.$"):
        read(tmp_path, DIGEST)


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, DIGEST[:-1]])
def test_a_path_is_made_of_a_digest_only(tmp_path: Path, digest: str) -> None:
    with pytest.raises(AttachmentError, match="is no SHA-256"):
        read(tmp_path, digest)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AttachmentError, match=r"^The attachment cannot be kept in .*: Not a directory\.$"):
        store(tmp_path / "file" / "attachments", PICTURE)
