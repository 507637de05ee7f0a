"""Asks the server that answers for a model how many tokens the model's context holds there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chorus_cli.adapters.models.http_question import Question, json_answer, within
from chorus_cli.adapters.models.server_addresses import is_ollama, server_address, server_key
from chorus_cli.core.context.budget import Limit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PATIENCE_SECONDS = 0.5
# Ollama reserves memory for all the context that it is asked for, and few machines have enough for a whole 128k.
MOST_ASKED_OF_OLLAMA_TOKENS = 16_384

# Outside of these a figure is a mistake: no talk fits into less, and nobody has built more.
_FEWEST_TOKENS, _MOST_TOKENS = 256, 100_000_000
_NUM_CTX = re.compile(r"^num_ctx\s+([0-9]{1,9})\s*$", re.MULTILINE)


def server_limit(
    model: str, environment: Mapping[str, str], patience_seconds: float = PATIENCE_SECONDS
) -> Limit | None:
    """Return what the server of ``model`` says of its context, or ``None`` if it has none, or does not say in time."""
    address = server_address(model, environment)
    if not address or _is_openai(address):
        return None
    name, key = model.partition("/")[2], server_key(model, environment)
    found = _shown if is_ollama(model) else _listed
    return within(patience_seconds, lambda deadline: found(address, name, key, deadline))


def _is_openai(address: str) -> bool:
    """Return whether ``address`` is OpenAI's own, which says nothing of sizes."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return False
    return host == "openai.com" or host.endswith(".openai.com")


def _shown(address: str, name: str, key: str, deadline: float) -> Limit | None:
    """Ask an Ollama: what its user has set for the model is taken, else what the model could hold, within reason."""
    shown = json_answer(address, Question("/api/show", {"model": name}, key), deadline)
    if not isinstance(shown, dict):
        return None
    could_hold = _could_hold(shown.get("model_info"))
    chosen = _chosen(shown.get("parameters"))
    if chosen is not None:
        # Ollama gives no model more than it was trained for, whatever is asked.
        return Limit(min(chosen, could_hold or chosen), "num_ctx in Ollama's Modelfile")
    if could_hold is None:
        return None
    asked = min(could_hold, MOST_ASKED_OF_OLLAMA_TOKENS)
    share = f", {asked:,} of {could_hold:,}" if asked < could_hold else ""
    return Limit(asked, f"Ollama's /api/show{share}")


def _chosen(parameters: object) -> int | None:
    """Return the ``num_ctx`` among the lines of a Modelfile's parameters."""
    if not isinstance(parameters, str):
        return None
    line = _NUM_CTX.search(parameters)
    return _tokens(int(line[1])) if line else None


def _could_hold(information: object) -> int | None:
    """Return the context that a model was trained for, which is named after its architecture."""
    if not isinstance(information, dict):
        return None
    return _tokens(information.get(f"{information.get('general.architecture')}.context_length"))


def _listed(address: str, name: str, key: str, deadline: float) -> Limit | None:
    """Ask a server that speaks the OpenAI API for its list of models, where some say more than OpenAI does."""
    listed = json_answer(address, Question("/models", key=key), deadline)
    models = listed.get("data") if isinstance(listed, dict) else None
    entries = [entry for entry in models if isinstance(entry, dict)] if isinstance(models, list) else []
    named = [entry for entry in entries if entry.get("id") == name]
    # llama.cpp has one model and answers under any name.
    meant = named or (entries if len(entries) == 1 else [])
    return next((limit for entry in meant for limit in _figures(entry)), None)


def _figures(entry: Mapping[str, object]) -> Iterator[Limit]:
    """Yield what an entry says of the context, as vLLM does and as llama.cpp does, best first."""
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
    """Return a number of tokens that can be meant; ``True`` is none, though Python counts with it."""
    if not isinstance(figure, int) or isinstance(figure, bool):
        return None
    return figure if _FEWEST_TOKENS <= figure <= _MOST_TOKENS else None
