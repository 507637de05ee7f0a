"""How many tokens a model's context holds: by litellm's map, else by the model's own server, else an estimate."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chorus_cli.models.providers.providers import named
from chorus_cli.models.providers.server_addresses import (
    Question,
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
    from collections.abc import Callable, Iterator, Mapping

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
    shown = json_answer(address, Question("/api/show", {"model": name}, key), deadline)
    if not isinstance(shown, dict):
        return None
    could_hold = _could_hold(shown.get("model_info"))
    chosen = _chosen(shown.get("parameters"))
    if chosen is not None:
        # Ollama gives no model more than it was trained for, even if num_ctx is larger.
        return Limit(min(chosen, could_hold or chosen), "num_ctx in Ollama's Modelfile")
    if could_hold is None:
        return None
    asked = min(could_hold, MOST_ASKED_OF_OLLAMA_TOKENS)
    share = f", {asked:,} of {could_hold:,}" if asked < could_hold else ""
    return Limit(asked, f"Ollama's /api/show{share}")


def _chosen(parameters: object) -> int | None:
    if not isinstance(parameters, str):
        return None
    line = _NUM_CTX.search(parameters)
    return _tokens(int(line[1])) if line else None


def _could_hold(information: object) -> int | None:
    if not isinstance(information, dict):
        return None
    return _tokens(information.get(f"{information.get('general.architecture')}.context_length"))


def _listed(address: str, name: str, key: str, deadline: float) -> Limit | None:
    """Ask an OpenAI-compatible server for its models, which some list with their limits."""
    listed = json_answer(address, Question("/models", key=key), deadline)
    models = listed.get("data") if isinstance(listed, dict) else None
    entries = [entry for entry in models if isinstance(entry, dict)] if isinstance(models, list) else []
    named = [entry for entry in entries if entry.get("id") == name]
    # llama.cpp has one model and answers under any name.
    meant = named or (entries if len(entries) == 1 else [])
    return next((limit for entry in meant for limit in _figures(entry)), None)


def _figures(entry: Mapping[str, object]) -> Iterator[Limit]:
    meta = entry.get("meta")
    llama = meta if isinstance(meta, dict) else {}
    said = {
        "max_model_len": entry.get("max_model_len"),
        "n_ctx": llama.get("n_ctx"),
        "n_ctx_train": llama.get("n_ctx_train"),
    }
    for name, figure in said.items():
        tokens = _tokens(figure)
        if tokens is not None:
            yield Limit(tokens, f"the server's {name}")


def _tokens(figure: object) -> int | None:
    """Return a plausible number of tokens, else ``None``; ``True`` is not a number here."""
    if not isinstance(figure, int) or isinstance(figure, bool):
        return None
    return figure if _FEWEST_TOKENS <= figure <= _MOST_TOKENS else None


class ModelLimits:
    """Limits of models; ``of_file`` returns that of a local one.

    A server's answer is cached; without an answer it is asked again after a minute.
    """

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
