"""Reads names, limits and prices of models, and names of providers, from litellm's map of models.

A model that the map does not list has the limits and the abilities of its relative, the listed model nearest in name.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import filterfalse
from pathlib import Path
from typing import NamedTuple, TypeVar

from chorus_cli.core.json import values
from chorus_cli.models.providers import model_files
from chorus_cli.models.rules.costs import Prices

# litellm asks a model of the second mode by the Responses API, and returns the results as for a chat.
_CHAT_MODES = ("chat", "responses")
# Models that are made for a single purpose, although the map lists them for chats.
_FOR_ONE_WORK = re.compile(r"computer-use|robotics|-tts$")
# litellm also finds models of these providers by their bare names; for other providers it needs the prefix.
_FOUND_BY_BARE_NAME = frozenset(
    {"openai", "anthropic", "bedrock", "bedrock_converse", "vertex_ai-language-models", "cohere_chat", "ai21"}
)
# Each entry of a map begins on a line of its own, which is indented by at most four blanks.
_LAID_OUT, _INDENT = "{\n", 4
_ALIAS_OF = "alias_of"
_DECODER = json.JSONDecoder(strict=False)

_Entry = Mapping[str, object]
"""An entry of the map, as parsed from JSON."""
_Fact = TypeVar("_Fact")


class ModelMap:
    """litellm's map of models, read at the first use. Searching its text is 30 times as fast as parsing its JSON."""

    def __init__(self, folder: Path | None = None) -> None:
        """Take the map from ``folder``, or else the newer of the maps that come with Chorus and with litellm."""
        self._folder = folder
        self._text: str | None = None
        self._names: _Names | None = None
        self._looked_up: dict[str, _Entry] = {}
        self._relatives: dict[str, str | None] = {}
        self._reading = threading.RLock()

    def relative(self, model: str) -> str | None:
        """Return the listed model nearest in name, ``None`` if none is near or the map has the limit of ``model``."""
        if any(map(_limit, self._entries_for(model))):
            return None
        if model not in self._relatives:
            listed: list[str] = []
            if beginning := family(model):
                listed = re.findall(rf'\n {{0,{_INDENT}}}"([^"]*{beginning}[^"]*)": \{{', self._read_text())
            names = relatives(model, listed)
            entries = ((name, self._entry(name)) for name in names)
            # A model that cannot call functions is probably made for a single purpose.
            general = (name for name, entry in entries if _chats(entry) and _supports(entry, "function_calling"))
            self._relatives[model] = next((name for name in general if _limit(self._entry(name))), None)
        return self._relatives[model]

    def meant(self, model: str) -> str:
        """Return the model behind an alias such as ``anthropic/claude-sonnet-latest``; any other name unchanged."""
        alias_of = next((str(entry.get(_ALIAS_OF, "")) for entry in self._entries_for(model)), "")
        prefix, slash, _ = model.partition("/")
        return f"{prefix}/{alias_of}" if slash and alias_of and "/" not in alias_of else alias_of or model

    def limit_tokens(self, model: str) -> int | None:
        """Return the context limit of ``model``, or of its relative, in input tokens; ``None`` if none is known."""
        return self._figure(model, _limit)

    def output_tokens(self, model: str) -> int | None:
        """Return the longest reply of ``model``, or of its relative, in tokens; ``None`` if none is known."""
        return self._figure(model, lambda entry: values.whole_number(entry.get("max_output_tokens")) or None)

    def input_cost(self, model: str) -> float | None:
        """Return the standard price of one input token, in USD, or ``None`` if the map has none."""
        return _first(self._entries_for(model), lambda entry: _price(entry, "input_cost_per_token"))

    def prices(self, model: str) -> Prices | None:
        """Return the standard prices of ``model``, in USD per token, or ``None`` if the map has none."""
        return _first(self._entries_for(model), _prices)

    def takes_temperature(self, model: str) -> bool:
        """Return whether ``model`` takes a temperature: yes, unless the map denies it for the model or its relative."""
        return all(entry.get("supports_sampling_params") is not False for entry in self._described(model))

    def supports(self, model: str, ability: str) -> bool | None:
        """Return whether the map gives ``model`` or its relative an ability; ``None`` if it lists neither for chats."""
        said = [_supports(entry, ability) for entry in self._described(model) if _chats(entry)]
        return any(said) if said else None

    def thinks(self, model: str) -> bool | None:
        """Return whether ``model`` can think; ``None`` if the map lists neither the model nor a relative."""
        return self.supports(model, "reasoning")

    def names(self) -> frozenset[str]:
        """Return all names of chat models that litellm accepts, with and without a provider."""
        return self._read_names().chatting

    def conversation_names(self) -> frozenset[str]:
        """Return the names of the models made for general conversation, not for speech, music or research."""
        return self._read_names().conversing

    def providers(self) -> frozenset[str]:
        """Return the prefixes that litellm accepts as providers; none if the lists cannot be read."""
        return self._read_names().providers

    def _entries_for(self, model: str) -> Iterator[_Entry]:
        """Yield the entry for ``model``, then the entry for the bare name, because many entries lack the provider."""
        # ``responses/`` is the name of a protocol, and not a part of the model's name.
        model = model.replace("openai/responses/", "openai/", 1)
        if entry := self._entry(model):
            yield entry
        prefix, _, name = model.partition("/")
        entry = self._entry(name) if name else {}
        provider = str(entry.get("litellm_provider", ""))
        if entry and (provider == prefix or provider.startswith((f"{prefix}-", f"{prefix}_"))):
            yield entry

    def _figure(self, model: str, figure: Callable[[_Entry], int | None]) -> int | None:
        return _first((*self._entries_for(model), *self._of_relative(model)), figure)

    def _described(self, model: str) -> tuple[_Entry, ...]:
        return tuple(self._entries_for(model)) or self._of_relative(model)

    def _of_relative(self, model: str) -> tuple[_Entry, ...]:
        relative = self.relative(model)
        return (self._entry(relative),) if relative else ()

    def _entry(self, name: str) -> _Entry:
        """Return the entry of ``name``, or of the model for which ``name`` is an alias; empty if there is none."""
        if name not in self._looked_up:
            self._looked_up[name] = _meant_entry(name, partial(_entry_in, self._read_text()))
        return self._looked_up[name]

    def _read_text(self) -> str:
        with self._reading:
            if self._text is None:
                self._text = model_files.models_text(self._source())
                if not self._text.startswith(_LAID_OUT):
                    self._text = json.dumps(dict(_object(self._text)), indent=_INDENT)
            return self._text

    def _read_names(self) -> _Names:
        with self._reading:
            if self._names is None:
                self._names = _names_of(_object(self._read_text()), model_files.providers(self._source()))
            return self._names

    def _source(self) -> Path:
        self._folder = self._folder or model_files.newest_folder()
        return self._folder


class _Names(NamedTuple):
    chatting: frozenset[str]
    conversing: frozenset[str]
    providers: frozenset[str]


def _names_of(document: Mapping[str, object], providers: frozenset[str]) -> _Names:
    entries = ((name, _meant_entry(name, lambda name: values.record(document.get(name)))) for name in document)
    chatting = [(name, entry) for name, entry in entries if _chats(entry)]
    conversing = [each for each in chatting if each[1].get("mode") == "chat" and _supports(each[1], "function_calling")]
    typed = [
        frozenset(form for name, entry in listed for form in _typed(name, entry, providers))
        for listed in (chatting, conversing)
    ]
    return _Names(typed[0], frozenset(filterfalse(_FOR_ONE_WORK.search, typed[1])), providers)


def _first(entries: Iterable[_Entry], fact: Callable[[_Entry], _Fact | None]) -> _Fact | None:
    return next((found for entry in entries if (found := fact(entry)) is not None), None)


def _meant_entry(name: str, entry_of: Callable[[str], _Entry]) -> _Entry:
    entry = entry_of(name)
    alias_of = entry.get(_ALIAS_OF)
    if not isinstance(alias_of, str):
        return entry
    meant = entry_of(alias_of)
    return {**meant, _ALIAS_OF: alias_of} if meant and _ALIAS_OF not in meant else {}


def _typed(name: str, entry: _Entry, providers: frozenset[str]) -> tuple[str, ...]:
    """Return the forms of ``name`` that litellm accepts; none for a price class or a model that litellm cannot find."""
    provider = entry.get("litellm_provider", "")
    if "/" in name:
        return (name,) if not providers or name.partition("/")[0] in providers else ()
    with_provider = f"{provider}/{name}"
    if provider in _FOUND_BY_BARE_NAME:
        known = (name, with_provider) if provider in providers else (name,)
        # An entry with ``ft:`` only gives the price of a model's fine-tuned variants.
        return () if name.startswith("ft:") else known
    # A bare name without a limit is not a model but a class of models with one price.
    return (with_provider,) if _limit(entry) else ()


def _object(text: str) -> _Entry:
    return values.record(values.parsed(text))


def _entry_in(text: str, name: str) -> _Entry:
    """Return one entry of a map that is laid out line by line; if a name is listed twice, the last entry counts."""
    key = f"{json.dumps(name)}: {{"
    start = len(text)
    while (start := text.rfind(key, 0, start)) >= 0:
        indent = text[text.rfind("\n", 0, start) + 1 : start]
        # Entries are indented by at most this much, and objects within entries are indented further.
        if len(indent) <= _INDENT and not indent.strip():
            try:
                return values.record(_DECODER.raw_decode(text, start + len(key) - 1)[0])
            except (ValueError, RecursionError):
                break
    return {}


def _chats(entry: _Entry) -> bool:
    return entry.get("mode") in _CHAT_MODES


def _supports(entry: _Entry, ability: str) -> bool:
    return entry.get(f"supports_{ability}") is True


def _limit(entry: _Entry) -> int | None:
    # The map's sample entry has sentences instead of numbers.
    return values.whole_number(entry.get("max_input_tokens")) or values.whole_number(entry.get("max_tokens")) or None


def _price(entry: _Entry, name: str) -> float | None:
    """Return USD per token; ``None`` without a price, or for 1 USD or more, which is a mistake in the map."""
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1 else None


def _prices(entry: _Entry) -> Prices | None:
    """Return the prices of an entry; without a price for cached or stored tokens, the prompt's price counts."""
    prompt, completion = _price(entry, "input_cost_per_token"), _price(entry, "output_cost_per_token")
    if prompt is None or completion is None:
        return None
    cached = _price(entry, "cache_read_input_token_cost")
    # A price of 0, which the map has for some providers, means that storing adds nothing to the prompt's price.
    written = _price(entry, "cache_creation_input_token_cost") or prompt
    return Prices(prompt, completion, prompt if cached is None else cached, written)


# For each family, a pattern for the beginning of its names, and the prefix of the maker's models in the map. GPT models
# that OpenAI serves have a number after ``gpt-``; others, such as gpt-oss, have none.
_FAMILIES = {"claude-": "", "gemini-": "gemini/", r"gpt-\d": "", "grok-": "xai/", r"o\d": ""}
# Bedrock separates the vendor from the model by a dot.
_NAME = re.compile(rf"(?P<prefix>.*[/.]|)(?P<name>(?:{'|'.join(_FAMILIES)})[^/]*)")
# Endings of names: dates and states of a model, Bedrock's versions, and the words that gateways add after a colon.
_SNAPSHOT = re.compile(
    r"[-@](?:latest|preview|exp|experimental|default|\d{4}-\d\d-\d\d|\d\d-\d{4}|\d{3,}|(?<=\d-)v\d+)(?![a-z\d.])|:.*"
)
# The first number in a name is the version. A later number before a letter is a size, as in gpt-4-32k.
_VERSION = re.compile(r"\d{1,3}(?:[.-]\d{1,3}(?![\da-z]))*")


class _Member(NamedTuple):
    """The parts of a model's name; ``is_own`` if it is the name at the model's maker, not at another provider."""

    family: str
    words: tuple[str, ...]
    version: tuple[int, ...]
    is_own: bool


def family(model: str) -> str:
    """Return a pattern for the beginning of all names in the family of ``model``; empty if the family is not known."""
    found = _member(model)
    return found.family if found else ""


def relatives(model: str, listed: Iterable[str]) -> list[str]:
    """Return the ``listed`` models whose facts also fit ``model``: its own other names, then its maker's other models.

    Other models of the same kind (``haiku``) come before other kinds, and in each kind the newest comes first. A newer
    model than ``model`` is left out, because the provider would refuse a limit that is too high.
    """
    asked = _member(model)
    if asked is None:
        return []
    ranked = [(_rank(name, found, asked), name) for name in listed if (found := _member(name)) is not None]
    return [name for rank, name in sorted(ranked, reverse=True) if rank]


def _rank(name: str, found: _Member, asked: _Member) -> tuple[object, ...]:
    """Return a key that sorts nearer models higher; empty if the facts of ``found`` do not fit ``asked``."""
    is_same = found[:3] == asked[:3]
    is_newer = bool(asked.version) and found.version > asked.version
    if found.family != asked.family or not found.version or not (is_same or (found.is_own and not is_newer)):
        return ()
    is_of_kind, is_similar = found.words == asked.words, found.words == asked.words[:2]
    # Among equally near models, the name with the fewest prefixes comes first, then the shortest, which has no date.
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
