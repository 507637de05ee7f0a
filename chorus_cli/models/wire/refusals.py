"""Parameters that a server refuses by name, and that a request can do without."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chorus_cli.models.providers.tool_calling import DENIED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from chorus_cli.models.providers.failures import Failure

# Sent under the other name, a parameter is not left out.
NEWER_NAMES = {"max_tokens": "max_completion_tokens"}

_STATUSES = frozenset({400, 404, 422, 500, 501})
_ALSO_DENIED = re.compile(
    r"extra[_ ](?:inputs|forbidden)|unexpected|unknown|deprecated|invalid (?:field|parameter)|isn.t allowed",
    re.IGNORECASE,
)
# How a value is denied. The values of other parameters are the user's, who sees the error.
_VALUE_DENIED = re.compile(
    r"must be one of|input should be|invalid (?:value|reasoning)|is mandatory|is invalid|to turn thinking off",
    re.IGNORECASE,
)
_EFFORT = re.compile("effort|reasoning|thinking", re.IGNORECASE)
# Fields of an error in which servers name a parameter or deny it; others may quote the request.
_FIELDS = ("message", "msg", "param", "loc", "code", "type", "detail", "error")


def refused_parameter(failure: Failure, optional: Iterable[str]) -> str | None:
    """Return the first of the ``optional`` parameters that an answer denies by name; ``None`` if it denies none."""
    if failure.trouble is not None or failure.status not in _STATUSES:
        return None
    return next(filter(None, (_denied(*told, optional) for told in _told(failure.body))), None)


def _denied(text: str, parameter: object, optional: Iterable[str]) -> str | None:
    """Return the parameter that a text denies: the one that the error gives as its own, else the first in the text."""
    if not DENIED.search(text) and not _ALSO_DENIED.search(text):
        optional = filter(_EFFORT.search, optional) if _VALUE_DENIED.search(text) else ()
    named = {name: re.search(rf"\b{_pattern(name)}\b", text, re.IGNORECASE) for name in optional}
    if parameter in named:
        return str(parameter)
    places = {name: (match.start(), -len(name)) for name, match in named.items() if match}
    return min(places, key=lambda name: places[name], default=None)


def _pattern(name: str) -> str:
    return re.escape(name).replace("_", "[ _-]")


def _told(body: object) -> Iterator[tuple[str, object]]:
    """Yield the words of each error in a body, each error by itself, and the parameter that it gives."""
    match body:
        case str():
            yield from ((line, None) for line in body.splitlines())
        case list():
            for entry in body:
                yield from _told(entry)
        case dict():
            said = [body[name] for name in _FIELDS if name in body]
            for inner in said:
                if isinstance(inner, dict | list):
                    yield from _told(inner)
            # The place of a fault is a list of names.
            names = [name for place in said if isinstance(place, list) for name in place if isinstance(name, str)]
            yield " ".join([*(text for text in said if isinstance(text, str)), *names]), body.get("param")
