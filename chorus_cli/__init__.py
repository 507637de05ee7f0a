"""A terminal chat for language models in which the memory is yours."""

from __future__ import annotations

__version__ = "0.1.0"
