"""No key survives redaction, whole, cut or in a sentence; text without keys does. The time grows with the text."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.text.redaction import (
    KEY_SHAPES,
    PRIVATE_KEY_SOURCE,
    REDACTED,
    KeyShape,
    is_shaped_like_key,
    redact,
    secrets_in,
)
from tests.amount import examples

SECRETS = st.text("abcdefghijklmnopqrstuvwxyz0123456789+/=_-.*\\", min_size=6, max_size=40).filter(
    lambda secret: secret not in REDACTED
)


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: «sk-proj-a1B2c3D4e5».", "masked by the provider: «sk-abcde***wxyz»",
        "x-api-key «sk-ant-api03-AAAA_bbbb-CCCC»", "«AIzaSyA-1234567890_abcdefghijklmnop» is not valid",
        "«ghp_abcdefghijklmnop0123» and «github_pat_11ABCDEFG0abcdef»", "«AKIAIOSFODNN7EXAMPLE»",
        "Authorization: Bearer «eyJhbGciOi.J9.abc»", "https://host/v1?key=«abc123»&alt=sse",
        "OPENAI_API_KEY=«whatever» rest", '{"api_key": "«0123456789»"}', "apikey=«x», token=«y»",
        "postgres://«user:pa55-word»@db.example/log", "proxy http://«t0ken»@127.0.0.1:8080 refused",
        "Authorization: Basic «dXNlcjpwYXNzd29yZA==»", "https://blob/x?sv=1&sig=«a%2Bb%3D»&se=2",
        '{"password": "«correct-horse»"}',
    ],
)  # fmt: skip
def test_what_is_shaped_like_a_key_as_between_these_marks_is_replaced_without_being_known(text: str) -> None:
    assert redact(re.sub("[«»]", "", text), ()) == re.sub("«.*?»", REDACTED, text)


def test_of_two_secrets_of_which_one_holds_the_other_nothing_is_left() -> None:
    assert redact("abcdef and abcdefghi", ("abcdef", "abcdefghi")) == "[redacted] and [redacted]"


@examples(200)
@given(secrets=st.lists(SECRETS, min_size=1, max_size=3), before=st.text(max_size=20), after=st.text(max_size=20))
def test_a_known_secret_never_comes_through(secrets: list[str], before: str, after: str) -> None:
    for secret in secrets:
        assert secret not in redact(before + secret + "|" + after, secrets).replace(REDACTED, "")


@examples(200)
@given(st.text("abkeyBearsk-_=:&' \"[]0123456789", max_size=60), st.lists(SECRETS, max_size=2))
def test_redacting_twice_changes_nothing_more(text: str, secrets: list[str]) -> None:
    once = redact(text, secrets)
    assert redact(once, secrets) == once


def test_secrets_are_known_by_the_names_of_their_variables() -> None:
    environment = {
        "OPENAI_API_KEY": "sk-0123456789",
        "hf_token": " hf_abcdefgh\n",
        "CLIENT_SECRET": "s3cr3t-value",
        "AWS_SECRET_ACCESS_KEY": "aws/abcdef",
        "TOKEN": "bare-name-counts",
        "SAME_API_KEY": "sk-0123456789",
        "SHORT_TOKEN": "12345",
        "EMPTY_SECRET": "",
        "HOME": "/home/somebody",
        "MAX_TOKENS": "100000000",
    }
    assert secrets_in(environment) == ("sk-0123456789", "hf_abcdefgh", "s3cr3t-value", "aws/abcdef", "bare-name-counts")


@pytest.mark.parametrize("spelling", ["pa/ss+w\u00f6rd-1", "pa%2Fss%2Bw%C3%B6rd-1", r"pa/ss+w\u00f6rd-1"])
def test_a_secret_is_found_in_an_address_and_in_json_too(spelling: str) -> None:
    assert redact(f"<{spelling}>", ("pa/ss+w\u00f6rd-1",)) == "<[redacted]>"


SECRETS_BY_NAME = (
    *(("WATSONX_APIKEY", "w4tson-key"), ("LANGFUSE_SECRET_KEY", "lf-value-1"), ("PGPASSWORD", "correcthorse")),
    *(("MYSQL_PWD", "12345678"), ("DEPLOY_PAT", "abcdef123"), ("openai_key_2", "other-key")),
    ("AWS_SECRET_ACCESS_KEY", "/bPxRfiCY/EXAMPLEKEY"),
)
NO_SECRETS = (
    *(("GOOGLE_APPLICATION_CREDENTIALS", "/home/ada/key.json"), ("SSL_KEY_FILE", "~/certs/server.pem")),
    *(("MAX_TOKENS", "4096000"), ("API_KEY", "true"), ("API_KEY", "changeme"), ("TOKEN", "chorus")),
    *(("DB_PASSWORD", "Password"), ("KEYBOARD", "qwerty-layout"), ("PWD", "/home/ada")),
    ("SSH_AUTH_SOCK", "/run/ssh-a/agent.1"),
)


@pytest.mark.parametrize(("name", "value"), [*SECRETS_BY_NAME, *NO_SECRETS])
def test_short_and_ordinary_values_are_no_secrets(name: str, value: str) -> None:
    assert secrets_in({name: value}) == ((value,) if (name, value) in SECRETS_BY_NAME else ())


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
        "", "set OPENAI_API_KEY, or choose another model", "the task-force used scikit: sk-learn", "monkey=banana",
        "max_tokens=5 is too small", "The bearer of bad news", "request id req_0123456789abcdef", "the task-force",
        "see https://example.org/@somebody and mail to me@example.org", "the password: it must be typed twice",
        "hf_hub", "fw_update", "npm_config_cache", "pypi-server", "glpath-of-something-long-enough",
        "xai- and pplx- begin keys", "dapiary 1234", "SG.", "eyJust", "ask-questions",
        "-----BEGIN CERTIFICATE-----", "AKIAS", "r8_kernel",
    ],
)  # fmt: skip
def test_text_without_a_key_and_words_that_only_begin_like_one_stay(text: str) -> None:
    assert redact(text, ()) == text


@pytest.mark.parametrize("piece", [*PIECES, "-eyJ", "sk-1 ", "a://", "x@x", "-----BEGIN RSA PRIVATE KEY-----\n"])
def test_a_hundred_thousand_characters_of_a_hostile_piece_take_no_time(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    began = time.perf_counter()
    redact(text, ("a-secret-of-the-environment", "Zaaaa0"))
    assert time.perf_counter() - began < 1, "the time must grow with the length, not with its square"


@examples(150)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6), st.sampled_from(PIECES))
def test_the_time_is_linear_in_any_mixture_of_hostile_pieces(mixture: list[str], end: str) -> None:
    repeated = "".join(mixture)
    text = repeated * (20_000 // len(repeated)) + end
    began = time.perf_counter()
    redact(text, ())
    # A square of so many characters would take seconds.
    assert time.perf_counter() - began < 1
