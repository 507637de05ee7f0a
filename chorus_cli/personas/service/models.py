"""Names of models: checks a typed name, and completes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from chorus_cli.models.providers.providers import prefixed
from chorus_cli.models.providers.servers import is_ollama
from chorus_cli.models.rules.choice import ELIZA, LOCAL, PROVIDERS, doubt_about, missing_key


class KnownModels(NamedTuple):
    """Sources of known models; ``doubt_of_local`` says why a model in a local file cannot answer, ``""`` if it can.

    ``doubt_of_other`` says why another model cannot answer: it needs litellm, and litellm is not installed.
    """

    names: Callable[[], frozenset[str]]
    providers: Callable[[], frozenset[str]]
    on_this_machine: Callable[[], tuple[str, ...]]
    for_conversation: Callable[[], frozenset[str]]
    doubt_of_local: Callable[[str], str] = lambda _model: ""
    doubt_of_other: Callable[[str], str] = lambda _model: ""


class Models:
    """Checks and completes names of models; until `load` has collected the others, ELIZA is the only completion."""

    def __init__(self, known: KnownModels, environment: Mapping[str, str]) -> None:
        self._known = known
        self._environment = environment
        self._at_hand: tuple[str, ...] = (ELIZA,)
        self._all: tuple[str, ...] = ()

    def load(self) -> None:
        """Collect the completions, which takes a moment, or a third of a second if Ollama does not answer."""
        local = self._known.on_this_machine()
        self._all = (*local, *(name for name in self._in_order() if name not in local))
        prefixes = tuple(provider.prefix for provider in PROVIDERS if provider.key_set_in(self._environment))
        self._at_hand = (*local, *(name for name in self._all if name.startswith(prefixes)), ELIZA)

    def offered(self, typed: str) -> Collection[str]:
        """Return the models that begin with ``typed`` and can answer now; if there are none, all that begin with it."""
        at_hand = [name for name in self._at_hand if name.startswith(typed)]
        return at_hand or [name for name in self._all if name.startswith(typed)]

    async def doubt(self, name: str) -> str | None:
        """Return a warning if ``name`` may be wrong, else ``None``; raise a ``ModelNameError`` if it is impossible."""
        if name.startswith(LOCAL):
            return await asyncio.to_thread(self._known.doubt_of_local, name) or None
        names, providers, likely = await asyncio.to_thread(
            lambda: (self._known.names(), self._known.providers(), self._likely())
        )
        doubt = doubt_about(name, names, providers, likely)
        unserved = await asyncio.to_thread(self._doubt_of_ollama, name)
        keyless = missing_key(prefixed(name), self._environment)
        return unserved or doubt or self._known.doubt_of_other(name) or keyless or None

    def _doubt_of_ollama(self, name: str) -> str:
        if not is_ollama(name) or any(map(is_ollama, self._known.on_this_machine())):
            return ""
        return f"No Ollama with a model answers now, so {name} cannot answer. Start Ollama with: ollama serve"

    def _likely(self) -> tuple[str, ...]:
        """Return the models that are made for conversation and have a provider in ``PROVIDERS``."""
        prefixes = tuple(provider.prefix for provider in PROVIDERS)
        talking = self._known.for_conversation()
        return tuple(name for name in self._in_order() if name in talking and name.startswith(prefixes))

    def _in_order(self) -> Sequence[str]:
        """Return ``provider/model`` names, providers with a key first; for each, its default, then models for talk."""
        with_key = [provider for provider in PROVIDERS if provider.key_set_in(self._environment)]
        ranks = {provider.prefix: rank for rank, provider in enumerate(dict.fromkeys([*with_key, *PROVIDERS]))}
        usual = {provider.default_model for provider in PROVIDERS}
        talking = self._known.for_conversation()

        def place(name: str) -> tuple[int, bool, bool, str]:
            prefix = f"{name.partition('/')[0]}/"
            return ranks.get(prefix, len(ranks)), name not in usual, name not in talking, name

        return sorted((name for name in self._known.names() if "/" in name), key=place)
