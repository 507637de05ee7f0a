"""The user's browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import Thread

from chorus_cli.machine.environment import without_secrets


def open_page(environment: Mapping[str, str], address: str) -> None:
    """Open a page in the user's browser, if there is one, and return at once; the browser outlives Chorus."""
    # A browser started by this process would get all API keys, and a text browser would take the terminal.
    command = [sys.executable, "-I", "-m", "webbrowser", address]
    Thread(target=_start, args=(command, without_secrets(environment)), name="browser", daemon=True).start()


def _start(command: list[str], environment: Mapping[str, str]) -> None:
    silent = subprocess.DEVNULL
    # If there is no browser, the user still has the address.
    with suppress(OSError):
        subprocess.run(
            command,
            stdin=silent,
            stdout=silent,
            stderr=silent,
            env=environment,
            start_new_session=True,
            check=False,
        )
