"""How many tokens a model's context holds: by litellm's map, else by its server, else what is likely."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING

from chorus_cli.adapters.models.server_addresses import is_on_this_machine, server_address
from chorus_cli.adapters.models.server_limits import server_limit
from chorus_cli.core.context.budget import Limit
from chorus_cli.core.models.choice import ELIZA

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from chorus_cli.adapters.models.model_map import ModelMap

DEFAULT_LIMIT_TOKENS = 128_000
LOOPBACK_LIMIT_TOKENS = 8192
SECONDS_UNTIL_ASKED_AGAIN = 60.0
# What all of a family take, for the members that litellm's map lacks. The first that fits counts.
_FAMILIES = (
    (r"claude-(?:2|instant)", "early Claude", 100_000),
    (r"claude-", "Claude", 200_000),
    (r"gemini-(?:pro|1\.0)", "Gemini 1.0", 32_000),
    (r"gemini-", "Gemini", 1_000_000),
    (r"gpt-4\.1", "GPT-4.1", 1_000_000),
    (r"gpt-5", "GPT-5", 272_000),
    (r"o1-(?:mini|preview)", "o1-mini", 128_000),
    (r"o[134](?:-|$)", "OpenAI's o", 200_000),
    (r"grok-4", "Grok 4", 256_000),
)


class ModelLimits:
    """Keeps what servers say: each is asked once for a model, and one that did not say again after a minute."""

    def __init__(
        self,
        environment: Mapping[str, str],
        model_map: ModelMap,
        ask: Callable[[str, Mapping[str, str]], Limit | None] = server_limit,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._environment = environment
        self._model_map = model_map
        self._ask = ask
        self._monotonic = monotonic
        self._said: dict[str, Limit] = {}
        self._silent_until: dict[str, float] = {}
        self._asking = threading.Lock()

    def of_model(self, model: str) -> Limit:
        """Return what ``model``'s context holds; may take half a second, so call it from a thread."""
        if model == ELIZA:
            return Limit(DEFAULT_LIMIT_TOKENS, "the embedded ELIZA")
        tokens = self._model_map.limit_tokens(model)
        if tokens is not None:
            return Limit(tokens, "litellm's model map")
        return self._from_server(model) or self._likely(model)

    def _from_server(self, model: str) -> Limit | None:
        """Return what the server said, asking it if it is time; whoever comes meanwhile waits for the answer."""
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
            return Limit(LOOPBACK_LIMIT_TOKENS, "a server on this machine")
        return _of_family(model) or Limit(DEFAULT_LIMIT_TOKENS, "the default")


def _of_family(model: str) -> Limit | None:
    """Return what the family of ``model`` takes: of ``openrouter/anthropic/claude-x`` the family is that of Claude."""
    for pattern, family, tokens in _FAMILIES:
        # Bedrock parts the maker from the model by a dot.
        if re.search(rf"(?:^|[/.]){pattern}", model):
            return Limit(tokens, f"by its family, {family}")
    return None
