"""A provider on loopback that keeps what it was asked and answers ``seen.``"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk, usage_chunk


@dataclass
class Recorder:
    """The bodies of the requests, and the variables by which Chorus asks this server for a model."""

    address: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    tokens: tuple[int, int] | None = None
    """The tokens of prompt and reply that each answer reports."""

    def environment(self, model: str = "openai/gpt-4o") -> dict[str, str]:
        return {"CHORUS_MODEL": model, "OPENAI_BASE_URL": self.address, "OPENAI_API_KEY": "sk-test-0123456789abcdef"}

    def contents(self) -> list[Any]:
        """Return the content of the last message of each request."""
        return [body["messages"][-1]["content"] for body in self.bodies]

    def answer(self, body: dict[str, Any]) -> tuple[int, list[bytes]]:
        self.bodies.append(body)
        usage = usage_chunk(*self.tokens) if self.tokens else b""
        return 200, [chunk("seen."), chunk(finish_reason="stop") + usage + DONE]


@contextmanager
def recording() -> Iterator[Recorder]:
    recorder = Recorder()
    with serving(recorder.answer) as recorder.address:
        yield recorder
