"""Every fault of a provider becomes one sentence that says what to do."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.models.rules.request import ModelRequest
from tests.mock_provider import MockProvider
from tests.models.providers.asked_models import BROKE_OFF, BY_LITELLM, HELLO, KEPT, error_of
from tests.models.providers.fault_server import STREAM_HEAD, chunk, chunked, failure, serving
from tests.models.providers.ways import MakeClient

NO_CREDIT = "The account for openai/m is out of credit"
CHECK_PLAN = "Check its plan, or choose another model with /model."
TOO_LONG = "The request is too long for openai/m"
SHORTEN = "Start over with /new, shrink the window with /context, or set context_token_limit to the model's limit."
START_IT = "Check that its server is running and the network is up."

pytestmark = BY_LITELLM


@pytest.mark.parametrize(
    ("status", "told", "retryable"),
    [
        (400, ("The provider of openai/m rejected the request", "Check the persona's settings, choose"), False),
        (401, ("The provider of openai/m rejected the key", "Check OPENAI_API_KEY."), False),
        (403, ("The provider of openai/m denied access", "Check OPENAI_API_KEY and its permissions."), False),
        (404, ("There is no model openai/m at http://127.0.0.1:", "Check its name and the address."), False),
        (408, ("The provider of openai/m timed out with status 408", "Try again."), True),
        (413, (TOO_LONG, SHORTEN), False),
        (422, ("The provider of openai/m rejected the request", "Check the persona's settings, choose"), False),
        (429, ("openai/m is rate limited", "Try again in 7 s."), True),
        (500, ("The provider of openai/m is failing or overloaded, status 500", "Try again later."), True),
        (503, ("The provider of openai/m is failing or overloaded, status 503", "Try again later."), True),
        (529, ("The provider of openai/m is failing or overloaded, status 529", "Try again later."), True),
    ],
)
async def test_a_refusal_is_a_sentence_that_says_what_to_do_and_is_not_repeated_unseen(
    make_client: MakeClient,
    mock_provider: MockProvider,
    test_key: str,
    status: int,
    told: tuple[str, str],
    *,
    retryable: bool,
) -> None:
    mock_provider.behave(type="fail", status=status, retry_after=7, times=None)
    error = await error_of(make_client, f"{mock_provider.address}/v1", test_key)
    problem, advice = told
    assert error.problem.startswith(problem)
    assert str(error).startswith(f"{error.problem} {advice}")
    assert (error.status_code, error.retryable) == (status, retryable)
    assert error.retry_after_seconds == (7 if retryable else None)
    # litellm itself asks once more after a 422, without the parameters that the provider rejects.
    asks_again = make_client.way == "litellm" and status == 422
    assert mock_provider.request_count() == (2 if asks_again else 1)


FAULTS = {
    f"{NO_CREDIT} (Pay). {CHECK_PLAN}": failure(429, {"error": {"message": "Pay", "code": "insufficient_quota"}}),
    "openai/m is rate limited (Slow down). Try again later.": failure(
        429, {"error": {"message": "Slow down"}}, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"
    ),
    f"{TOO_LONG} (maximum context length is 9). {SHORTEN}": failure(400, {"error": "maximum context length is 9"}),
    "The provider of openai/m is failing or overloaded, status 502. Try again later.": failure(502, b"<html>No</html>"),
    f"{BROKE_OFF} (not valid UTF-8). {KEPT}": STREAM_HEAD + chunk("Once") + b"data: \xff\xfe\n\n",
    f"{BROKE_OFF} (connection lost). {KEPT}": chunked(chunk("Once")),
}


@pytest.mark.parametrize(("sentence", "answer"), FAULTS.items())
async def test_a_fault_is_told(make_client: MakeClient, test_key: str, sentence: str, answer: bytes) -> None:
    async with serving(answer) as server:
        error = await error_of(make_client, server.address, test_key)
    assert (str(error), error.retryable) == (sentence, sentence.endswith("Try again later."))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 529])
async def test_a_key_that_the_provider_echoes_is_not_shown(make_client: MakeClient, test_key: str, status: int) -> None:
    message = f"Wrong key {test_key}!\nSecond line. " + "x" * 1000
    async with serving(failure(status, {"error": {"message": message}})) as server:
        error = await error_of(make_client, server.address, test_key)
    assert "(Wrong key [redacted]! Second line. xx" in str(error)
    assert error.problem.endswith("x…).")


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("openai/m", f"Cannot reach openai/m at ADDRESS/v1 (connection refused). {START_IT}"),
        ("ollama/o", "Cannot reach ollama/o at ADDRESS (connection refused). Start it with: ollama serve."),
    ],
)
async def test_a_server_that_is_not_there_is_named_with_what_starts_it(
    make_client: MakeClient, test_key: str, unused_address: str, model: str, sentence: str
) -> None:
    error = await error_of(make_client, f"{unused_address}/v1", test_key, model=model)
    assert str(error) == sentence.replace("ADDRESS", unused_address)
    assert error.retryable
    assert error.status_code is None


@pytest.fixture
def unused_address(unused_tcp_port: int) -> str:
    return f"http://127.0.0.1:{unused_tcp_port}"


async def test_no_address_shows_its_password(make_client: MakeClient, test_key: str, unused_address: str) -> None:
    error = await error_of(make_client, f"{unused_address}/v1?key=hidden-words", test_key)
    assert f"Cannot reach openai/m at {unused_address}/v1 (" in str(error)
    assert "hidden" not in str(error)


async def test_a_model_that_ollama_does_not_have_is_to_be_pulled(make_client: MakeClient, test_key: str) -> None:
    async with serving(failure(404, {"error": "model 'llama3.2' not found"})) as server:
        error = await error_of(make_client, server.address, test_key, model="ollama_chat/llama3.2")
    assert str(error).endswith("(model 'llama3.2' not found). Fetch it with: ollama pull llama3.2.")


@pytest.mark.parametrize("model", ["nosuch/x", "nosuch", "{model}/x"])
async def test_a_name_litellm_does_not_know_gets_examples(make_client: MakeClient, test_key: str, model: str) -> None:
    error = await error_of(make_client, "http://127.0.0.1:9/v1", test_key, model=model)
    assert str(error) == (
        f"litellm does not know the model {model}. "
        "Model names look like openai/gpt-4o, anthropic/claude-sonnet-4-5, ollama/llama3.2."
    )
    assert not error.retryable


@pytest.mark.parametrize("model", ["openai/gpt-4o", "gpt-4o", "anthropic/claude-x", "gemini/gemini-x", "azure/gpt-4o"])
async def test_a_missing_key_is_named(
    make_client: MakeClient, test_key: str, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    assert test_key
    monkeypatch.delenv("OPENAI_API_KEY")
    variable = f"{model.partition('/')[0].upper()}_API_KEY" if "/" in model else "OPENAI_API_KEY"
    with pytest.raises(ModelError) as caught:
        _ = [event async for event in make_client({}).stream(ModelRequest(model, HELLO))]
    assert str(caught.value) == f"There is no key for {model}. Set {variable}, or choose another model with /model."
