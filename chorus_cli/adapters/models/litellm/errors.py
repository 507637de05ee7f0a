"""Turns the errors that litellm raises into sentences for the user: what happened, and what to do.

The kind of failure is read from the HTTP status and the causes of an error, hardly ever from litellm's classes:
a 403, a 413 and a 529 come as one class, and a refused connection comes as a 500.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chorus_cli.adapters.models.tool_calling import refuses_tools
from chorus_cli.core.errors import ModelError, ToolsRefusedError
from chorus_cli.core.text.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST_SENTENCE = 300

_LONGEST_WORDS = 160
_LONGEST_NAME = 60
_LONGEST_ADVICE = 130
_MOST_CAUSES = 20

# Providers whose key is not called after them; the others follow PROVIDER_API_KEY.
_KEY_VARIABLES = {
    "bedrock": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "bedrock_converse": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "cohere_chat": "COHERE_API_KEY",
    "ollama_chat": "OLLAMA_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
}


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of failure: templates of its sentences, whether a provider answered, and whether a retry may succeed."""

    problem: str
    advice: str
    answered: bool = True
    retryable: bool = False


_UNKNOWN_MODEL = _Kind(
    "litellm does not know the model {model}",
    "Model names look like openai/gpt-4o, anthropic/claude-sonnet-4-5, ollama/llama3.2",
    answered=False,
)
_NO_KEY = _Kind("There is no key for {model}", "Set {key}, or choose another model with /model", answered=False)
_UNREACHABLE = _Kind("Cannot reach {model}{place}", "{start}", answered=False, retryable=True)
_UNANSWERED = _Kind("{model}{place} did not answer in time", "Try again", answered=False, retryable=True)
_BROKE_OFF = _Kind("The reply of {model} broke off", "What has arrived is kept", answered=False)
_INVALID_RESPONSE = _Kind(
    "The provider of {model} sent an invalid response", "Try again later", answered=False, retryable=True
)
_OTHER = _Kind("The request to {model} failed", "Try another model with /model", answered=False)

_NO_CREDIT = _Kind("The account for {model} is out of credit", "Check its plan, or choose another model with /model")
_TOO_LONG = _Kind(
    "The request is too long for {model}",
    "Start over with /new, shrink the window with /context, or set context_token_limit to the model's limit",
)
_REJECTED = _Kind(
    "The provider of {model} rejected the request",
    "Check the persona's settings, or choose another model with /model",
)
_TIMED_OUT = _Kind("The provider of {model} timed out with status {status}", "Try again", retryable=True)
_FAILING = _Kind("The provider of {model} is failing or overloaded, status {status}", "Try again later", retryable=True)

_BY_STATUS = {
    HTTPStatus.UNAUTHORIZED: _Kind("The provider of {model} rejected the key", "Check {key}"),
    HTTPStatus.PAYMENT_REQUIRED: _NO_CREDIT,
    HTTPStatus.FORBIDDEN: _Kind("The provider of {model} denied access", "Check {key} and its permissions"),
    HTTPStatus.NOT_FOUND: _Kind("There is no model {model}{place}", "{find}"),
    HTTPStatus.REQUEST_TIMEOUT: _TIMED_OUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: _TOO_LONG,
    HTTPStatus.TOO_MANY_REQUESTS: _Kind("{model} is rate limited", "Try again {wait}", retryable=True),
    HTTPStatus.GATEWAY_TIMEOUT: _TIMED_OUT,
}

# Causes of a failed connection, by the names of their classes, which come from several libraries.
_PLAIN_WORDS = {
    "ConnectionRefusedError": "connection refused",
    "gaierror": "host name not found",
    "JSONDecodeError": "not valid JSON",
    "UnicodeDecodeError": "not valid UTF-8",
    "ClientPayloadError": "connection lost",
    "ServerDisconnectedError": "connection lost",
    "ConnectionResetError": "connection lost",
    "RemoteProtocolError": "connection lost",
}
_TIMEOUT_CLASSES = {"TimeoutError", "TimeoutException"}
_CONNECTION_CLASSES = {"OSError", "RequestError", "ClientConnectionError"}

_MISSING_KEY = re.compile(
    r"missing credentials|missing \S+ api key|no key is set|unable to locate credentials|api_key client option must",
    re.IGNORECASE,
)
_OVERFLOW = re.compile(r"context[ _](?:length|size|window)|prompt is too long", re.IGNORECASE)
_CLASS_NAMES = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?: \w+Error| Invalid \w+)?\s*[:-]\s*)+")
_ADDITIONS = re.compile(r"\s*(?:Traceback \(most recent|Original exception:|LiteLLM Retried:|Error_str:).*", re.DOTALL)
_ASKED_HOST = re.compile(r"Cannot connect to host (\S+)")


def model_error(error: BaseException, model: str, secrets: Sequence[str], *, address: str = "") -> ModelError:
    """Return the sentences for ``error``, which litellm raised when ``model`` was asked at ``address``.

    They are one line of at most 300 characters without any of ``secrets``, with the provider's own words in
    parentheses where they help.
    """
    errors = tuple(_with_causes(error))
    kind = _kind(errors)
    wait = _retry_after_seconds(errors) if kind.retryable else None
    ollama = model.startswith("ollama")
    name = _shortened(redact(model, secrets), _LONGEST_NAME) or "without a name"
    facts = {
        "model": name,
        "key": _key_variable(error, model),
        "place": _place(errors, address),
        "status": _status(error),
        "wait": "later" if wait is None else f"in {wait:g} s",
        "start": "Start it with: ollama serve" if ollama else "Check that its server is running and the network is up",
        "find": f"Fetch it with: ollama pull {name.partition('/')[2]}" if ollama else "Check its name and the address",
    }
    advice = _shortened(redact(kind.advice.format_map(facts), secrets), _LONGEST_ADVICE) + "."
    problem = redact(kind.problem.format_map(facts), secrets)
    is_refusal = refuses_tools(_status(error), str(error))
    return (ToolsRefusedError if is_refusal else ModelError)(
        _with_words(problem, redact(_words(errors, kind), secrets), LONGEST_SENTENCE - len(advice) - 1),
        advice=advice,
        status_code=_status(error) if kind.answered else None,
        retryable=kind.retryable,
        retry_after_seconds=wait,
    )


def silence_error(model: str, seconds: float, *, begun: bool) -> ModelError:
    """Return the sentences for a model that has sent nothing for ``seconds``; such a request is not retried."""
    kept = "What has arrived is kept. " if begun else ""
    return ModelError(
        f"{_shortened(model, _LONGEST_NAME)} has sent nothing for {seconds:g} s.",
        advice=f"{kept}Try again, or choose another model with /model.",
    )


def _kind(errors: Sequence[BaseException]) -> _Kind:
    """Classify a failure, by clear signs first: litellm invents a status if there was no answer."""
    text, status = str(errors[0]), _status(errors[0])
    if "LLM Provider NOT provided" in text:
        return _UNKNOWN_MODEL
    if _MISSING_KEY.search(text):
        return _NO_KEY
    if getattr(errors[0], "is_pre_first_chunk", None) is False:
        return _BROKE_OFF
    if not _are(errors, {"HTTPStatusError"}):
        if _are(errors, _TIMEOUT_CLASSES):
            return _UNANSWERED
        if _are(errors, _CONNECTION_CLASSES):
            return _UNREACHABLE
        if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            return _INVALID_RESPONSE
    if status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY} and _OVERFLOW.search(text):
        return _TOO_LONG
    if status == HTTPStatus.TOO_MANY_REQUESTS and any("insufficient_quota" in str(_body(error)) for error in errors):
        return _NO_CREDIT
    return _kind_of_status(status)


def _kind_of_status(status: int | None) -> _Kind:
    if status is None:
        return _OTHER
    if status in _BY_STATUS:
        return _BY_STATUS[HTTPStatus(status)]
    return _FAILING if status >= HTTPStatus.INTERNAL_SERVER_ERROR else _REJECTED


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield ``error`` and its causes, nearest first."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < _MOST_CAUSES:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        below = (getattr(current, "original_exception", None), current.__cause__, current.__context__)
        waiting += [cause for cause in below if isinstance(cause, BaseException)]


def _are(errors: Sequence[BaseException], class_names: set[str]) -> bool:
    """Return whether one of ``errors`` is of one of the classes, which several libraries define under these names."""
    return any(base.__name__ in class_names for error in errors for base in type(error).__mro__)


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _retry_after_seconds(errors: Sequence[BaseException]) -> float | None:
    """Return the seconds that the provider asks to wait; a date instead of a number is ignored."""
    for error in errors:
        headers = getattr(error, "litellm_response_headers", None) or getattr(error, "headers", None) or {}
        try:
            seconds = float(headers.get("retry-after", ""))
        except (AttributeError, TypeError, ValueError):
            continue
        if 0 < seconds < float("inf"):
            return seconds
    return None


def _key_variable(error: BaseException, model: str) -> str:
    """Return the environment variable that holds the key of the provider that was asked."""
    provider = str(getattr(error, "llm_provider", "") or model.partition("/")[0])
    return _KEY_VARIABLES.get(provider, f"{provider.upper()}_API_KEY")


def _place(errors: Sequence[BaseException], address: str) -> str:
    """Return `` at ADDRESS`` without a user name, password or query; empty if the address is unknown."""
    if not address:
        asked = next(filter(None, (_ASKED_HOST.search(str(error)) for error in errors)), None)
        return f" at {asked[1]}" if asked else ""
    bare = urlsplit(address)
    return " at " + bare._replace(netloc=bare.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _words(errors: Sequence[BaseException], kind: _Kind) -> str:
    """Return the provider's message or the cause of a lost connection, without litellm's wrapping; empty if useless."""
    if kind in {_UNKNOWN_MODEL, _NO_KEY, _UNANSWERED}:
        return ""
    said = next(filter(None, (_message(_body(error)) for error in errors)), "")
    if said:
        return said
    if not kind.answered:
        for name, words in _PLAIN_WORDS.items():
            if _are(errors, {name}):
                return words
    original = getattr(errors[0], "original_exception", None)
    return _unwrapped(str(original or errors[0]))


def _body(error: BaseException) -> object:
    return getattr(error, "body", None)


def _message(body: object) -> str:
    """Return the message in a provider's error body, at the top level or below ``error``."""
    if not isinstance(body, dict):
        return ""
    inner = body.get("error", body)
    message = inner.get("message", "") if isinstance(inner, dict) else inner
    return message if isinstance(message, str) else ""


def _unwrapped(text: str) -> str:
    """Strip litellm's class names from the front, its additions from the end, and JSON from around the message."""
    text = _CLASS_NAMES.sub("", _ADDITIONS.sub("", text)).strip()
    if "<html" in text.lower() or "<!doctype" in text.lower():
        return ""
    start, end = text.find("{"), text.rfind("}")
    if start >= 0:
        try:
            return _message(json.loads(text[start : end + 1])) or text
        except (ValueError, RecursionError):
            return text
    return text


def _with_words(sentence: str, words: str, length: int) -> str:
    """Put ``words`` in parentheses at the end of ``sentence``, all on one line of at most ``length`` characters."""
    sentence = _shortened(sentence, length - len("."))
    room = min(_LONGEST_WORDS, length - len(sentence) - len(" ()."))
    words = _shortened(words.strip().rstrip("."), room) if room > 0 else ""
    return f"{sentence} ({words})." if words else f"{sentence}."


def _shortened(text: str, length: int) -> str:
    """Return ``text`` on one line, cut to ``length`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"
