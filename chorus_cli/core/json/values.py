"""Reads values of JSON that other programs wrote: a missing field, null or a value of another type is read as empty."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import blake2b
from types import MappingProxyType
from typing import TypeAlias

from chorus_cli.core import limits
from chorus_cli.core.text.code_points import C1_CONTROLS, CONTROLS, SURROGATES, cleaned_input

Record: TypeAlias = "Mapping[str, object]"
"""An object of JSON."""

LONGEST_TEXT = limits.IMPORTED_MESSAGE.most
"""How many characters of a message are kept; in place of the rest, a line says how many more there were."""

_NOTHING: Record = MappingProxyType({})
_LONGEST_TITLE = 200
_LARGEST_NUMBER = 2**63

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS_FROM = 1e11
"""As seconds this number is in the year 5138, as milliseconds in 1973: numbers from here on are milliseconds."""
_MICROSECONDS_FROM = 1e14
_CONTROL = re.compile(f"[{CONTROLS}{C1_CONTROLS}]")
_UNCLEAN = re.compile(f"[\0\r{SURROGATES}]")
_NUMBER = re.compile(r"\d{1,16}(\.\d{1,9})?", re.ASCII)
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,", re.ASCII | re.IGNORECASE)


def record(value: object) -> Record:
    """Return ``value`` if it is an object of JSON, else an empty object."""
    return value if isinstance(value, dict) else _NOTHING


def items(value: object) -> Sequence[object]:
    """Return the items of ``value`` if it is an array of JSON, else no items."""
    return value if isinstance(value, list) else ()


def records(value: object) -> list[Record]:
    """Return the objects in an array of JSON; other items are left out."""
    return [item for item in items(value) if isinstance(item, dict)]


def parts(content: object) -> list[Record]:
    """Return the parts of a message's content; a bare text, alone or in a list, becomes a text part."""
    listed = content if isinstance(content, list) else [content]
    return records([{"type": "text", "text": part} if isinstance(part, str) else part for part in listed])


def text(value: object) -> str:
    """Return a text with CR, NUL and lone surrogates replaced, cut to ``LONGEST_TEXT``; "" for any other type."""
    if not isinstance(value, str):
        return ""
    if len(value) > LONGEST_TEXT:
        value = f"{value[:LONGEST_TEXT]}\n[{len(value) - LONGEST_TEXT:,} more characters were not imported]"
    return cleaned_input(value)[0] if _UNCLEAN.search(value) else value


def line(value: object, longest: int = _LONGEST_TITLE) -> str:
    """Return a text as one line without controls, of at most ``longest`` characters; "" for any other type."""
    if not isinstance(value, str):
        return ""
    if len(value) <= longest and value.isprintable() and value == value.strip() and "  " not in value:
        return value
    words = " ".join(_CONTROL.sub(" ", cleaned_input(value[: 2 * longest])[0]).split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def identifier(value: object) -> str:
    """Return an id, which some programs write as a number; empty if it is neither text nor a whole number."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST_NUMBER:
        return str(value)
    return line(value)


def whole_number(value: object) -> int:
    """Return ``value`` if it is a positive whole number, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def moment(value: object, zone: tzinfo | None = UTC) -> datetime | None:
    """Return a time as aware UTC; ``None`` if it cannot be read or is not after the beginning of 1970.

    A number counts seconds, or, if it is too large, milliseconds or microseconds. A text is such a number or ISO 8601;
    without an offset, its time is in ``zone``, or in the system's zone if ``zone`` is ``None``.
    """
    if isinstance(value, str):
        stripped = value[:64].strip()
        return _since_1970(float(stripped)) if _NUMBER.fullmatch(stripped) else _written(stripped, zone)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _since_1970(value)
    return None


def parsed(written: object) -> object:
    """Return the value of a JSON text; ``None`` if it is not JSON. Strings may contain control characters."""
    try:
        return json.loads(written, strict=False) if isinstance(written, str) else None
    except (ValueError, RecursionError):
        return None


def json_text(value: object) -> str:
    """Write a value as JSON on one line; a text is only cleaned, and a value that cannot be written becomes ``{}``."""
    if isinstance(value, str):
        return text(value)
    try:
        return text(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return "{}"


def decoded(value: object) -> bytes | None:
    """Return the bytes of a text in base64; ``None`` if ``value`` is empty or not base64."""
    if not isinstance(value, str) or not value:
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None


def from_data_url(value: object) -> tuple[str, bytes] | None:
    """Return media type and bytes of a ``data:`` URL in base64; ``None`` for other values. The type may be empty."""
    found = _DATA_URL.match(value) if isinstance(value, str) else None
    data = decoded(found.string[found.end() :]) if found else None
    return None if found is None or data is None else ((found[1] or "").lower(), data)


class ContentKeys:
    """Makes keys for messages without ids: a hash of a message's parts, with a number if the same parts came before."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def of(self, *parts: str) -> str:
        """Return the key of the next message with these parts, such as its role, time and text."""
        joined = "\0".join(f"{len(part)}:{part}" for part in parts)
        digest = blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        number = self._seen[digest] = self._seen.get(digest, 0) + 1
        return digest if number == 1 else f"{digest}-{number}"


def _since_1970(number: float) -> datetime | None:
    try:
        seconds = float(number)
    except OverflowError:
        return None
    if not math.isfinite(seconds) or seconds <= 0:
        return None
    if seconds >= _MICROSECONDS_FROM:
        seconds /= 1e6
    elif seconds >= _MILLISECONDS_FROM:
        seconds /= 1e3
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return None


def _written(value: str, zone: tzinfo | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(value)
        found = (found.replace(tzinfo=zone) if found.tzinfo is None else found).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if found > _EPOCH else None
