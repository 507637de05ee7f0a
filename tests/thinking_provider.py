"""A provider on loopback whose model thinks, waits until it may answer, and reports the tokens of its thoughts."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.calling_provider import call_chunk, split_call
from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk, event

ANSWER, THOUGHT_TOKENS = "Green *tea*.", 640
_PATIENCE_SECONDS = 60


@dataclass
class ThinkingProvider:
    """A running server: ``thoughts`` come in these pieces, the answer once it ``may_answer``.

    Each of the ``calls`` to come is a round of its own, which begins with the thoughts too.
    """

    address: str = ""
    thoughts: Sequence[str] = ("The user", " asks for tea.\n\n", "Green is best.")
    calls: list[str] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment of a chat that talks to it."""
        return {"OPENAI_BASE_URL": self.address, "OPENAI_API_KEY": "sk-of-nobody", "CHORUS_MODEL": "openai/tea"}

    def answer(self, _body: dict[str, Any]) -> tuple[int, Iterator[bytes]]:
        """Return the status and the pieces of the reply to a request."""
        return 200, self._pieces()

    def _pieces(self) -> Iterator[bytes]:
        yield from (chunk(reasoning=piece) for piece in self.thoughts)
        self.may_answer.wait(_PATIENCE_SECONDS)
        if self.calls:
            yield from map(call_chunk, split_call(self.calls.pop(), "{}"))
            yield chunk(finish_reason="tool_calls")
        else:
            yield chunk(ANSWER)
            yield chunk(finish_reason="stop")
        details = {"reasoning_tokens": THOUGHT_TOKENS}
        usage = {"prompt_tokens": 100, "completion_tokens": 700, "completion_tokens_details": details}
        yield event({"id": "1", "object": "chat.completion.chunk", "choices": [], "usage": usage}) + DONE


@contextmanager
def thinking() -> Iterator[ThinkingProvider]:
    """Start the server in threads of this process."""
    provider = ThinkingProvider()
    with serving(provider.answer) as provider.address:
        try:
            yield provider
        finally:
            provider.may_answer.set()
