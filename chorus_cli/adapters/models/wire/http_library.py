"""The HTTP library, imported late and without what only its own command line needs."""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress

_COMMAND_LINE = "httpx._main"
# anyio, by which httpx connects, imports the last ones with the first connection, which takes a tenth of a second.
_FIRST_REQUEST_MODULES = ("httpx_sse", "sniffio", "anyio.streams.tls", "anyio._backends._asyncio")


def load() -> None:
    """Import httpx and the modules of its first request; any thread may do so.

    httpx is imported without its command line, which would bring rich and pygments along: half of its import. It goes
    on without that module where one of its libraries is not installed.
    """
    if "httpx" not in sys.modules:
        # Python's own way to say that there is no such module.
        sys.modules[_COMMAND_LINE] = None  # type: ignore[assignment]
        try:
            importlib.import_module("httpx")
        finally:
            sys.modules.pop(_COMMAND_LINE, None)
    for name in _FIRST_REQUEST_MODULES:
        # A later version may have moved one; then the first request is slower, no more.
        with suppress(ImportError):
            importlib.import_module(name)
