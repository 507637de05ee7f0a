"""Exports of JSON in archives, folders and files: found by content, read shard by shard and item by item."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import zipfile
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.reading import FORMATS, sources
from chorus_cli.imports.files.source import Opening, Source, archive, json_items
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Skipped
from tests.imports.rules.exports import (
    ANYTHING,
    chatgpt,
    chatgpt_node,
    check,
    claude,
    claude_message,
    said,
    source_of,
    web,
    web_message,
)

PICTURE = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_ab1"}
LOOK = {"content_type": "multimodal_text", "parts": ["look", PICTURE]}
CHATGPT = chatgpt(chatgpt_node("a", None, "user", LOOK), chatgpt_node("b", "a", "assistant", "I see."))
CLAUDE = claude(claude_message("a", None, "human", "hello"))
OTHER, EMPTY = ("", "entry that is not a conversation"), ("", "conversation without messages")
WEB = web(web_message("a", None, "user", "hello"))


def zipped(path: Path, files: dict[str, Any], packing: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", packing) as into:
        for name, content in files.items():
            into.writestr(name, content if isinstance(content, (bytes, str)) else json.dumps(content))
    return path


def read(path: Path) -> list[ForeignConversation | str]:
    with closing(source_of(path)) as source:
        return [item.reason if isinstance(item, Skipped) else item for item in source.conversations()]


def source_and_file(path: Path) -> tuple[Source, ForeignFile]:
    """Open an export of one conversation; return it with the first file of its first message."""
    source = source_of(path)
    (found,) = source.conversations()
    assert isinstance(found, ForeignConversation)
    assert said(found) == [("user", "look"), ("assistant", "I see.")]
    return source, found.messages[0].files[0]


def sources_and_keys(path: Path) -> list[tuple[str, str]]:
    return [(item.source, item.key) if isinstance(item, ForeignConversation) else ("", item) for item in read(path)]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"conversations.json": [CHATGPT], "chat.html": "<html>", "user.json": {}}, [("chatgpt", "talk-1")]),
        ({"export/conversations.json": [CHATGPT]}, [("chatgpt", "talk-1")]),
        (
            {
                "conversations-010.json": [{**CHATGPT, "conversation_id": "third"}],
                "conversations-002.json": [{**CHATGPT, "conversation_id": "second"}],
                "conversations-000.json": [],
                "conversations-001.json": [{**CHATGPT, "conversation_id": "first"}],
                "export_manifest.json": {},
            },
            [("chatgpt", "first"), ("chatgpt", "second"), ("chatgpt", "third")],
        ),
        ({"conversations.json": [CLAUDE], "projects.json": [], "users.json": []}, [("claude.ai", "talk-2")]),
        ({"chats.json": [WEB]}, [("open-webui", "talk-3")]),
        ({"conversations.json": [None, {}, CHATGPT]}, [OTHER, OTHER, ("chatgpt", "talk-1")]),
        ({"conversations.json": [CHATGPT, {"mapping": {}}]}, [("chatgpt", "talk-1"), EMPTY]),
    ],
)  # fmt: skip
def test_an_archive_is_recognised_by_its_conversations(
    tmp_path: Path, files: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert sources_and_keys(zipped(tmp_path / "named.like.nothing", files)) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["named.like.nothing"]


def test_each_file_of_an_archive_may_be_a_session(tmp_path: Path) -> None:
    talks = {f"{name}.json": [{"role": "user", "content": name}] for name in ("one", "two")}
    found = [each for each in read(zipped(tmp_path / "talks.zip", talks)) if isinstance(each, ForeignConversation)]
    assert [(each.source, each.title) for each in found] == [("messages", "one"), ("messages", "two")]


def test_pictures_are_found_by_their_ids(tmp_path: Path) -> None:
    files = {"conversations.json": [CHATGPT], "user-1/file_ab1-pot.png": b"PNG", "file_ab12.png": b"another"}
    source, file = source_and_file(zipped(tmp_path / "export.zip", files))
    assert (source.bytes_of(file), source.bytes_of(replace(file, entry="file_zz"))) == (b"PNG", None)
    source.close()


def test_an_unpacked_folder_is_one_export(tmp_path: Path) -> None:
    path = tmp_path / "conversations-000.json"
    path.write_text(json.dumps([CHATGPT]))
    (tmp_path / "file_ab1.png").write_bytes(b"PNG")
    source, file = source_and_file(tmp_path)
    assert source.bytes_of(file) == source_of(path).bytes_of(file) == b"PNG"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "conversations.json").write_text(json.dumps([CHATGPT]))
    (folder / "file_ab1.png").symlink_to(tmp_path / "secret.txt")
    source, file = source_and_file(folder)
    assert source.bytes_of(file) is None


@pytest.mark.parametrize("name", ["../../evil/conversations.json", "/etc/conversations.json", "C:\\conversations.json"])
def test_paths_in_archives_lead_nowhere(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    path = zipped(folder / "export.zip", {name: [CHATGPT], "../file_ab1.png": b"PNG"})
    if "\\" in name:
        assert [item for item in sources_and_keys(path) if item[0]] == [("chatgpt", "talk-1")]
    else:
        assert sources_and_keys(path) == [("chatgpt", "talk-1")]
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["a", "b", "export.zip"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[" + b" " * 30_000_000 + b"{}]", "unpacks to more than 250 times its size"),
        (b"[]", "it holds no conversations"),
    ],
)
def test_an_archive_from_which_nothing_can_be_read_is_refused_with_the_reason(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = zipped(tmp_path / "export.zip", {"conversations.json": content})
    with pytest.raises(ImportFormatError, match=reason):
        list(sources(path))


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    bomb = b"[" + b" " * 30_000_000 + json.dumps(CHATGPT).encode() + b"]"
    path = zipped(tmp_path / "export.zip", {"conversations-000.json": [CHATGPT], "conversations-001.json": bomb})
    first, second = sources_and_keys(path)
    assert first == ("chatgpt", "talk-1")
    assert "unpacks to more than 250 times its size" in second[1]


def test_an_archive_beyond_a_limit_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "export.zip", {"conversations.json": [CHATGPT], "a": b"", "b": b""})
    with pytest.raises(ImportFormatError, match="more than 2 files"):
        archive(path, ExitStack(), most_entries=2)
    with pytest.raises(ImportFormatError, match="larger than 100 bytes"):
        archive(path, ExitStack(), most_bytes=100)


def test_a_damaged_shard_does_not_keep_the_others_away(tmp_path: Path) -> None:
    keys = ("first", "x" * 40, "third")
    shards = {f"conversations-00{n}.json": [{**CHATGPT, "conversation_id": key}] for n, key in enumerate(keys)}
    path = zipped(tmp_path / "export.zip", shards, zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"x" * 40, b"y" * 40))
    found = sources_and_keys(path)
    assert (found[0], found[-1]) == (("chatgpt", "first"), ("chatgpt", "third"))
    assert ("", "file that is damaged") in found


def test_a_cut_or_locked_archive_is_a_sentence(tmp_path: Path) -> None:
    path = zipped(tmp_path / "export.zip", {"conversations.json": [CHATGPT]})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ImportFormatError, match="damaged archive"):
        list(sources(path))
    # The first flag of an entry says that it is encrypted.
    at = whole.index(b"PK\x01\x02") + 8
    path.write_bytes(whole[:at] + struct.pack("<H", 1) + whole[at + 2 :])
    with pytest.raises(ImportFormatError, match="password"):
        list(sources(path))


def test_other_json_and_other_archives_have_an_unknown_format(tmp_path: Path) -> None:
    others: list[dict[str, Any]] = [{"a.txt": b"x"}, {"conversations.json": [{"a": 1}]}, {"conversations.json": b"x"}]
    for number, files in enumerate(others):
        with pytest.raises(ImportFormatError, match="an unknown format"):
            list(sources(zipped(tmp_path / f"{number}.zip", files)))
    path = tmp_path / "a.json"
    for text in ('[{"a": 1}]', "[1, 2", '{"mapping": 3}', "[[[["):
        path.write_text(text)
        with pytest.raises(ImportFormatError, match="an unknown format"):
            list(sources(path))


@given(st.sampled_from([b"", b"[", b"{", b"PK\x03\x04", b'[{"mapping": {"a": {"message": ']), st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_in_a_sentence(beginning: bytes, rest: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(beginning + rest)
        with suppress(ImportFormatError):
            for each in read(path):
                if isinstance(each, ForeignConversation):
                    check(each)
                else:
                    assert each


@pytest.mark.parametrize(("name", "conversation"), [("chatgpt", CHATGPT), ("claude.ai", CLAUDE), ("open-webui", WEB)])
def test_a_conversation_has_one_format(tmp_path: Path, name: str, conversation: dict[str, Any]) -> None:
    path = tmp_path / "file.txt"
    for text in ("\ufeff \n" + json.dumps([conversation], indent=4), json.dumps(conversation)):
        path.write_text(text, encoding="utf-8")
        assert [source for source, _ in sources_and_keys(path)] == [name]
    assert len([each for each in FORMATS if each.opened(Opening(path, path.read_bytes()))]) == 1


MEGABYTE = 1_000_000


class Endless(io.RawIOBase):
    """A file of repeated pieces, made while it is read."""

    def __init__(self, beginning: bytes, piece: bytes, pieces: int, end: bytes) -> None:
        self._left = pieces
        self._piece = piece
        self._end = end
        self._held = beginning

    def read(self, size: int = -1) -> bytes:
        while self._left and len(self._held) < size:
            self._held += self._piece
            self._left -= 1
        if not self._left:
            self._held, self._end = self._held + self._end, b""
        found, self._held = self._held[:size], self._held[size:]
        return found


def items_of(text: str | bytes, largest: int = MEGABYTE) -> list[object]:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return list(json_items(io.BytesIO(data), largest))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", []),
        (' [ {"a": 1} , {"b": [2]} ] \n', [{"a": 1}, {"b": [2]}]),
        ("\ufeff[1, 23]", [1, 23]),
        ('{"a": 1}', [{"a": 1}]),
        ('["tab\there"]', ["tab\there"]),
        ("[NaN]", None),
        (b'["\xff"]', ["\ufffd"]),
        ('["\\ud83d"]', ["\ud83d"]),
    ],
)
def test_items_are_read(text: str | bytes, expected: list[object] | None) -> None:
    assert expected in (items_of(text), None)


BROKEN, CUT = "too long or not valid JSON, with the rest of its file", "file that is cut off"
REST = "text after the end of the JSON in its file"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"a": 1}, {"b" 2}, {"c": 3}]', [{"a": 1}, BROKEN]),
        ("[oops, 7]", [BROKEN]),
        ("[[" * 50_000 + "]" * 100_000, [BROKEN]),
        ("[7, " + '{"a":' * 50_000 + "1" + "}" * 50_000 + ", 7]", [7, BROKEN]),
        (f"[{'9' * 5000}, 7]", [BROKEN]),
        ('[{"a": 1}, {"b": "cut of', [{"a": 1}, BROKEN]),
        ('[{"a": 1}', [{"a": 1}, CUT]),
        ('[{"a": 1}]\n[7]', [{"a": 1}, REST]),
        ('{"a": 1}\n{"b": 2}', [{"a": 1}, REST]),
        (f'[{{"a": "{"x" * 3 * MEGABYTE}"}}, 7]', [BROKEN]),
    ],
)
def test_what_is_read_ends_at_an_item_that_cannot_be_read(text: str, expected: list[object]) -> None:
    found = items_of(text)
    assert len(found) == len(expected)
    for item, wanted in zip(found, expected, strict=True):
        assert wanted == item or (isinstance(item, Skipped) and item.reason.endswith(str(wanted)))


def test_a_file_that_is_one_value_is_not_read_on_beyond_the_limit() -> None:
    file = Endless(b'{"a": "', b"x" * 100_000, 1_000, b'"}')
    (found,) = json_items(cast("IO[bytes]", file), MEGABYTE)
    assert isinstance(found, Skipped)
    assert len(file.read(MEGABYTE)) == MEGABYTE


@given(st.text('[]{}",\\: 1a\n', max_size=60))
def test_any_text_comes_to_an_end(text: str) -> None:
    assert len(items_of("[" + text)) <= 2 * len(text) + 2


@given(st.lists(ANYTHING), st.none() | st.integers(0, 3))
def test_items_are_those_of_the_parser(items: list[Any], indent: int | None) -> None:
    text = json.dumps(items, indent=indent)
    assert repr(items_of(text)) == repr(json.loads(text))


def test_items_of_any_length_are_found_across_the_pieces_that_are_read() -> None:
    items = [{"n": number, "text": "ü😀" * (number * 977 % 90_000)} for number in range(40)]
    assert items_of(json.dumps(items, ensure_ascii=False).encode()) == items


def test_memory_holds_an_item_and_not_the_file() -> None:
    file = Endless(b"[", b'{"a": "' + b"x" * 100_000 + b'"},', 1_000, b"7]")
    tracemalloc.start()
    try:
        for _ in json_items(cast("IO[bytes]", file), 2 * MEGABYTE):
            pass
        assert tracemalloc.get_traced_memory()[1] < 30 * MEGABYTE
    finally:
        tracemalloc.stop()
