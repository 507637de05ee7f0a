"""Whether a commit stands that was reported as failed: another connection to the file looks for its token.

Only the commit's own token tells: another program may have committed since, after this one was rolled back.
"""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.storage import meta_rows

if TYPE_CHECKING:
    from pathlib import Path


class Tokens(NamedTuple):
    """The tokens of the last commit before a transaction, ``None`` if there is none, and of the transaction itself."""

    before: str | None
    own: str


class Witness(NamedTuple):
    """Another connection to the file at ``path``."""

    path: Path
    connection: sqlite3.Connection

    def stands(self, tokens: Tokens) -> bool | None:
        """Return whether a commit is in the file, ``None`` if that is not known.

        A journal that the commit has left is rolled back by this, as by the next reader.
        """
        try:
            found = meta_rows.value(self.connection, meta_rows.LAST_COMMIT)
        except sqlite3.Error:
            return False if self._has_journal() else None
        return True if found == tokens.own else False if found == tokens.before else None

    def _has_journal(self) -> bool:
        """Return whether the next reader will bring old pages back."""
        journal = self.path.with_name(f"{self.path.name}-journal")
        try:
            return journal.stat().st_size > 0
        except OSError:
            return False


def mark(connection: sqlite3.Connection) -> Tokens:
    """Store a token of the transaction, by which its commit is recognised."""
    tokens = Tokens(meta_rows.value(connection, meta_rows.LAST_COMMIT), os.urandom(8).hex())
    meta_rows.store(connection, meta_rows.LAST_COMMIT, tokens.own)
    return tokens
