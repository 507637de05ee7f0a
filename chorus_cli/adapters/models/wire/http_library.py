"""The HTTP library, imported late and without what only its own command line needs."""

from __future__ import annotations

import sys

_COMMAND_LINE = "httpx._main"


def load() -> None:
    """Import httpx without its command line, which would bring rich and pygments along: half of its import.

    httpx itself goes on without that module where one of its libraries is not installed.
    """
    if "httpx" in sys.modules:
        return
    # Python's own way to say that there is no such module.
    sys.modules[_COMMAND_LINE] = None  # type: ignore[assignment]
    try:
        import httpx  # noqa: F401, PLC0415 - imported beside the prompt
    finally:
        del sys.modules[_COMMAND_LINE]
