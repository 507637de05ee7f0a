"""Finds out how a request failed, from the errors that litellm raises.

litellm invents statuses and passes others on as it likes: a 529 of Anthropic comes as a 500, a 400 of Gemini as a 401,
and a refused connection as a 500. The causes of an error tell the truth: among them is the provider's answer, if any.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Protocol

from chorus_cli.core.errors import ModelError
from chorus_cli.models.providers.failures import (
    Asked,
    Failure,
    Trouble,
    causes,
    cut,
    cut_text,
    decoded,
    message_in,
    model_error,
)

# Causes of a failed connection, by the names of their classes, which come from several libraries.
_PLAIN_WORDS = {
    "ConnectionRefusedError": "connection refused",
    "gaierror": "host name not found",
    "JSONDecodeError": "not valid JSON",
    "UnicodeDecodeError": "not valid UTF-8",
} | dict.fromkeys(
    ("ClientPayloadError", "ServerDisconnectedError", "ConnectionResetError", "RemoteProtocolError"), "connection lost"
)
_TIMEOUT_CLASSES = {"TimeoutError", "TimeoutException"}
_CONNECTION_CLASSES = {"OSError", "RequestError", "ClientConnectionError"}
_MISSING_KEY = re.compile(
    r"missing credentials|missing \S+ api key|no key is set|unable to locate credentials|api_key client option must",
    re.IGNORECASE,
)
_CLASS_NAMES = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?: \w+Error| Invalid \w+)?\s*[:-]\s*)+")
_ADDITIONS = re.compile(r"(?:Traceback \(most recent|Original exception:|LiteLLM Retried:|Error_str:).*", re.DOTALL)
# What litellm raises for an answer that it does not expect.
_BUG_CLASSES = {"AttributeError", "TypeError", "KeyError", "IndexError"}
# The beginning of an error that quotes the whole chunk.
_ERROR_REASON = "raised a streaming error - finish_reason: error"
_ASKED_HOST = re.compile(r"Cannot connect to host (\S+)")


class _Answer(Protocol):
    """An answer of a provider, as httpx has it."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes


def litellm_error(error: BaseException, asked: Asked) -> ModelError:
    """Return the sentences for ``error``, which litellm raised."""
    errors = tuple(causes(error))
    provider = "" if "/" in asked.model else getattr(error, "llm_provider", "")
    host = next(filter(None, (_ASKED_HOST.search(cut_text(str(each))) for each in errors)), None)
    address = asked.address or (host[1] if host else "")
    asked = replace(asked, address=address, provider=asked.provider or provider or "")
    return model_error(_failure(errors), asked)


def _failure(errors: Sequence[BaseException]) -> Failure:
    refusals = (error for error in errors if type(error).__name__.endswith("HTTPStatusError"))
    answer: _Answer | None = next((found for error in refusals if (found := getattr(error, "response", None))), None)
    if answer is not None and getattr(errors[0], "is_pre_first_chunk", None) is not False:
        body = None
        # Not every answer has been read.
        with suppress(Exception):
            body = decoded(answer.content)
        words = _words(errors) if body is None else ""
        return Failure(None, answer.status_code, body, _lower(answer.headers), words)
    trouble, status, words = _trouble(errors), getattr(errors[0], "status_code", None), _words(errors)
    body = next(filter(message_in, (cut(getattr(error, "body", None)) for error in errors)), None)
    if body is not None:
        return Failure(trouble, None, body, words=words)
    if trouble is None and status == HTTPStatus.INTERNAL_SERVER_ERROR:
        trouble = Trouble.INVALID_RESPONSE
    kept = (getattr(error, "litellm_response_headers", None) for error in errors)
    headers = _lower(next(filter(None, kept), {}))
    return Failure(trouble, status if isinstance(status, int) else None, None, headers, words)


def _trouble(errors: Sequence[BaseException]) -> Trouble | None:
    """Return the trouble of a request that got no answer, or ``None`` if it is none of those that have a name."""
    text = cut_text(str(errors[0]))
    if "LLM Provider NOT provided" in text:
        return Trouble.UNKNOWN_MODEL
    if _MISSING_KEY.search(text):
        return Trouble.NO_KEY
    if getattr(errors[0], "is_pre_first_chunk", None) is False:
        return Trouble.BROKE_OFF
    if _unreadable(errors):
        return Trouble.INVALID_RESPONSE
    if _are(errors, {"BadStatusLine"}):
        return Trouble.NOT_HTTP
    if _are(errors, _TIMEOUT_CLASSES):
        return Trouble.UNANSWERED
    return Trouble.UNREACHABLE if _are(errors, _CONNECTION_CLASSES) else None


def _are(errors: Sequence[BaseException], class_names: set[str]) -> bool:
    """Return whether one of ``errors`` is of one of the classes, which several libraries define under these names."""
    return any(base.__name__ in class_names for error in errors for base in type(error).__mro__)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in headers.items()}


def _unreadable(errors: Sequence[BaseException]) -> str:
    """Return why the body of an answer cannot be unpacked, or is not; empty if that is not the cause."""
    return next((str(error) for error in errors if type(error).__name__ == "DecodingError"), "")


def _words(errors: Sequence[BaseException]) -> str:
    if unreadable := _unreadable(errors):
        return unreadable
    for name, words in _PLAIN_WORDS.items():
        if _are(errors, {name}):
            return words
    if _are(errors, _BUG_CLASSES):
        return "not an event of its protocol" if getattr(errors[0], "is_pre_first_chunk", None) is False else ""
    if _ERROR_REASON in str(errors[0]):
        return "error at the provider"
    return _unwrapped(cut_text(str(getattr(errors[0], "original_exception", None) or errors[0])))


def _unwrapped(text: str) -> str:
    """Strip litellm's class names from the front, its additions from the end, and JSON from around the message."""
    text = _CLASS_NAMES.sub("", _ADDITIONS.sub("", text)).strip()
    start, end = text.find("{"), text.rfind("}")
    quoted = decoded(text[start : end + 1].encode(errors="replace")) if start >= 0 else None
    return message_in(quoted if isinstance(quoted, dict) else text)
