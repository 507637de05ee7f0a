"""Cards are read from pictures, JSON and archives, and put into pictures; hostile files are refused in one sentence."""

from __future__ import annotations

import base64
import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.cards import files as card_files
from chorus_cli.cards.rules.png import card_json, plain_picture, with_cards
from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError
from tests.cards.rules.made_cards import SIGNATURE, archive, card, chunk, picture, text_chunk

TEXT = json.dumps(card(3)).encode()
ICON = picture()

KINDS = {
    "card.png": (picture(text_chunk("chara", card(2)), text_chunk("ccv3", card(3))), {"card.json", "card.png"}),
    "a picture without suffix": (picture(text_chunk("ccv3", card(3))), {"card.json", "card.png"}),
    "card.json": (TEXT, {"card.json"}),
    "marked.json": (b"\xef\xbb\xbf \n" + TEXT, {"card.json"}),
    "card.charx": (archive({"assets/icon/main.png": ICON, "card.json": TEXT}), {"card.json", "card.charx"}),
}


@pytest.mark.parametrize(("name", "data", "kept"), [(name, *parts) for name, parts in KINDS.items()], ids=KINDS)
def test_a_card_is_known_by_its_content(tmp_path: Path, name: str, data: bytes, kept: set[str]) -> None:
    (tmp_path / name).write_bytes(data)
    found = card_files.read(tmp_path / name)
    assert found is not None
    assert (found.name, found.card.name, found.card.version) == (name, "Mira", 3)
    assert {*found.kept} == kept
    assert json.loads(found.kept["card.json"].decode("utf-8-sig")) == card(3)


OTHERS = {
    "empty": b"",
    "text": b"hello",
    "a conversation": b'{"title": "x", "mapping": {}}',
    "an array": b"[" + TEXT + b"]",
    "broken JSON": b'{"spec": "chara_card_v2"',
    "deep": b'{"a":' * 100_000,
    "an archive": archive({"conversations.json": b"[]"}),
    "a card in a folder of an archive": archive({"x/card.json": TEXT}),
}


@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS)
def test_a_file_of_another_kind_is_no_card(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "file").write_bytes(data)
    assert card_files.read(tmp_path / "file") is None
    assert card_files.read(tmp_path) is None


BOMB = archive({"card.json": b" " * (limits.CARD_JSON.most + 1)})
HOSTILE = {
    "a picture without a card": (picture(), "This picture holds no character card."),
    "a picture that is cut off": (picture(text_chunk("chara", card(2)))[:80], "This picture holds no character card."),
    "a card of a wrong type": (picture(text_chunk("chara", [1])), "The JSON in it is not a character card."),
    "no base64": (picture(chunk(b"tEXt", b"chara\0no base64!")), "The card in this picture is damaged."),
    "another kind of text": (picture(chunk(b"zTXt", b"chara\0\0x")), "This picture holds no character card."),
    "a wrong checksum": (picture(chunk(b"tEXt", b"chara\0e30=", crc=7)), "The card in this picture is damaged."),
    "a nested card": (archive({"card.json": b"[" * 100_000}), "The card is not valid JSON: "),
    "a bomb": (BOMB, "The card is larger than 20 MB."),
}


@pytest.mark.parametrize(("data", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_a_damaged_card_is_refused_in_one_sentence(tmp_path: Path, data: bytes, sentence: str) -> None:
    path = tmp_path / "card"
    path.write_bytes(data)
    with pytest.raises(ImportFormatError) as refused:
        card_files.read(path)
    assert str(refused.value).startswith(f"{path}: {sentence}")


def test_an_archive_that_is_encrypted_or_cut_off_is_refused(tmp_path: Path) -> None:
    data = bytearray(archive({"card.json": TEXT}))
    for sign, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(sign) + offset] |= 1
    for each in (data, KINDS["card.charx"][0][:200]):
        (tmp_path / "card.charx").write_bytes(each)
        with pytest.raises(ImportFormatError, match="cannot be read"):
            card_files.read(tmp_path / "card.charx")


def test_what_is_no_file_is_no_card(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert [card_files.read(tmp_path / name) for name in ("none.png", "pipe", "")] == [None, None, None]


def test_the_picture_of_a_persona_is_that_of_its_card(tmp_path: Path) -> None:
    for slug, name, data in (
        ("a", "card.png", ICON),
        ("b", "card.charx", KINDS["card.charx"][0]),
        ("c", "card.charx", b"broken"),
        ("d", "card.charx", archive({"card.json": TEXT})),
        ("e", "card.charx", archive({"card.json": TEXT, "assets/icon/main.png": b"GIF"})),
    ):
        (tmp_path / slug).mkdir()
        (tmp_path / slug / name).write_bytes(data)
    found = [card_files.picture(tmp_path, slug, "Mira") == ICON for slug in "abcde"]
    assert found == [True, True, False, False, False]


SPACED = b"chara\0" + base64.encodebytes(b"x" * 200)
CHUNKS = {
    **{keyword: ([text_chunk(keyword, 1)], b"1") for keyword in ("chara", "ccv3", "CHARA", "Ccv3")},
    "the newer version": ([text_chunk("chara", 2), text_chunk("ccv3", 3)], b"3"),
    "the newer version before the older one": ([text_chunk("ccv3", 3), text_chunk("chara", 2)], b"3"),
    "line breaks in base64": ([chunk(b"tEXt", SPACED)], b"x" * 200),
    "none": ([chunk(b"tEXt", b"Software\0x"), chunk(b"tEXt", b"chara-ext-asset_:1\0x")], None),
}


@pytest.mark.parametrize(("chunks", "found"), CHUNKS.values(), ids=CHUNKS)
def test_the_card_of_a_picture_is_found_by_its_keyword(chunks: list[bytes], found: bytes | None) -> None:
    assert card_json(picture(*chunks)) == found


def card_or_none(data: bytes) -> bytes | None:
    """The card of a picture, or None for a damaged one; nothing else may be raised."""
    with suppress(ImportFormatError):
        return card_json(data)
    return None


@given(st.binary(min_size=1, max_size=80), st.integers(0, 200))
def test_any_bytes_are_read(junk: bytes, position: int) -> None:
    whole = picture(text_chunk("chara", 1))
    position = min(position, len(whole))
    assert card_or_none(whole[:position] + junk + whole[position:]) in {None, b"1"}
    assert card_or_none(SIGNATURE + junk) is None


def test_a_card_takes_the_place_of_those_before_and_leaves_the_picture() -> None:
    other = chunk(b"tEXt", b"Software\0x")
    before = picture(text_chunk("chara", 1), other, text_chunk("ccv3", 2))
    after = with_cards(before, {"chara": b"one", "ccv3": b"two"})
    assert card_json(after) == b"two"
    assert after == picture(
        other,
        chunk(b"tEXt", b"chara\0" + base64.b64encode(b"one")),
        chunk(b"tEXt", b"ccv3\0" + base64.b64encode(b"two")),
    )


def test_a_picture_that_is_cut_off_gets_an_end() -> None:
    cut = picture()[:-20]
    assert card_json(with_cards(cut, {"chara": b"x"})) == b"x"


def test_a_plain_picture_is_one() -> None:
    assert card_json(with_cards(plain_picture("Mira"), {"ccv3": b"x"})) == b"x"
    assert plain_picture("Mira") != plain_picture("Ada")
