"""What litellm's own files say of models and providers: names, sizes, prices; litellm itself is not imported for it."""

from __future__ import annotations

import json
import re
import threading
from sys import intern
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.adapters.models.litellm_library import installation_folder
from chorus_cli.core.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_MODELS = "model_prices_and_context_window_backup.json"
# Providers are declared in two places: those with code of their own, and those that only need an address.
_PROVIDERS_WITH_CODE = "types/utils.py"
_PROVIDERS_BY_ADDRESS = "llms/openai_like/providers.json"
_PROVIDER_CLASS = re.compile(r"^class LlmProviders\b.*?(?=^\S)", re.MULTILINE | re.DOTALL)
_PROVIDER_NAME = re.compile(r'^ +[A-Z]\w* = "([^"]+)"', re.MULTILINE)

# litellm asks the Responses API for the second kind, and returns what a chat would.
_CHAT_MODES = ("chat", "responses")
# Made for one kind of work, though the map has no word for it.
_FOR_ONE_WORK = re.compile(r"computer-use|robotics|-tts$")
# The providers whose models litellm also finds by their bare names; of the others it wants the prefix.
_FOUND_BY_BARE_NAME = frozenset(
    {"openai", "anthropic", "bedrock", "bedrock_converse", "vertex_ai-language-models", "cohere_chat", "ai21"}
)
# Entries that give a price to whatever was tuned from a model.
_TUNED = "ft:"


class _Entry(NamedTuple):
    """What one entry of litellm's map says; ``input_cost`` is USD for one token.

    ``converses`` leaves out what only speaks, composes or researches, which the map counts among those that chat.
    """

    provider: str
    chats: bool
    converses: bool
    caches_prompts: bool
    limit_tokens: int | None
    output_tokens: int | None
    input_cost: float | None


class _Knowledge(NamedTuple):
    entries: dict[str, _Entry]
    providers: frozenset[str]


class ModelMap:
    """litellm's map of models, read from its files at the first question; what cannot be read is empty."""

    def __init__(self, folder: Path | None = None) -> None:
        """Read below ``folder``, or where litellm is installed."""
        self._folder = folder
        self._knowledge: _Knowledge | None = None
        self._reading = threading.Lock()

    def limit_tokens(self, model: str) -> int | None:
        """Return the input tokens that ``model`` takes, or ``None`` if the map has no figure for it."""
        figures = (entry.limit_tokens for entry in self._entries_for(model))
        return next((figure for figure in figures if figure is not None), None)

    def input_cost(self, model: str) -> float | None:
        """Return what one token of input costs, in USD, or ``None`` if the map has no price for it.

        It is the provider's ordinary price: nothing off for a cached prefix, nothing on for a very long request.
        """
        prices = (entry.input_cost for entry in self._entries_for(model))
        return next((price for price in prices if price is not None), None)

    def output_tokens(self, model: str) -> int | None:
        """Return the longest reply of ``model``, in tokens, or ``None`` if the map has no figure for it."""
        figures = (entry.output_tokens for entry in self._entries_for(model))
        return next((figure for figure in figures if figure is not None), None)

    def caches_prompts(self, model: str) -> bool:
        """Return whether the map says that ``model``'s provider can keep the beginning of a prompt."""
        return any(entry.caches_prompts for entry in self._entries_for(model))

    def names(self) -> frozenset[str]:
        """Return the models that can chat, as litellm takes them: with a provider, or without where it knows."""
        return self._names_of(lambda entry: entry.chats)

    def conversation_names(self) -> frozenset[str]:
        """Return those of the names whose models are made for conversations of any kind."""
        names = self._names_of(lambda entry: entry.converses)
        return frozenset(name for name in names if not _FOR_ONE_WORK.search(name))

    def providers(self) -> frozenset[str]:
        """Return every prefix that litellm takes for a provider; none at all if its list cannot be read."""
        return self._read().providers

    def _entries_for(self, model: str) -> Iterator[_Entry]:
        """Yield what the map says of ``model``, and then of its name without the provider.

        The map names many models without their provider: ``anthropic/claude-x`` is found under ``claude-x`` if that
        entry's provider is ``anthropic`` or one of its kinds, as ``vertex_ai-language-models`` is of ``vertex_ai``.
        """
        entries = self._read().entries
        if model in entries:
            yield entries[model]
        prefix, _, name = model.partition("/")
        if name in entries and _is_kind_of(entries[name].provider, prefix):
            yield entries[name]

    def _names_of(self, is_meant: Callable[[_Entry], bool]) -> frozenset[str]:
        entries, providers = self._read()
        typed = (_typed(name, entry, providers) for name, entry in entries.items() if is_meant(entry))
        return frozenset(name for names in typed for name in names)

    def _read(self) -> _Knowledge:
        with self._reading:
            if self._knowledge is None:
                self._knowledge = _knowledge_in(self._folder)
            return self._knowledge


def _is_kind_of(provider: str, prefix: str) -> bool:
    return provider == prefix or provider.startswith((f"{prefix}-", f"{prefix}_"))


def _typed(name: str, entry: _Entry, providers: frozenset[str]) -> tuple[str, ...]:
    """Return ``name`` as litellm takes it; nothing for what it would not find or what is no model of its own."""
    if "/" in name:
        return (name,) if not providers or name.partition("/")[0] in providers else ()
    with_provider = f"{entry.provider}/{name}"
    if entry.provider in _FOUND_BY_BARE_NAME:
        known = (name, with_provider) if entry.provider in providers else (name,)
        return () if name.startswith(_TUNED) else known
    # A bare name without a size is a class of models with one price.
    return (with_provider,) if entry.limit_tokens else ()


def _knowledge_in(folder: Path | None) -> _Knowledge:
    try:
        folder = folder or installation_folder()
    except ModelError:
        # The first request says that litellm is missing.
        return _Knowledge({}, frozenset())
    return _Knowledge(_entries_in(folder), _providers_in(folder))


def _entries_in(folder: Path) -> dict[str, _Entry]:
    try:
        document = json.loads((folder / _MODELS).read_bytes())
    except (OSError, ValueError):
        # A limit can be set by hand, and the first request says what is wrong with litellm.
        return {}
    if not isinstance(document, dict):
        return {}
    found = ((name, _entry_of(value)) for name, value in document.items())
    return {name: entry for name, entry in found if entry is not None}


def _entry_of(value: object) -> _Entry | None:
    """Read one entry, or nothing if it has nothing to say here."""
    if not isinstance(value, dict):
        return None
    chats = value.get("mode") in _CHAT_MODES
    limit_tokens = _tokens(value.get("max_input_tokens")) or _tokens(value.get("max_tokens"))
    input_cost = _price(value.get("input_cost_per_token"))
    if not chats and limit_tokens is None and input_cost is None:
        return None
    caches_prompts = value.get("supports_prompt_caching") is True
    return _Entry(
        intern(str(value.get("litellm_provider", ""))),
        chats,
        value.get("mode") == "chat" and value.get("supports_function_calling") is True,
        caches_prompts,
        limit_tokens,
        _tokens(value.get("max_output_tokens")),
        input_cost,
    )


def _tokens(value: object) -> int | None:
    """Return a number of tokens; the map's own sample has sentences where others have figures."""
    return value if isinstance(value, int) and value > 0 else None


def _price(value: object) -> float | None:
    """Return USD for one token, of which a dollar buys thousands everywhere."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1 else None


def _providers_in(folder: Path) -> frozenset[str]:
    """Return all providers or none: half a list would call the other half unknown."""
    try:
        source = (folder / _PROVIDERS_WITH_CODE).read_text(encoding="utf-8")
        by_address = json.loads((folder / _PROVIDERS_BY_ADDRESS).read_bytes())
    except (OSError, ValueError):
        return frozenset()
    declaration = _PROVIDER_CLASS.search(source)
    if declaration is None or not isinstance(by_address, dict):
        return frozenset()
    return frozenset(_PROVIDER_NAME.findall(declaration.group())) | frozenset(by_address)
