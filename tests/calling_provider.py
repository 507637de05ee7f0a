"""A provider on loopback that answers by a script, tools and all, and keeps every request as it came."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk, event


@dataclass(slots=True)
class CallingProvider:
    """A running server: its address, the requests it got, oldest first, and the answers to come.

    Without an answer left it says ``ok``.
    """

    address: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    _script: deque[tuple[int, bytes]] = field(default_factory=deque)

    def say(self, text: str) -> None:
        self._script.append((200, chunk(text) + chunk(finish_reason="stop") + DONE))

    def call(self, *pieces: dict[str, Any], before: str = "", reason: str = "tool_calls") -> None:
        """Enqueue a reply whose calls come in these pieces, a chunk each."""
        words = chunk(before) if before else b""
        chunks = b"".join(call_chunk(piece) for piece in pieces)
        self._script.append((200, words + chunks + chunk(finish_reason=reason) + DONE))

    def refuse(self, status: int, message: str) -> None:
        self._script.append((status, json.dumps({"error": {"message": message}}).encode()))

    def answer(self, body: dict[str, Any]) -> tuple[int, list[bytes]]:
        self.asked.append(body)
        ok = chunk("ok") + chunk(finish_reason="stop") + DONE
        status, reply = self._script.popleft() if self._script else (200, ok)
        return status, [reply]


def piece(
    arguments: str | None = None, *, index: int | None = 0, id_: str | None = None, name: str | None = None
) -> dict[str, Any]:
    """Return a piece of a call in the shape of the OpenAI API, without what is ``None``."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    whole = {"index": index, "id": id_, "type": "function" if id_ else None, "function": function}
    return {key: value for key, value in whole.items() if value is not None}


def call_chunk(*pieces: dict[str, Any]) -> bytes:
    """Return one chunk with pieces of calls."""
    choice = {"index": 0, "delta": {"role": "assistant", "content": None, "tool_calls": list(pieces)}}
    return event(
        {
            "id": "1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice | {"finish_reason": None}],
        }
    )


def split_call(name: str, arguments: object, id_: str = "c1", index: int = 0) -> list[dict[str, Any]]:
    """Return a call in as many pieces as its arguments have characters, and one before them."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return [piece("", index=index, id_=id_, name=name), *(piece(sign, index=index) for sign in written)]


@contextmanager
def calling() -> Iterator[CallingProvider]:
    """Start the server in threads of this process."""
    provider = CallingProvider()
    with serving(provider.answer) as provider.address:
        yield provider
