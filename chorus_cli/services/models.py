"""The models that can be named: checking a name as it is typed, and offering those that are at hand."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core import model_names
from chorus_cli.core.model_choice import ELIZA, PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


class KnownModels(NamedTuple):
    """Where models are known from: the names and the providers that litellm knows, and what an Ollama holds."""

    names: Callable[[], frozenset[str]]
    providers: Callable[[], frozenset[str]]
    in_ollama: Callable[[], tuple[str, ...]]


class Models:
    """Judges and offers names of models; what is offered is looked up by `load`, away from the keyboard."""

    def __init__(self, known: KnownModels, environment: Mapping[str, str]) -> None:
        self._known = known
        self._environment = environment
        self._at_hand: tuple[str, ...] = (ELIZA,)
        self._all: tuple[str, ...] = ()

    def load(self) -> None:
        """Look up what can be offered; takes a moment, and a third of a second where an Ollama does not answer."""
        local = self._known.in_ollama()
        with_key = [provider for provider in PROVIDERS if provider.key_set_in(self._environment)]
        prefixes = tuple(f"{provider.default_model.partition('/')[0]}/" for provider in with_key)
        self._all = tuple(sorted({*(name for name in self._known.names() if "/" in name), *local}))
        self._at_hand = (*local, *(name for name in self._all if name.startswith(prefixes)), ELIZA)

    def offered(self, typed: str) -> Collection[str]:
        """Return the models that begin with what is typed: those that could answer now, else any that is known."""
        at_hand = [name for name in self._at_hand if name.startswith(typed)]
        return at_hand or [name for name in self._all if name.startswith(typed)]

    async def doubt(self, name: str) -> str | None:
        """Return a warning if ``name`` may not be what was meant.

        Raises:
            ModelNameError: it cannot be meant.
        """
        names, providers = await asyncio.to_thread(lambda: (self._known.names(), self._known.providers()))
        return model_names.doubt_about(name, names, providers)
