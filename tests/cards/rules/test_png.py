"""Cards are found in pictures, and put into them."""

from __future__ import annotations

import base64
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.cards.rules.png import card_json, plain_picture, with_cards
from chorus_cli.core.errors import ImportFormatError
from tests.cards.rules.made_cards import SIGNATURE, card, chunk, picture, text_chunk


@pytest.mark.parametrize("keyword", ["chara", "ccv3", "CHARA", "Ccv3"])
def test_a_card_is_found_by_its_keyword_in_any_case(keyword: str) -> None:
    found = card_json(picture(text_chunk(keyword, card(2))))
    assert found is not None
    assert json.loads(found) == card(2)


def test_the_newer_version_counts_in_whichever_order() -> None:
    chunks = [text_chunk("chara", 2), text_chunk("ccv3", 3)]
    assert card_json(picture(*chunks)) == card_json(picture(*chunks[::-1])) == b"3"


def test_a_picture_without_a_card_has_none() -> None:
    assert card_json(picture(chunk(b"tEXt", b"Software\0x"), chunk(b"tEXt", b"chara-ext-asset_:1\0x"))) is None


BROKEN = {
    "no picture": b"GIF89a",
    "checksum": picture(chunk(b"tEXt", b"chara\0" + base64.b64encode(b"{}"), crc=1)),
    "base64": picture(chunk(b"tEXt", b"chara\0no base64!")),
    "another kind of text": picture(chunk(b"zTXt", b"chara\0\0x")),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_damaged_card_is_refused_in_one_sentence(data: bytes) -> None:
    with pytest.raises(ImportFormatError, match=r"\.$"):
        card_json(data)


def test_blanks_and_line_breaks_in_base64_do_no_harm() -> None:
    assert card_json(picture(chunk(b"tEXt", b"chara\0" + base64.encodebytes(b"x" * 200)))) == b"x" * 200


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
