"""Reads failures of requests from the bodies of errors, and writes the sentences for the user."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from http import HTTPStatus
from urllib.parse import urlsplit

from chorus_cli.core import limits
from chorus_cli.core.errors import ModelError, RequestRejectedError, ToolsRefusedError
from chorus_cli.core.json import values
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.text.redaction import redact, secrets_in
from chorus_cli.machine.unpacking import UnpackingError
from chorus_cli.models.providers.chat_messages import refuses_pictures, refuses_tools
from chorus_cli.models.providers.providers import key_variable
from chorus_cli.models.rules.events import ARRIVED

# A match in a body tells the kind of failure.
_OVERFLOW = re.compile(
    r"(?i)context[ _](?:length|size|window|limit)|(?:prompt|input) is too long|maximum prompt length|too many tokens|"
    r"token count\b.{0,60}\bexceeds the maximum|string_above_max_length|reduce the length of the messages"
)
_SAYS_NO_CREDIT = re.compile(
    r"(?i)insufficient[_ ](?:quota|balance|credits?|funds)|credit balance is too low|"
    r"billing_(?:hard_limit|not_active)|used all available credits|out of credits"
)
_SAYS_WRONG_KEY = re.compile(r"(?i)API_KEY_INVALID|invalid_api_key|API key (?:not valid|expired)|incorrect API key")
# A longer word is not a key but a text without blanks, for example in Chinese, so it may be cut.
_LONGEST_WORD = 1_000
_MOST_CAUSES = 20
_ERRORS = range(400, 600)
# Statuses for error events, which have a type or a code but no status. Gemini and OpenRouter send statuses as codes.
_STATUSES = {
    "api_error": HTTPStatus.INTERNAL_SERVER_ERROR,
    "authentication_error": HTTPStatus.UNAUTHORIZED,
    "billing_error": HTTPStatus.PAYMENT_REQUIRED,
    "context_length_exceeded": HTTPStatus.BAD_REQUEST,
    "insufficient_quota": HTTPStatus.TOO_MANY_REQUESTS,
    "invalid_api_key": HTTPStatus.UNAUTHORIZED,
    "invalid_prompt": HTTPStatus.BAD_REQUEST,
    "invalid_request_error": HTTPStatus.BAD_REQUEST,
    "not_found_error": HTTPStatus.NOT_FOUND,
    "overloaded_error": 529,
    "permission_error": HTTPStatus.FORBIDDEN,
    "rate_limit_error": HTTPStatus.TOO_MANY_REQUESTS,
    "rate_limit_exceeded": HTTPStatus.TOO_MANY_REQUESTS,
    "request_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "server_error": HTTPStatus.INTERNAL_SERVER_ERROR,
    "timeout_error": HTTPStatus.GATEWAY_TIMEOUT,
}


async def error_body(pieces: AsyncIterator[bytes]) -> bytes:
    """Return an error's body up to about `limits.ERROR_BODY`, or the reason why it cannot be unpacked."""
    content = bytearray()
    try:
        async for piece in pieces:
            content += piece
            if len(content) > limits.ERROR_BODY.most:
                break
    except UnpackingError as error:
        return f"the answer is {error}".encode()
    return bytes(content)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors that led to it; libraries keep causes in several attributes."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < _MOST_CAUSES:
        current = waiting.pop(0)
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            # A group has an error for each address of the host; the first will do.
            group = current.exceptions[:1] if isinstance(current, BaseExceptionGroup) else ()
            below = (getattr(current, "original_exception", None), *group, current.__cause__, current.__context__)
            waiting += [cause for cause in below if isinstance(cause, BaseException)]


def decoded(content: bytes) -> object:
    """Return the body of an answer as parsed JSON, or as text if it is not JSON."""
    text = content.decode(errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def cut_text(text: str) -> str:
    """Cut a text that exceeds `limits.ERROR_WORDS`, and drop its last word: redaction would miss a key that is cut."""
    if len(text) <= limits.ERROR_WORDS.most:
        return text
    words = text[: limits.ERROR_WORDS.most].rsplit(maxsplit=1)
    return words[0] if len(words) > 1 or len("".join(words)) > _LONGEST_WORD else ""


def message_in(body: object) -> str:
    """Return the provider's message, from ``error`` or the top level of a body; empty for a page in HTML."""
    if isinstance(body, str):
        return "" if "<html" in body.lower() or "<!doctype" in body.lower() else body.strip()
    error = error_in(body)
    if not isinstance(error, dict) or not error:
        return error if isinstance(error, str) else ""
    # OpenRouter quotes the answer of the provider that it asked.
    raw = values.record(error.get("metadata")).get("raw")
    if isinstance(raw, str) and (quoted := message_in(decoded(raw.encode(errors="replace")))):
        return quoted
    message = error.get("message", error.get("detail", ""))
    complaints = "; ".join(filter(None, map(_complaint, values.records(message))))
    return message if isinstance(message, str) and message else complaints or _written(error)


def error_in(body: object) -> object:
    """Return an object's ``error``, else the object; ``None`` without an object. Of a list, the first entry counts."""
    if isinstance(body, list):
        body = body[0] if body else None
    return body.get("error") or body if isinstance(body, dict) else None


def _complaint(entry: values.Record) -> str:
    """Return a server's complaint about a field of the request, preceded by the field's place in the request."""
    place = ".".join(map(str, values.items(entry.get("loc"))))
    return ": ".join(filter(None, (place, str(entry.get("msg") or entry.get("type") or ""))))


def _written(body: object) -> str:
    with suppress(RecursionError):
        return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
    return ""


def _status_in(body: object) -> int | None:
    error = values.record(error_in(body))
    for sign in (error.get("code"), error.get("status_code"), error.get("type")):
        status = _status_named(sign) if isinstance(sign, str) else sign
        if isinstance(status, int) and status in _ERRORS:
            return int(status)
    return None


def _status_named(code: str) -> int | None:
    # OpenAI has many codes for what it refuses, such as ``image_too_large`` and ``bio_policy``.
    return _STATUSES.get(code, HTTPStatus.BAD_REQUEST if "image" in code or "policy" in code else None)


LONGEST_SENTENCE = 300
_LONGEST_WORDS, _LONGEST_NAME, _LONGEST_ADVICE = 160, 60, 130


@dataclass(frozen=True, slots=True)
class _Kind:
    """A failure's sentences, whether a retry may help, and whether the cause is shown."""

    problem: str
    advice: str
    retryable: bool = False
    has_cause: bool = True


_wordless = partial(_Kind, has_cause=False)
_LATER = "Try again later"
_NAMES = "Model names look like openai/gpt-4o, anthropic/claude-sonnet-4-5, ollama/llama3.2"


class Trouble(Enum):
    """A kind of failure other than an error that the provider sent."""

    UNKNOWN_MODEL = _wordless("Chorus does not know the model {model}", _NAMES)
    NO_KEY = _wordless("There is no key for {model}", "Set {key}, or choose another model with /model")
    UNREACHABLE = _Kind("Cannot reach {model}{place}", "{start}", retryable=True)
    BROKE_OFF = _Kind("The reply of {model} broke off", ARRIVED.rstrip("."))
    INVALID_RESPONSE = _Kind("The provider of {model} sent an invalid response", _LATER, retryable=True)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed request: its ``trouble``, or else the error that the provider sent.

    An error event in a stream may have no ``status``, but a ``body`` that implies a status. ``body`` is parsed JSON or
    text. ``headers`` have names in lower case. ``words`` give a short cause.
    """

    trouble: Trouble | None = None
    status: int | None = None
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    words: str = ""


class FailedError(Exception):
    """A request has failed; ``failure`` tells how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.words or str(failure.trouble or failure.status))
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Asked:
    """The model of a failed request, its server's address, and the environment, whose secrets no sentence may show.

    ``provider`` is given if the model's name does not tell the provider.
    """

    model: str
    address: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    provider: str = ""


_OTHER = _Kind("The request to {model} failed", "Try another model with /model")

_NO_CREDIT = _Kind("The account for {model} is out of credit", "Check its plan, or choose another model with /model")
_TOO_LONG = _Kind(
    "The request is too long for {model}",
    "Start over with /new, shrink the window with /context, or set context_token_limit to the model's limit",
)
_WRONG_KEY = _Kind("The provider of {model} rejected the key", "Check {key}")
_REDIRECTED = _Kind("The server of {model}{place} redirects elsewhere, status {status}", "Correct its address")
_REJECTED = _Kind(
    "The provider of {model} rejected the request",
    "Check the persona's settings, choose another model with /model, or start over with /new",
)
_FAILING = _Kind("The provider of {model} is failing or overloaded, status {status}", _LATER, retryable=True)

_BY_STATUS = {
    HTTPStatus.UNAUTHORIZED: _WRONG_KEY,
    HTTPStatus.PAYMENT_REQUIRED: _NO_CREDIT,
    HTTPStatus.FORBIDDEN: _Kind("The provider of {model} denied access", "Check {key} and its permissions"),
    HTTPStatus.NOT_FOUND: _Kind("There is no model {model}{place}", "{find}"),
    HTTPStatus.REQUEST_TIMEOUT: _FAILING,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: _TOO_LONG,
    HTTPStatus.TOO_MANY_REQUESTS: _Kind("{model} is rate limited", "Try again {wait}", retryable=True),
}
# These patterns count before the status, which may be ambiguous: Gemini and xAI answer a wrong key with 400.
_SIGNS = (
    ({400, 413, 422}, _OVERFLOW, _TOO_LONG),
    ({400, 403, 429}, _SAYS_NO_CREDIT, _NO_CREDIT),
    ({400}, _SAYS_WRONG_KEY, _WRONG_KEY),
)
_TRY_AGAIN = "Try again, or choose another model with /model."
_CHECK_SERVER = "Check that its server is running and the network is up"


def model_error(failure: Failure, asked: Asked) -> ModelError:
    """Return the error with sentences about ``failure``: one line of at most 300 characters, without secrets."""
    secrets = secrets_in(asked.environment)
    status = failure.status if failure.body is None or failure.status else _status_in(failure.body)
    kind = _kind(failure, status)
    wait = _retry_after_seconds(failure) if kind.retryable else None
    facts = _facts(asked) | {"status": status, "wait": "later" if wait is None else f"in {wait:g} s"}
    advice = shortened(redact(kind.advice.format_map(facts), secrets), _LONGEST_ADVICE) + "."
    problem = redact(kind.problem.format_map(facts), secrets)
    words = redact(_words(failure), secrets) if kind.has_cause else ""
    is_about_tools = refuses_tools(status, _words(failure))
    is_rejected = kind is _REJECTED or refuses_pictures(status, _words(failure))
    error_class = ToolsRefusedError if is_about_tools else RequestRejectedError if is_rejected else ModelError
    length = LONGEST_SENTENCE - len(advice) - 1
    problem = shortened(problem, length - len("."))
    room = min(_LONGEST_WORDS, length - len(problem) - len(" ()."))
    words = shortened(words.strip().rstrip("."), room) if room > 0 else ""
    return error_class(
        f"{problem} ({words})." if words else f"{problem}.",
        advice=advice,
        retryable=kind.retryable,
        retry_after_seconds=wait,
    )


def silence_error(model: str, seconds: float, *, begun: bool) -> ModelError:
    """Return the error for a model that has sent nothing for ``seconds``; Chorus does not retry the request."""
    again = f"{ARRIVED} /model chooses another model." if begun else _TRY_AGAIN
    return ModelError(f"{shortened(model, _LONGEST_NAME)} has sent nothing for {seconds:g} s.", advice=again)


def _kind(failure: Failure, status: int | None) -> _Kind:
    if failure.trouble is not None:
        return failure.trouble.value
    if status is None:
        return _OTHER if failure.body is None else Trouble.INVALID_RESPONSE.value
    # The code of an error may follow a long message, so the end of a long body is searched, too.
    written, half = _written(failure.body), limits.ERROR_WORDS.most // 2
    text = f"{written[:half]}\n{written[-half:]}"
    for statuses, sign, kind in _SIGNS:
        if status in statuses and (sign.search(text) or sign.search(failure.words)):
            return kind
    if status in _BY_STATUS:
        return _BY_STATUS[HTTPStatus(status)]
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _FAILING
    return _REJECTED if status >= HTTPStatus.BAD_REQUEST else _REDIRECTED


def _facts(asked: Asked) -> dict[str, object]:
    provider, _, name = asked.model.partition("/")
    is_ollama = provider.startswith("ollama")
    parts = urlsplit(asked.address)
    # The address without user name, password, query and fragment.
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    return {
        "model": shortened(redact(asked.model, secrets_in(asked.environment)), _LONGEST_NAME) or "without a name",
        "key": key_variable("/".join(filter(None, (asked.provider, asked.model))), asked.environment),
        "place": f" at {bare}" if bare else "",
        "start": "Start Ollama with: ollama serve" if is_ollama else _CHECK_SERVER,
        "find": f"Fetch it with: ollama pull {name}" if is_ollama else "Check its name and the address",
    }


def _retry_after_seconds(failure: Failure) -> float | None:
    """Return the seconds that the provider asks to wait: in a header, or in Gemini's ``retryDelay`` such as ``34s``."""
    with suppress(ValueError):
        seconds = float(failure.headers.get("retry-after", ""))
        return seconds if 0 < seconds < float("inf") else None
    details = values.records(values.record(error_in(failure.body)).get("details"))
    delays = (re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)s", str(each.get("retryDelay", ""))) for each in details)
    return next((float(delay[1]) for delay in delays if delay), None)


def _words(failure: Failure) -> str:
    return cut_text(message_in(failure.words if failure.body is None else failure.body))
