"""A provider on loopback whose summaries keep every word with an exclamation mark; it fails and waits as it is told."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk, usage_chunk
from tests.remembering import summary_of, wants_summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Messages = Sequence[dict[str, Any]]

_PATIENCE_SECONDS = 20


@dataclass(slots=True)
class RememberingProvider:
    """A running server: its address, what it was asked, oldest first, and how it treats whoever wants a summary.

    ``status`` is what that is answered with, and ``is_mute`` makes it an answer without a word. As long as
    ``may_write`` is clear it is kept waiting; ``writes_once`` clears it when a summary was written. ``tokens`` are
    those of prompt and text that each summary reports. The talk is answered with the first word of what was said.
    """

    address: str = ""
    asked: list[Messages] = field(default_factory=list)
    status: int = 200
    is_mute: bool = False
    writes_once: bool = False
    tokens: tuple[int, int] | None = None
    may_write: threading.Event = field(default_factory=threading.Event)

    def answer(self, body: dict[str, Any]) -> tuple[int, list[bytes]]:
        """Return the status of the answer to a request, and its body."""
        status, reply = self._answer(body["messages"])
        return status, [reply if status == 200 else b""]

    def _answer(self, messages: Messages) -> tuple[int, bytes]:
        self.asked.append(messages)
        said = str(messages[-1]["content"])
        if not is_for_summary(messages):
            return 200, _reply(f"Noted: {said.split(maxsplit=1)[0]}")
        self.may_write.wait(_PATIENCE_SECONDS)
        if self.writes_once:
            self.may_write.clear()
        return self.status, _reply("" if self.is_mute else summary_of(said), self.tokens)


def is_for_summary(messages: Messages) -> bool:
    """Return whether a request is for a summary, and no part of the talk."""
    return wants_summary(str(messages[0]["content"]))


@contextmanager
def remembering() -> Iterator[RememberingProvider]:
    """Start the server in threads of this process."""
    provider = RememberingProvider()
    provider.may_write.set()
    with serving(provider.answer) as provider.address:
        try:
            yield provider
        finally:
            provider.may_write.set()


def _reply(text: str, tokens: tuple[int, int] | None = None) -> bytes:
    return chunk(text) + chunk(finish_reason="stop") + (usage_chunk(*tokens) if tokens else b"") + DONE
