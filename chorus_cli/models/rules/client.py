"""The interface of everything that answers: models over the wire or through litellm, ELIZA, a script in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from chorus_cli.models.rules.events import ModelEvent
    from chorus_cli.models.rules.request import ModelRequest


class ModelClient(Protocol):
    """A source of replies: a provider over the wire or through litellm, the embedded ELIZA, a script in tests."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the reply as it comes, and ``ReplyEnd`` last, unless the stream was cut.

        Raises:
            ModelError: the provider refused, failed or fell silent; the events already yielded remain valid.
        """
        ...
