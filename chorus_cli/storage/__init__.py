"""All that lasts: the SQLite database and the files."""

from __future__ import annotations
