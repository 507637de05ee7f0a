"""Every failure of a request, however its client found it, is told in the same sentences."""

from __future__ import annotations

import time

import pytest

from chorus_cli.core import limits
from chorus_cli.models.providers.failures import LONGEST_SENTENCE, Asked, Failure, model_error

ADDRESS = "http://127.0.0.1:9/v1"
SECRET = "sk-test-0123456789"
ASKED = Asked("openai/m", ADDRESS, {"OPENAI_API_KEY": SECRET})
REJECTED = "The provider of openai/m rejected the request"
TOO_LONG = "The request is too long for openai/m"
NO_CREDIT = "The account for openai/m is out of credit"
WRONG_KEY = "The provider of openai/m rejected the key"
LIMITED = "openai/m is rate limited"
FAILING = "The provider of openai/m is failing or overloaded, status"
INVALID = "The provider of openai/m sent an invalid response"


def openai(message: str, code: str | int | None = None, type_: str = "invalid_request_error") -> dict[str, object]:
    return {"error": {"message": message, "type": type_, "param": None, "code": code}}


def anthropic(type_: str, message: str) -> dict[str, object]:
    return {"type": "error", "error": {"type": type_, "message": message}, "request_id": "req_1"}


def gemini(code: int, message: str, status: str, *details: dict[str, str]) -> dict[str, object]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


@pytest.mark.parametrize(
    ("status", "problem", "advice", "retryable"),
    [
        (402, NO_CREDIT, "Check its plan, or choose another model with /model.", False),
        (504, f"{FAILING} 504", "Try again later.", True),
    ],
)
def test_a_status_is_told_in_a_sentence(status: int, problem: str, advice: str, *, retryable: bool) -> None:
    error = model_error(Failure(status=status, body=openai("No"), headers={"retry-after": "7"}), ASKED)
    assert str(error).startswith(f"{problem} (No). {advice}")
    assert error.retryable == retryable
    assert error.retry_after_seconds == (7 if retryable else None)


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (400, openai("Too much.", "context_length_exceeded"), TOO_LONG),
        (400, openai("This model's maximum context length is 8192 tokens."), TOO_LONG),
        (400, openai("Invalid 'messages[0].content'.", "string_above_max_length"), TOO_LONG),
        (400, {"object": "error", "message": "maximum context length is 10 tokens", "code": 400}, TOO_LONG),
        (400, openai("Too much.", 400, "exceed_context_size_error"), TOO_LONG),
        (400, anthropic("invalid_request_error", "input length and `max_tokens` exceed context limit: 9"), TOO_LONG),
        (429, openai("Pay first.", "insufficient_quota"), NO_CREDIT),
        (402, anthropic("billing_error", "Pay first."), NO_CREDIT),
        (429, gemini(429, "You exceeded your current quota", "RESOURCE_EXHAUSTED"), LIMITED),
        (400, {"code": "Client error", "error": "Incorrect API key provided: xx"}, WRONG_KEY),
    ],
)
def test_a_body_says_more_than_its_status(status: int, body: object, problem: str) -> None:
    assert model_error(Failure(status=status, body=body), ASKED).problem.startswith(f"{problem} (")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (openai("Slow down", "rate_limit_exceeded"), f"{LIMITED} (Slow down)."),
        (anthropic("api_error", "Oh"), f"{FAILING} 500 (Oh)."),
        ({"error": {"code": "server_error", "message": "Oh"}}, f"{FAILING} 500 (Oh)."),
        ({"error": {"code": "invalid_prompt", "message": "Oh"}}, f"{REJECTED} (Oh)."),
        ({"error": {"code": "image_too_large", "message": "Oh"}}, f"{REJECTED} (Oh)."),
        ({"error": {"code": "bio_policy", "message": "Oh"}}, f"{REJECTED} (Oh)."),
        ({"error": {"code": 400, "message": "the request exceeds the available context size"}}, f"{TOO_LONG} ("),
        ({"error": {"code": 7, "message": "Oh"}}, f"{INVALID} (Oh)."),
    ],
)
def test_an_error_event_is_told_by_its_code_or_its_type(body: object, problem: str) -> None:
    assert model_error(Failure(body=body), ASKED).problem.startswith(problem)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "Two\nlines."}}, " (Two lines)"),
        ([{"error": {"message": "in a list"}}], " (in a list)"),
        ({"message": "at the top"}, " (at the top)"),
        ({"error": "a text"}, " (a text)"),
        ({"detail": "a detail"}, " (a detail)"),
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, " (body: field required)"),
        ({"error": {"code": 4}}, ' ({"code": 4})'),
        ("plain text", " (plain text)"),
        ("<!DOCTYPE html><h1>Bad Gateway</h1>", ""),
        ({"error": {"message": "m", "metadata": {"raw": '{"error": {"message": "quoted"}}'}}}, " (quoted)"),
        ({}, ""),
        ([], ""),
        (None, ""),
    ],
)
def test_the_providers_words_are_found_in_every_shape(body: object, words: str) -> None:
    assert model_error(Failure(status=400, body=body), ASKED).problem == f"{REJECTED}{words}."


def test_a_provider_may_ask_to_wait() -> None:
    by_header = {"7": 7, "Wed, 21 Oct 2026 07:28:00 GMT": None, "-1": None, "inf": None}
    by_detail = {"34.5s": 34.5, "soon": None}
    for told, seconds in (by_header | by_detail).items():
        details = ({"reason": "x"}, {"retryDelay": told}) if told in by_detail else ()
        headers = {"retry-after": told} if told in by_header else {}
        body = gemini(429, "Slow down", "RESOURCE_EXHAUSTED", *details)
        error = model_error(Failure(status=429, body=body, headers=headers), ASKED)
        assert error.retry_after_seconds == seconds
        assert str(error).endswith(f"Try again {f'in {seconds:g} s' if seconds else 'later'}.")


@pytest.mark.parametrize("status", [401, 403])
def test_the_variable_of_the_key_is_named(status: int) -> None:
    named = {"gemini/x": "GEMINI_", "together_ai/x": "TOGETHERAI_", "cohere_chat/x": "COHERE_", "nosuch/x": "NOSUCH_"}
    for model, variable in (named | {"gpt-4o": "OPENAI_"}).items():
        assert f"Check {variable}API_KEY" in str(model_error(Failure(status=status), Asked(model)))
    bare = {"": "the key of its provider", "bedrock": "AWS_ACCESS_KEY_ID"}
    for provider, told in bare.items():
        asked = Asked("amazon.nova-pro-v1:0", provider=provider)
        assert f"Check {told}" in str(model_error(Failure(status=status), asked))
    asked = Asked("gemini/gemini-2.5-pro", environment={"GOOGLE_API_KEY": "k"})
    assert "Check GOOGLE_API_KEY" in str(model_error(Failure(status=status), asked))


@pytest.mark.parametrize("status", [None, 400, 401, 404, 429, 500])
def test_no_sentence_is_long_or_shows_a_secret(status: int | None) -> None:
    secret, address = SECRET, f"http://me:{SECRET}@host/{'x' * 500}?key={SECRET}"
    asked = Asked(f"openai/{secret}{'m' * 500}", address, ASKED.environment)
    sentence = str(model_error(Failure(status=status, body=openai(f"Wrong {secret}\n{'y' * 500}")), asked))
    assert secret not in sentence
    assert secret not in repr(asked).replace(asked.model, "").replace(asked.address, "")
    assert len(sentence) <= LONGEST_SENTENCE
    assert "\n" not in sentence


def nested(levels: int) -> object:
    body: object = "deep"
    for _ in range(levels):
        body = {"error": [body]}
    return body


@pytest.mark.parametrize(
    "body",
    [
        "token count " * 100_000,
        openai("token count " * 100_000),
        {"detail": [{"msg": "no", "loc": ["body", "x"]}] * 50_000},
        {"error": {f"name {number}": number for number in range(50_000)}},
        {"error": {"n" * 1_000_000: "m"}},
        {"error": [10**4000] * 250},
        nested(450),
        "\n" * 1_000_000,
    ],
    ids=["a text", "a message", "a list", "names", "a long name", "numbers", "levels", "blank lines"],
)
def test_of_a_long_error_only_the_beginning_is_worked_on(body: object) -> None:
    began = time.monotonic()
    assert len(str(model_error(Failure(status=400, body=body), ASKED))) <= LONGEST_SENTENCE
    assert time.monotonic() - began < 2


def test_what_comes_after_a_long_message_still_counts() -> None:
    body = openai("No " * 10_000, "context_length_exceeded")
    assert model_error(Failure(status=400, body=body), ASKED).problem.startswith(f"{TOO_LONG} (No No No ")


def test_a_secret_that_the_cut_goes_through_is_not_shown_in_part() -> None:
    secret = SECRET
    for length in range(limits.ERROR_WORDS.most - 30, limits.ERROR_WORDS.most):
        for body in (" " * length + secret, openai(" " * length + secret)):
            assert secret[:6] not in str(model_error(Failure(status=400, body=body), ASKED))
