"""A provider on loopback that begins every reply at once and ends it when it is told to."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk

_PATIENCE_SECONDS = 60


@dataclass(slots=True)
class SlowProvider:
    """A running server: its address, and the requests it got, oldest first.

    The reply to a message whose last line begins with ``word`` is ``About word``, and ``: all.`` after it is finished.
    """

    address: str = ""
    asked: list[list[dict[str, Any]]] = field(default_factory=list)
    _may_finish: dict[str, threading.Event] = field(default_factory=lambda: defaultdict(threading.Event))

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment of a chat that talks to it."""
        return {"OPENAI_BASE_URL": self.address, "OPENAI_API_KEY": "sk-of-nobody", "CHORUS_MODEL": "openai/slow"}

    def finish(self, *words: str) -> None:
        """End the replies to these messages, also those to come."""
        for word in words:
            self._may_finish[word].set()

    def request_of(self, word: str) -> list[dict[str, Any]]:
        """Return the messages of the newest request whose last message begins with ``word``."""
        return next(messages for messages in reversed(self.asked) if _word(messages) == word)

    def answer(self, body: dict[str, Any]) -> tuple[int, Iterator[bytes]]:
        """Keep a request, and return its status and the pieces of its reply."""
        self.asked.append(body["messages"])
        return 200, self._pieces(_word(body["messages"]))

    def _pieces(self, word: str) -> Iterator[bytes]:
        yield chunk(f"About {word}")
        self._may_finish[word].wait(_PATIENCE_SECONDS)
        yield chunk(": all.") + chunk(finish_reason="stop") + DONE


def _word(messages: list[dict[str, Any]]) -> str:
    return str(messages[-1]["content"]).rsplit("\n", 1)[-1].split()[0]


@contextmanager
def slow() -> Iterator[SlowProvider]:
    """Start the server in threads of this process."""
    provider = SlowProvider()
    with serving(provider.answer) as provider.address:
        yield provider
