"""Values of foreign JSON: any field may be missing, null or of another type, and is then read as empty."""

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
"""The most characters of a message that are kept; the rest is replaced by a line that counts it."""

_NOTHING: Record = MappingProxyType({})
_LONGEST_TITLE = 200
_LARGEST_NUMBER = 2**63

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS_FROM = 1e11
"""As seconds this is the year 5138, as milliseconds 1973: larger numbers are milliseconds."""
_MICROSECONDS_FROM = 1e14
_CONTROL = re.compile(f"[{CONTROLS}{C1_CONTROLS}]")
_UNCLEAN = re.compile(f"[\0\r{SURROGATES}]")
_NUMBER = re.compile(r"\d{1,16}(\.\d{1,9})?", re.ASCII)
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,", re.ASCII | re.IGNORECASE)


def record(value: object) -> Record:
    """Return an object of JSON, an empty one if the value is none."""
    return value if isinstance(value, dict) else _NOTHING


def items(value: object) -> Sequence[object]:
    """Return the items of an array of JSON, none if the value is none."""
    return value if isinstance(value, list) else ()


def records(value: object) -> list[Record]:
    """Return the objects in an array of JSON; other items are left out."""
    return [item for item in items(value) if isinstance(item, dict)]


def parts(content: object) -> list[Record]:
    """Return the parts of a content, of which some may be text alone, as the whole may."""
    listed = content if isinstance(content, list) else [content]
    return records([{"type": "text", "text": part} if isinstance(part, str) else part for part in listed])


def text(value: object) -> str:
    """Return a text that can be stored: line ends are LF, lone surrogates and NUL replaced. Other types are empty."""
    if not isinstance(value, str):
        return ""
    if len(value) > LONGEST_TEXT:
        value = f"{value[:LONGEST_TEXT]}\n[{len(value) - LONGEST_TEXT:,} more characters were not imported]"
    return cleaned_input(value)[0] if _UNCLEAN.search(value) else value


def line(value: object, longest: int = _LONGEST_TITLE) -> str:
    """Return a text in one line without control characters, such as a title or the name of a file."""
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
    """Return a number of JSON that is whole and not negative, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def moment(value: object, zone: tzinfo | None = UTC) -> datetime | None:
    """Return a time as aware UTC, ``None`` if it is none or before 1970, which stands for "unknown".

    A number counts seconds, or milliseconds or microseconds if it would be thousands of years away. A text holds such a
    number or is ISO 8601, in ``zone`` if it has no offset; ``None`` is the system's.
    """
    if isinstance(value, str):
        stripped = value[:64].strip()
        return _since_1970(float(stripped)) if _NUMBER.fullmatch(stripped) else _written(stripped, zone)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _since_1970(value)
    return None


def parsed(written: object) -> object:
    """Return the value of a JSON text, ``None`` if it is not JSON; control characters in texts are allowed."""
    try:
        return json.loads(written, strict=False) if isinstance(written, str) else None
    except (ValueError, RecursionError):
        return None


def json_text(value: object) -> str:
    """Write a value as JSON on one line, such as the arguments of a call; text stays as it is."""
    if isinstance(value, str):
        return text(value)
    try:
        return text(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return "{}"


def decoded(value: object) -> bytes | None:
    """Return the bytes of a text in base64, ``None`` if it is none."""
    if not isinstance(value, str) or not value:
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None


def from_data_url(value: object) -> tuple[str, bytes] | None:
    """Return the media type, maybe empty, and the bytes of a ``data:`` URL in base64; ``None`` if it is none."""
    found = _DATA_URL.match(value) if isinstance(value, str) else None
    data = decoded(found.string[found.end() :]) if found else None
    return None if found is None or data is None else ((found[1] or "").lower(), data)


class ContentKeys:
    """Keys of messages for a format without ids: a hash of their parts and the number of equal ones before."""

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
