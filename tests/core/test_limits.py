"""Every limit is declared once, with a size in words and the consequence of more."""

from __future__ import annotations

import pytest

from chorus_cli.core import limits
from chorus_cli.core.errors import ModelError
from chorus_cli.core.limits import LIMITS, Limit
from chorus_cli.log.rules.calls import CallAssembly, CallPiece
from chorus_cli.models.rules.events import Lengths, ReasoningDelta, TextDelta


def test_every_declared_limit_stands_in_the_table_once() -> None:
    assert {limits.MESSAGE, limits.IMPORTED_MESSAGE} < set(LIMITS)
    assert len({limit.thing for limit in LIMITS}) == len(LIMITS)
    assert all(limit.most > 0 and limit.beyond.endswith(".") for limit in LIMITS)


@pytest.mark.parametrize(
    ("number_of_bytes", "words"),
    [(12, "12 bytes"), (1_000, "1 kB"), (250_000, "250 kB"), (8_000_000, "8 MB"), (1_500_000_000, "1.5 GB")],
)
def test_a_size_is_written_in_the_largest_unit_that_it_fills(number_of_bytes: int, words: str) -> None:
    assert Limit("a", number_of_bytes, ".").size == words


def test_characters_and_pieces_are_written_as_numbers() -> None:
    assert Limit("a", 1_000, ".", "characters").size == "1,000 characters"
    assert Limit("a", 16, ".", "pieces").size == "16"


def test_a_reply_and_thoughts_without_an_end_are_stopped() -> None:
    million = "x" * 1_000_000
    for event, words in (
        (TextDelta(million), "Chorus stopped the reply at"),
        (ReasoningDelta(million), "its thoughts are longer than"),
    ):
        lengths = Lengths()
        for _ in range(8):
            lengths.take(event)
        with pytest.raises(ModelError, match=words):
            lengths.take(event)


def test_calls_and_arguments_without_an_end_are_stopped() -> None:
    many = [CallPiece(number, f"c{number}", "remember", "{}") for number in range(1_100)]
    for pieces in (many, [CallPiece(0, "c1", "remember", "x" * 1_000_000)] * 17):
        with pytest.raises(ModelError, match="its tool calls are too many or too long"):
            assembled(pieces)


def assembled(pieces: list[CallPiece]) -> None:
    assembly = CallAssembly()
    for piece in pieces:
        assembly.add(piece)
