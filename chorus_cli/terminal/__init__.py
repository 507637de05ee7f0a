"""The terminal: the only rooms that know prompt_toolkit and rich."""

from __future__ import annotations
