"""Keeps the tokens from sign-ins to servers in a file that only the user can read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from chorus_cli.core import limits
from chorus_cli.core.errors import SettingsError
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.storage import file_lock
from chorus_cli.storage.files import read_within, write_atomically

_SECRETS = frozenset({"access_token", "refresh_token", "client_secret"})


class Tokens:
    """An entry for each server with a sign-in, by its address; without a ``file``, entries last until the run ends.

    An entry has the server's tokens and all that `oauth` needs to renew them. An unreadable file counts as empty.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._in_memory: dict[str, JsonValue] = {}

    def of(self, address: str) -> Mapping[str, JsonValue]:
        """Return the entry of a server; empty if the user is not signed in to it."""
        entry = self._entries().get(address)
        return entry if isinstance(entry, dict) else {}

    def secrets(self, address: str) -> tuple[str, ...]:
        """Return the secret texts in a server's entry: its tokens and Chorus's client secret."""
        parts = [part for part in self.of(address).values() if isinstance(part, dict)]
        return tuple(str(text) for part in parts for name, text in part.items() if name in _SECRETS)

    def keep(self, address: str, entry: Mapping[str, JsonValue]) -> None:
        """Keep the entry of a server; raise a ``SettingsError`` if the file cannot be changed."""
        with self._changing() as entries:
            entries[address] = dict(entry)

    def forget(self, address: str) -> bool:
        """Delete the entry of a server; return whether there was one. Raise a ``SettingsError`` as `keep` does."""
        if not self.of(address):
            return False
        with self._changing() as entries:
            return entries.pop(address, None) is not None

    def _entries(self) -> dict[str, JsonValue]:
        if self._file is None:
            return self._in_memory
        with suppress(OSError, ValueError, RecursionError):
            found = json.loads(read_within(self._file, limits.TOKENS_FILE))
            if isinstance(found, dict):
                return found
        return {}

    @contextmanager
    def _changing(self) -> Iterator[dict[str, JsonValue]]:
        if self._file is None:
            yield self._in_memory
            return
        try:
            with file_lock.locked(self._file):
                entries = self._entries()
                yield entries
                write_atomically(self._file, json.dumps(entries, indent=2) + "\n")
        except OSError as error:
            raise SettingsError(f"The tokens in {self._file} cannot be changed: {error.strerror or error}.") from error
