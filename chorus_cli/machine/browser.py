"""The user's browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import Thread

from chorus_cli.machine.environment import without_secrets


def open_page(environment: Mapping[str, str], address: str) -> None:
    """Open a page in the user's browser, if there is one, and go on at once; the browser outlives Chorus."""
    # A browser in this process would get all keys, and one without windows would take the terminal.
    command = [sys.executable, "-I", "-m", "webbrowser", address]
    Thread(target=_start, args=(command, without_secrets(environment)), name="browser", daemon=True).start()


def _start(command: list[str], environment: Mapping[str, str]) -> None:
    silent = subprocess.DEVNULL
    # The user has the address too.
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
