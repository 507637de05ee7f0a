"""How providers and models differ in the parameters of a chat completion, and which a server refuses by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.models.providers.chat_messages import DENIED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from chorus_cli.models.providers.failures import Failure
    from chorus_cli.models.providers.providers import Endpoint

_STREAM_OPTIONS = frozenset({"stream_options"})
_TEMPERATURE = frozenset({"temperature"})
_TOOLS = frozenset({"tools", "tool_choice"})


class Dialect(NamedTuple):
    """How a model takes the parameters of a chat completion.

    ``reply_limit`` is the name of the parameter that limits the reply, ``omitted`` are parameters that are never sent.
    """

    reply_limit: str = "max_tokens"
    omitted: frozenset[str] = frozenset()


_USUAL = Dialect()
_REASONING = Dialect("max_completion_tokens", _TEMPERATURE)

_BY_PROVIDER = {
    "mistral": Dialect(omitted=_STREAM_OPTIONS),
    "cerebras": Dialect(omitted=_STREAM_OPTIONS),
    "nvidia_nim": Dialect(omitted=_STREAM_OPTIONS),
    "deepinfra": Dialect(omitted=_STREAM_OPTIONS | {"tool_choice"}),
    "perplexity": Dialect(omitted=_STREAM_OPTIONS | _TOOLS),
}
# The first match counts.
_BY_MODEL = {
    "openai": (
        (r"o\d", _REASONING),
        (r"gpt-5-chat", _USUAL),
        (r"gpt-5.*search", Dialect("max_completion_tokens", _TEMPERATURE | _TOOLS)),
        (r"gpt-5\.[124](?!.*chat)", Dialect("max_completion_tokens")),
        (r"gpt-[56]", _REASONING),
    ),
    "moonshot": ((r"kimi-(?:k2\.[5-9]|k[3-9])", Dialect(omitted=_TEMPERATURE)),),
}


def dialect(endpoint: Endpoint) -> Dialect:
    """Return how the model of ``endpoint`` takes its parameters."""
    families = _BY_MODEL.get(endpoint.provider, ())
    by_provider = _BY_PROVIDER.get(endpoint.provider, _USUAL)
    return next((family for pattern, family in families if re.match(pattern, endpoint.model)), by_provider)


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
