"""Reading files in batches: with folders, attachments, and files that are damaged in the middle."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chorus_cli.attachments.files import attachments
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.reading import batches
from chorus_cli.imports.files.source import Format, Opening, Source
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, ForeignMessage, Skipped
from chorus_cli.log.rules.messages import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

PHOTO, LOST = ForeignFile("a.png", "image/png", data=b"photo"), ForeignFile("b.png", entry="b")
TALK = ForeignConversation("fake", "c1", "", (ForeignMessage("m1", None, Role.USER, "Look", files=(PHOTO, LOST)),), ())


def talks(path: Path) -> Iterator[ForeignConversation | Skipped]:
    """Yield a talk for each letter of a file; it is skipped at a question mark, and damaged at an exclamation mark."""
    for sign in path.read_text(encoding="utf-8"):
        if sign == "!":
            raise ImportFormatError("It is damaged.")
        yield Skipped("nothing") if sign == "?" else TALK


@pytest.fixture
def closed() -> list[Path]:
    return []


@pytest.fixture
def formats(closed: list[Path]) -> tuple[Format, ...]:
    def opened(opening: Opening) -> Source | None:
        if not opening.beginning.startswith(b"x"):
            return None
        return Source(partial(talks, opening.path), close=partial(closed.append, opening.path))

    return (Format("fake", "a fake", "a file", opened),)


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_what_came_before_the_damage_is_read(tmp_path: Path, formats: tuple[Format, ...], closed: list[Path]) -> None:
    path = written(tmp_path, a="xx!x") / "a"
    reading = batches([path], None, formats=formats)
    assert len(next(reading).read) == 2
    with pytest.raises(ImportFormatError, match="damaged"):
        next(reading)
    assert closed == [path]


def test_in_a_folder_damage_and_other_files_are_counted(tmp_path: Path, formats: tuple[Format, ...]) -> None:
    written(tmp_path, a="x!x", b="notes", c="x?x")
    [batch] = batches([tmp_path], None, formats=formats)
    assert len(batch.read) == 3
    assert batch.skipped == {
        "file that cannot be read to its end (It is damaged.)": 1,
        "file of no known format": 1,
        "nothing": 1,
    }


def test_bytes_are_stored_and_those_that_are_missing_named(tmp_path: Path, formats: tuple[Format, ...]) -> None:
    [batch] = batches([written(tmp_path, a="x") / "a"], tmp_path / "kept", formats=formats)
    [(_, conversation, attached)] = batch.read
    assert conversation.messages[0].content == "Look\n\n[attachment: b.png, not in the export]"
    assert batch.lost_attachments == 1
    [photo] = attached["m1"]
    assert (photo.name, photo.size_bytes) == ("a.png", 5)
    assert attachments.read(tmp_path / "kept", photo.sha256) == b"photo"


def test_a_preview_stores_nothing(tmp_path: Path, formats: tuple[Format, ...]) -> None:
    [batch] = batches([written(tmp_path, a="x") / "a"], None, formats=formats)
    assert batch.read[0].conversation == TALK
    assert [len(each) for each in batch.read[0].attachments.values()] == [1]
    assert batch.lost_attachments == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("name", ["nowhere", "/dev/null"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, formats: tuple[Format, ...], name: str) -> None:
    with pytest.raises(ImportFormatError, match=r"cannot be read|neither a file nor a folder"):
        next(batches([tmp_path / name], None, formats=formats))


@pytest.mark.parametrize("text", ["", "[]", " [ ]\n", "\ufeff{}"])
def test_an_export_without_anything_is_called_empty(tmp_path: Path, formats: tuple[Format, ...], text: str) -> None:
    with pytest.raises(ImportFormatError, match=r"a is empty: it holds no conversations\."):
        next(batches([written(tmp_path, a=text) / "a"], None, formats=formats))
