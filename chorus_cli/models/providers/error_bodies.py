"""Bodies of errors in the shapes of OpenAI, Anthropic, Gemini and the servers that follow them."""

from __future__ import annotations

import itertools
import json
import re
from http import HTTPStatus
from typing import TYPE_CHECKING

from chorus_cli.core import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

_OVERFLOW = re.compile(
    r"context[ _](?:length|size|window|limit)|prompt is too long|input is too long|maximum prompt length|"
    r"token count\b.{0,60}\bexceeds the maximum|too many tokens|string_above_max_length|"
    r"reduce the length of the messages",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"insufficient[_ ](?:quota|balance|credits?|funds)|credit balance is too low|billing_(?:hard_limit|not_active)|"
    r"used all available credits|out of credits",
    re.IGNORECASE,
)
_WRONG_KEY = re.compile(
    r"API_KEY_INVALID|invalid_api_key|API key (?:not valid|expired)|incorrect API key", re.IGNORECASE
)
# A single text leaves room for what comes after it, as the code of an error comes after its message.
_LONGEST_TEXT = limits.ERROR_WORDS.most // 2
# Longer than a key, and than what is ever shown: a text without blanks, in Chinese for example.
_LONGEST_WORD = 1_000
_DEEPEST = 20

_ERRORS = range(400, 600)
# Error events have a type or a code, but no HTTP status. Gemini's and OpenRouter's codes are statuses.
_STATUSES = {
    "api_error": HTTPStatus.INTERNAL_SERVER_ERROR,
    "authentication_error": HTTPStatus.UNAUTHORIZED,
    "billing_error": HTTPStatus.PAYMENT_REQUIRED,
    "context_length_exceeded": HTTPStatus.BAD_REQUEST,
    "insufficient_quota": HTTPStatus.TOO_MANY_REQUESTS,
    "invalid_api_key": HTTPStatus.UNAUTHORIZED,
    "invalid_request_error": HTTPStatus.BAD_REQUEST,
    "not_found_error": HTTPStatus.NOT_FOUND,
    "overloaded_error": 529,
    "permission_error": HTTPStatus.FORBIDDEN,
    "rate_limit_error": HTTPStatus.TOO_MANY_REQUESTS,
    "rate_limit_exceeded": HTTPStatus.TOO_MANY_REQUESTS,
    "request_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "timeout_error": HTTPStatus.GATEWAY_TIMEOUT,
}


def decoded(content: bytes) -> object:
    """Return the body of an answer: its JSON, or its text if it is none."""
    text = content.decode(errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def cut(body: object) -> object:
    """Return a body without what is beyond `limits.ERROR_WORDS`, so that nothing takes long over an error."""
    return _Room(limits.ERROR_WORDS.most).kept(body)


def cut_text(text: str, most: int = limits.ERROR_WORDS.most) -> str:
    """Return a text of at most ``most`` characters, without the word that the cut goes through: it may be a key."""
    if len(text) <= most:
        return text
    words = text[:most].rsplit(maxsplit=1)
    return words[0] if len(words) > 1 or len("".join(words)) > _LONGEST_WORD else ""


def message_in(body: object) -> str:
    """Return the provider's message, at the top level or below ``error``; empty for a page in HTML."""
    if isinstance(body, str):
        return "" if "<html" in body.lower() or "<!doctype" in body.lower() else body.strip()
    error = _error(body)
    if not isinstance(error, dict) or not error:
        return error if isinstance(error, str) else ""
    # OpenRouter quotes the answer of the provider that it asked.
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if isinstance(raw, str) and (quoted := message_in(decoded(raw.encode(errors="replace")))):
        return quoted
    message = error.get("message", error.get("detail", ""))
    return message if isinstance(message, str) and message else _complaints(message) or json.dumps(error)


def status_in(body: object) -> int | None:
    """Return the HTTP status that an error event stands for; ``None`` if it does not say."""
    error = _error(body)
    if not isinstance(error, dict):
        return None
    for sign in (error.get("code"), error.get("status_code"), error.get("type")):
        status = _STATUSES.get(sign) if isinstance(sign, str) else sign
        if isinstance(status, int) and status in _ERRORS:
            return int(status)
    return None


def is_overflow(body: object, words: str = "") -> bool:
    """Return whether an error says that a request is longer than the model's context."""
    return _says(_OVERFLOW, body, words)


def is_out_of_credit(body: object, words: str = "") -> bool:
    """Return whether an error says that the account has nothing left to pay with."""
    return _says(_NO_CREDIT, body, words)


def is_wrong_key(body: object, words: str = "") -> bool:
    """Return whether an error says that the API key is wrong, as Gemini and xAI do with status 400."""
    return _says(_WRONG_KEY, body, words)


def retry_delay(body: object) -> float | None:
    """Return the seconds to wait that Gemini asks for in a detail of its error, as ``34s``."""
    error = _error(body)
    details = error.get("details") if isinstance(error, dict) else None
    for detail in _dicts(details):
        delay = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)s", str(detail.get("retryDelay", "")))
        if delay:
            return float(delay[1])
    return None


class _Room:
    """The room for so many more characters of a body."""

    def __init__(self, characters: int) -> None:
        self._left = characters

    def kept(self, part: object, depth: int = 0) -> object:
        """Return what has room of a part of a body, so many levels below its top."""
        if isinstance(part, str):
            part = cut_text(part, min(self._left, _LONGEST_TEXT))
        if isinstance(part, list | dict) and depth == _DEEPEST:
            return None
        if isinstance(part, list):
            return [self.kept(entry, depth + 1) for entry in itertools.takewhile(self._takes, part)]
        if isinstance(part, dict):
            return {name: self.kept(part[name], depth + 1) for name in itertools.takewhile(self._takes_name, part)}
        self._left -= len(str(part))
        return part

    def _takes(self, _entry: object) -> bool:
        self._left -= 1
        return self._left > 0

    def _takes_name(self, name: str) -> bool:
        self._left -= len(name)
        return self._takes(name)


def _error(body: object) -> object:
    """Return the part of a body that describes the error; Gemini puts it into a list."""
    if isinstance(body, list):
        body = body[0] if body else None
    return body.get("error") or body if isinstance(body, dict) else None


def _complaints(entries: object) -> str:
    """Return the messages of a validation, as FastAPI lists them."""
    return "; ".join(str(entry["msg"]) for entry in _dicts(entries) if "msg" in entry)


def _dicts(values: object) -> Iterator[dict[str, object]]:
    return (value for value in (values if isinstance(values, list) else ()) if isinstance(value, dict))


def _says(pattern: re.Pattern[str], body: object, words: str) -> bool:
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
    return bool(pattern.search(text) or pattern.search(words))
