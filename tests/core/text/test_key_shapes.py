"""Every known shape of a key is found, whole, cut or in a sentence, in time that grows with the text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.text.redaction import KEY_SHAPES, PRIVATE_KEY_SOURCE, KeyShape, is_shaped_like_key, redact
from tests.amount import examples

SHAPES = pytest.mark.parametrize("shape", KEY_SHAPES, ids=[shape.owner.partition(",")[0] for shape in KEY_SHAPES])

# Beginnings of keys, the words before keys, and the characters that the patterns look for.
PIECES = (
    *("sk-", "eyJ", "eyJ-", "AKIA", "SG.", "ya29.", "-----BEGIN PRIVATE KEY-----", "-----BEGIN A ", "-----END "),
    *("://", "@", "/", "Bearer ", "Basic", "api_key", "key=", "token=", "password:", '"', "=", ":", "-", "_", "."),
    *(" ", "\n", "a", "Z", "0", "[redacted]", "*"),
)


@SHAPES
def test_a_key_of_each_shape_is_found_and_names_its_source(shape: KeyShape) -> None:
    assert is_shaped_like_key(shape.example)
    assert shape.source
    assert redact(f'refused: "{shape.example}", see the manual', ()) == 'refused: "[redacted]", see the manual'


def test_a_private_key_is_found_whole_or_cut() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIBAAKCAQEA\n"
    assert PRIVATE_KEY_SOURCE
    assert redact(f"<{key}-----END RSA PRIVATE KEY----->", ()) == "<[redacted]>"
    assert redact(f"<{key}", ()) == "<[redacted]"
    assert is_shaped_like_key(key)


@pytest.mark.parametrize(
    "text",
    [
        "hf_hub", "fw_update", "npm_config_cache", "pypi-server", "glpath-of-something-long-enough",
        "xai- and pplx- begin keys", "dapiary 1234", "SG.", "the task-force", "eyJust", "ask-questions",
        "-----BEGIN CERTIFICATE-----", "AKIAS", "r8_kernel",
    ],
)  # fmt: skip
def test_words_that_only_begin_like_a_key_stay(text: str) -> None:
    assert redact(text, ()) == text


@pytest.mark.parametrize("piece", [*PIECES, "-eyJ", "sk-1 ", "a://", "x@x", "-----BEGIN RSA PRIVATE KEY-----\n"])
def test_half_a_million_characters_of_a_hostile_piece_take_no_time(piece: str) -> None:
    text = piece * (500_000 // len(piece))
    began = time.perf_counter()
    redact(text, ("a-secret-of-the-environment", "Zaaaa0"))
    assert time.perf_counter() - began < 3, "the time must grow with the length, not with its square"


@examples(150)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6), st.sampled_from(PIECES))
def test_the_time_is_linear_in_any_mixture_of_hostile_pieces(mixture: list[str], end: str) -> None:
    repeated = "".join(mixture)
    text = repeated * (20_000 // len(repeated)) + end
    began = time.perf_counter()
    redact(text, ())
    # A square of so many characters would take seconds.
    assert time.perf_counter() - began < 1
