"""Keeps the tests away from the user's real data and from real providers: touching either raises.

Python's audit events see every file that is opened and every connection that is made, by whichever library. Programs
that the tests start are kept away by their environment instead: a home that cannot exist, and no way out but loopback.
"""

from __future__ import annotations

import os
import sys
from ipaddress import ip_address
from pathlib import Path

NOWHERE = "/dev/null/home"
DEAD_END = "http://127.0.0.1:9"
_PREFIXES = ("CHORUS_", "XDG_", "LITELLM_", "OPENAI_", "ANTHROPIC_", "OLLAMA_")
_OF_THE_TERMINAL = frozenset({"COLUMNS", "LINES", "EDITOR", "VISUAL", "PAGER"})
_SUFFIXES = ("_API_KEY", "_API_BASE", "_BASE_URL", "_TOKEN", "_SECRET")
_FILE_EVENTS = frozenset({"open", "os.mkdir", "os.rename", "os.remove", "os.link", "sqlite3.connect"})


class RealHomeTouchedError(AssertionError):
    """A test reached for the data of whoever runs it."""


class RealProviderReachedError(AssertionError):
    """A test reached for the network."""


def isolated_environment(original: dict[str, str]) -> dict[str, str]:
    """Return an environment without keys, a home or an Ollama, and with every proxy leading nowhere."""
    kept = {
        name: value
        for name, value in original.items()
        if not name.startswith(_PREFIXES) and not name.upper().endswith(_SUFFIXES) and name not in _OF_THE_TERMINAL
    }
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), DEAD_END)
    loopback = dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost,::1")
    nobody = {"OLLAMA_API_BASE": DEAD_END, "HOME": NOWHERE}
    return {**kept, **proxies, **loopback, **nobody, "TZ": "UTC", "LC_ALL": "C.UTF-8"}


def places_of(home: Path) -> tuple[str, ...]:
    """Return where Chorus keeps a user's data, on Linux and on macOS."""
    below = (".local/share/chorus", ".config/chorus", ".local/state/chorus", "Library/Application Support/chorus")
    return tuple(str(home / place) for place in below)


def install(home: Path) -> None:
    """Watch every file and connection of this process from now on."""
    forbidden = places_of(home)

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event in _FILE_EVENTS:
            for place in arguments[:2]:
                if isinstance(place, str | os.PathLike) and str(os.fspath(place)).startswith(forbidden):
                    raise RealHomeTouchedError(f"{event} {place}")
        elif event == "socket.connect" and not _is_loopback(arguments[1]):
            raise RealProviderReachedError(f"{event} {arguments[1]}")

    sys.addaudithook(watch)


def _is_loopback(address: object) -> bool:
    if not isinstance(address, tuple):
        return True  # a socket of the file system
    host = str(address[0])
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
