"""What the tests of the adapters share: a mock provider, and an environment without the machine's own keys."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class MockProvider:
    """A running llmock: its address, and the faults it is told to make."""

    address: str

    def behave(self, **behaviour: object) -> None:
        """Forget what was, and treat the next request as ``behaviour`` says."""
        self._post("/_llmock/reset", {})
        self._post("/_llmock/scenario", {"behaviors": [behaviour]})

    def request_count(self) -> int:
        with urlopen(f"{self.address}/_llmock/requests", timeout=5) as answer:  # noqa: S310 - loopback
            return int(json.load(answer)["count"])

    def is_up(self) -> bool:
        try:
            with urlopen(f"{self.address}/health", timeout=1):  # noqa: S310 - loopback
                return True
        except (URLError, OSError):
            return False

    def _post(self, path: str, document: object) -> None:
        request = Request(f"{self.address}{path}", data=json.dumps(document).encode())  # noqa: S310 - loopback
        with urlopen(request, timeout=5):  # noqa: S310 - loopback
            pass


@pytest.fixture(scope="module")
def mock_provider() -> Iterator[MockProvider]:
    port = free_port()
    program = Path(sys.executable).with_name("llmock")
    command = [str(program), "serve", "--port", str(port), "--log-level", "critical"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        provider = MockProvider(f"http://127.0.0.1:{port}")
        deadline = time.monotonic() + 20
        while not provider.is_up():
            assert time.monotonic() < deadline, "llmock does not start"
            time.sleep(0.05)
        yield provider
        process.terminate()


@pytest.fixture
def test_key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Take the machine's keys and addresses out of the environment, put a key for OpenAI in, and return that."""
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_TOKEN", "_API_BASE", "_BASE_URL")):
            monkeypatch.delenv(name)
    key = "sk-test-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    return key


def free_port() -> int:
    """Return a port of loopback on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
