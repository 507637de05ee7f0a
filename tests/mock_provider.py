"""A provider that nobody here wrote: llmock on loopback, told which faults to make, asked what it was sent."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen


@dataclass(frozen=True, slots=True)
class MockProvider:
    """A running llmock: its address, and the faults it is told to make."""

    address: str

    def behave(self, **behaviour: object) -> None:
        """Forget what was, and treat the next request for a reply as ``behaviour`` says."""
        self._post("/_llmock/reset", {})
        self._post("/_llmock/scenario", {"behaviors": [{"match": {"stream": True}, **behaviour}]})

    def requests(self) -> list[list[dict[str, Any]]]:
        # What is asked for besides, such as the list of models, is not streamed.
        return [request["body"]["messages"] for request in self._recorded()["requests"] if request["stream"]]

    def request_count(self) -> int:
        return len(self.requests())

    def is_up(self) -> bool:
        try:
            with urlopen(f"{self.address}/health", timeout=1):  # noqa: S310 - loopback
                return True
        except (URLError, OSError):
            return False

    def _recorded(self) -> dict[str, Any]:
        with urlopen(f"{self.address}/_llmock/requests", timeout=5) as answer:  # noqa: S310 - loopback
            recorded: dict[str, Any] = json.load(answer)
        return recorded

    def _post(self, path: str, document: object) -> None:
        request = Request(f"{self.address}{path}", data=json.dumps(document).encode())  # noqa: S310 - loopback
        with urlopen(request, timeout=5):  # noqa: S310 - loopback
            pass


@contextmanager
def running() -> Iterator[MockProvider]:
    """Start llmock on a free port and stop it again."""
    port = free_port()
    program = Path(sys.executable).with_name("llmock")
    command = [str(program), "serve", "--port", str(port), "--log-level", "critical", "--tool-mode", "off"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        provider = MockProvider(f"http://127.0.0.1:{port}")
        deadline = time.monotonic() + 20
        try:
            while not provider.is_up():
                assert time.monotonic() < deadline, "llmock does not start"
                time.sleep(0.05)
            yield provider
        finally:
            process.terminate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
