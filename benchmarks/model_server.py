"""A model server on this machine that nobody here wrote: llmock, which answers at once and always the same."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HOST = "127.0.0.1"
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.05


@contextmanager
def serving(environment: Mapping[str, str]) -> Iterator[str]:
    """Start the server and yield its address as OpenAI's clients want it; stop it in the end.

    Raises:
        RuntimeError: it did not start.
    """
    port = _free_port()
    start = "from llmock.cli import app; app()"
    options = ["--host", _HOST, "--port", str(port), "--response-style", "static", "--tool-mode", "off"]
    options += ["--log-level", "warning"]
    with subprocess.Popen(
        [sys.executable, "-c", start, "serve", *options], env=environment, stdout=subprocess.DEVNULL
    ) as server:
        try:
            _wait_until_open(port, server)
            yield f"http://{_HOST}:{port}/v1"
        finally:
            server.terminate()


def _free_port() -> int:
    with socket.create_server((_HOST, 0)) as found:
        return int(found.getsockname()[1])


def _wait_until_open(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection((_HOST, port)).close()
        except OSError:
            time.sleep(_PAUSE_SECONDS)
        else:
            return
    raise RuntimeError(f"llmock does not listen on port {port}. Is it installed? It comes with the extra 'test'.")
