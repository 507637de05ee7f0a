"""Errors in the shapes that litellm raises, translated into failures."""

from __future__ import annotations

import httpx
import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.models.litellm.errors import litellm_error
from chorus_cli.models.providers.failures import Asked

ASKED = Asked("openai/m")


class HTTPStatusError(Exception):
    """The cause that has the provider's answer."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__("Client error")
        self.response = response


class RaisedError(Exception):
    """The error that litellm raises, with a status of its own."""

    def __init__(self, words: str, status_code: int | None = None, *, is_pre_first_chunk: bool = True) -> None:
        super().__init__(words)
        self.status_code = status_code
        self.is_pre_first_chunk = is_pre_first_chunk


def raised(error: Exception, cause: Exception | None = None) -> ModelError:
    error.__cause__ = cause
    return litellm_error(error, ASKED)


@pytest.mark.parametrize("invented", [None, 401, 500])
def test_the_status_is_that_of_the_answer(invented: int | None) -> None:
    answer = httpx.Response(429, json={"error": {"message": "Slow down"}}, headers={"Retry-After": "7"})
    error = raised(RaisedError("Any.", invented), HTTPStatusError(answer))
    assert str(error) == "openai/m is rate limited (Slow down). Try again in 7 s."
    assert error.status_code == 429


def test_an_answer_that_litellm_did_not_read_is_told_in_its_words() -> None:
    answer = httpx.Response(503, stream=httpx.ByteStream(b"any"))
    error = raised(RaisedError("litellm.InternalServerError: OpenAIException - Busy", 500), HTTPStatusError(answer))
    assert error.problem == "The provider of openai/m is failing or overloaded, status 503 (Busy)."


def test_a_reply_that_has_begun_breaks_off_whatever_else_was_answered() -> None:
    error = raised(RaisedError("Lost.", 500, is_pre_first_chunk=False), HTTPStatusError(httpx.Response(500)))
    assert error.problem == "The reply of openai/m broke off (Lost)."


@pytest.mark.parametrize(
    ("cause", "problem"),
    [
        (ConnectionRefusedError(), "Cannot reach openai/m (connection refused)."),
        (OSError("Cannot connect to host api.example:443 ssl"), "Cannot reach openai/m at api.example:443 (Any)."),
        (TimeoutError(), "openai/m did not answer in time."),
        (None, "The provider of openai/m sent an invalid response (Any)."),
    ],
)
def test_a_status_that_litellm_invents_is_no_answer(cause: Exception | None, problem: str) -> None:
    error = raised(RaisedError("Any.", 500), cause)
    assert error.problem == problem
    assert error.status_code is None


def test_an_answer_that_litellm_does_not_understand_is_told_without_its_words() -> None:
    error = raised(RaisedError("No attribute", is_pre_first_chunk=False), AttributeError("no attribute 'type'"))
    assert error.problem == "The reply of openai/m broke off (not an event of its protocol)."


def test_an_unknown_error_is_told_in_its_words() -> None:
    assert raised(ValueError("Odd.")).problem == "The request to openai/m failed (Odd)."
