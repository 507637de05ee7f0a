"""Families of models: which listed model's facts a model takes that litellm's map does not list, by the names alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

# By the beginnings of their models' names: the prefixes under which the map lists those of the maker.
# OpenAI's names have a number, names of others such as gpt-oss do not.
_FAMILIES = {"claude-": "", "gemini-": "gemini/", r"gpt-\d": "", "grok-": "xai/", r"o\d": ""}
# Bedrock separates the vendor from the model by a dot.
_NAME = re.compile(rf"(?P<prefix>.*[/.]|)(?P<name>(?:{'|'.join(_FAMILIES)})[^/]*)")
# Dates and states of a model, Bedrock's versions, and what gateways add after a colon.
_SNAPSHOT = re.compile(
    r"[-@](?:latest|preview|exp|experimental|default|\d{4}-\d\d-\d\d|\d\d-\d{4}|\d{3,}|(?<=\d-)v\d+)(?![a-z\d.])|:.*"
)
# Other numbers are sizes, as in gpt-4-32k.
_VERSION = re.compile(r"\d{1,3}(?:[.-]\d{1,3}(?![\da-z]))*")


class _Member(NamedTuple):
    """A model's name, taken apart: its words without the version, which is empty if there is none.

    ``is_own`` says that it is the name at the maker, not at another provider.
    """

    family: str
    words: tuple[str, ...]
    version: tuple[int, ...]
    is_own: bool


def family(model: str) -> str:
    """Return a pattern for the beginning of all names of the family of ``model``; empty if it is of no known one."""
    found = _member(model)
    return found.family if found else ""


def relatives(model: str, listed: Iterable[str]) -> list[str]:
    """Return the ``listed`` models whose facts may be those of ``model``, the likeliest first.

    The model itself comes first, as another snapshot or at another provider; then the maker's models, the newest by the
    versions in their names first, those of the same kind (``haiku``) before all others. None is newer than ``model``,
    because the provider would refuse a limit that is too high.
    """
    asked = _member(model)
    if asked is None:
        return []
    ranked = [(_rank(name, found, asked), name) for name in listed if (found := _member(name)) is not None]
    return [name for rank, name in sorted(ranked, reverse=True) if rank]


def _rank(name: str, found: _Member, asked: _Member) -> tuple[object, ...]:
    """Return how near a listed model is to the one asked for; empty if its facts are not to be taken."""
    is_same = found[:3] == asked[:3]
    is_newer = bool(asked.version) and found.version > asked.version
    if found.family != asked.family or not found.version or not (is_same or (found.is_own and not is_newer)):
        return ()
    is_of_kind, is_similar = found.words == asked.words, found.words == asked.words[:2]
    # Of equal ones the shortest name is no snapshot, and fewer prefixes are nearer to the maker.
    return is_same, is_of_kind, is_similar, found.version, found.is_own, -name.count("/"), -len(name)


def _member(model: str) -> _Member | None:
    parts = _NAME.fullmatch(model.lower())
    if parts is None:
        return None
    beginning = next(beginning for beginning in _FAMILIES if re.match(beginning, parts["name"]))
    name = _SNAPSHOT.sub("", parts["name"])
    numbers = _VERSION.search(name)
    version = tuple(map(int, re.findall(r"\d+", numbers[0]))) if numbers else ()
    return _Member(beginning, tuple(re.findall(r"[a-z]+", name)), version, parts["prefix"] == _FAMILIES[beginning])
