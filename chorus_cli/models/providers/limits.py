"""How many tokens a model's context holds: by litellm's map, else by the model's own server, else an estimate."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chorus_cli.core.json import values
from chorus_cli.models.providers.providers import named
from chorus_cli.models.providers.server_addresses import (
    is_ollama,
    is_on_this_machine,
    json_answer,
    server_address,
    server_key,
    within,
)
from chorus_cli.models.rules.budget import Limit
from chorus_cli.models.rules.choice import ELIZA, LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from chorus_cli.models.providers.model_map import ModelMap

DEFAULT_LIMIT_TOKENS = 128_000
LOOPBACK_LIMIT_TOKENS = 8192
SECONDS_UNTIL_ASKED_AGAIN = 60.0

PATIENCE_SECONDS = 0.5
# Ollama reserves memory for the whole context, and few machines have enough for 128k.
MOST_ASKED_OF_OLLAMA_TOKENS = 16_384

# Figures outside these bounds are mistakes.
_FEWEST_TOKENS, _MOST_TOKENS = 256, 100_000_000
_NUM_CTX = re.compile(r"^num_ctx\s+([0-9]{1,9})\s*$", re.MULTILINE)


def server_limit(
    model: str, environment: Mapping[str, str], patience_seconds: float = PATIENCE_SECONDS
) -> Limit | None:
    """Return the limit reported by the server of ``model``; ``None`` without a server, or without an answer in time."""
    address = server_address(model, environment)
    if not address or _is_openai(address):
        return None
    name, key = named(model).model, server_key(model, environment)
    found = _shown if is_ollama(model) else _listed
    return within(patience_seconds, lambda deadline: found(address, name, key, deadline))


def _is_openai(address: str) -> bool:
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return False
    return host == "openai.com" or host.endswith(".openai.com")


def _shown(address: str, name: str, key: str, deadline: float) -> Limit | None:
    """Ask Ollama for the user's num_ctx; failing that, take the model's training context, capped."""
    shown = values.record(json_answer(address, "/api/show", deadline, body={"model": name}, key=key))
    known = values.record(shown.get("model_info"))
    could_hold = _tokens(known.get(f"{known.get('general.architecture')}.context_length"))
    line = _NUM_CTX.search(values.text(shown.get("parameters")))
    chosen = _tokens(int(line[1])) if line else None
    if chosen is not None:
        # Ollama gives no model more than it was trained for, even if num_ctx is larger.
        return Limit(min(chosen, could_hold or chosen), "num_ctx in Ollama's Modelfile")
    if could_hold is None:
        return None
    asked = min(could_hold, MOST_ASKED_OF_OLLAMA_TOKENS)
    share = f", {asked:,} of {could_hold:,}" if asked < could_hold else ""
    return Limit(asked, f"Ollama's /api/show{share}")


def _listed(address: str, name: str, key: str, deadline: float) -> Limit | None:
    """Ask an OpenAI-compatible server for its models, which vLLM and llama.cpp list with their limits."""
    entries = values.records(values.record(json_answer(address, "/models", deadline, key=key)).get("data"))
    named = [entry for entry in entries if entry.get("id") == name]
    # llama.cpp has one model and answers under any name.
    for entry in named or (entries if len(entries) == 1 else []):
        meta = values.record(entry.get("meta"))
        for source, figure in ("max_model_len", entry), ("n_ctx", meta), ("n_ctx_train", meta):
            if tokens := _tokens(figure.get(source)):
                return Limit(tokens, f"the server's {source}")
    return None


def _tokens(figure: object) -> int | None:
    tokens = values.whole_number(figure)
    return tokens if _FEWEST_TOKENS <= tokens <= _MOST_TOKENS else None


class ModelLimits:
    """Limits of models; a server's answer is cached, and without an answer it is asked again after a minute."""

    def __init__(
        self,
        environment: Mapping[str, str],
        model_map: ModelMap,
        ask: Callable[[str, Mapping[str, str]], Limit | None] = server_limit,
        monotonic: Callable[[], float] = time.monotonic,
        of_file: Callable[[str], Limit | None] = lambda _model: None,
    ) -> None:
        self._environment = environment
        self._model_map = model_map
        self._of_file = of_file
        self._ask = ask
        self._monotonic = monotonic
        self._said: dict[str, Limit] = {}
        self._silent_until: dict[str, float] = {}
        self._asking = threading.Lock()

    def of_model(self, model: str) -> Limit:
        """Return the context limit of ``model``; may take half a second, so call it from a thread."""
        if model == ELIZA:
            return Limit(DEFAULT_LIMIT_TOKENS, "the embedded ELIZA")
        if model.startswith(LOCAL):
            return self._of_file(model) or Limit(LOOPBACK_LIMIT_TOKENS, "a model on this machine")
        tokens = self._model_map.limit_tokens(model)
        if tokens is not None and self._model_map.relative(model) is None:
            return Limit(tokens, "litellm's model map")
        return self._from_server(model) or self._likely(model)

    def _from_server(self, model: str) -> Limit | None:
        """Return the server's limit, asking it if need be; concurrent callers wait for the same answer."""
        with self._asking:
            if model in self._said or self._monotonic() < self._silent_until.get(model, 0.0):
                return self._said.get(model)
            limit = self._ask(model, self._environment)
            if limit is None:
                self._silent_until[model] = self._monotonic() + SECONDS_UNTIL_ASKED_AGAIN
            else:
                self._said[model] = limit
            return limit

    def _likely(self, model: str) -> Limit:
        if is_on_this_machine(server_address(model, self._environment)):
            return Limit(LOOPBACK_LIMIT_TOKENS, "a server on this machine", is_assumed=True)
        relative, tokens = self._model_map.relative(model), self._model_map.limit_tokens(model)
        if relative is None or tokens is None:
            return Limit(DEFAULT_LIMIT_TOKENS, "the default", is_assumed=True)
        return Limit(tokens, f"the limit of {relative}", is_assumed=True, relative=relative)
