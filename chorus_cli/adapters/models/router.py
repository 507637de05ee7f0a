"""One client for all models: the embedded ones by their prefix, the rest through litellm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ModelError
from chorus_cli.core.models.choice import ELIZA

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from chorus_cli.core.models.events import ModelEvent
    from chorus_cli.core.models.exchange import ModelRequest
    from chorus_cli.ports import ModelClient

_EMBEDDED = "chorus/"


@dataclass(frozen=True, slots=True)
class ModelRouter:
    """Sends a request to the client that serves its model."""

    eliza: ModelClient
    providers: ModelClient

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the reply of the client that serves the model.

        Raises:
            ModelError: no embedded model has that name, or the client's own reasons.
        """
        if request.model == ELIZA:
            return self.eliza.stream(request)
        if request.model.startswith(_EMBEDDED):
            raise ModelError(f"There is no embedded model {request.model!r}; the only one is {ELIZA}.")
        return self.providers.stream(request)
