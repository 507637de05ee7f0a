"""The use cases."""

from __future__ import annotations
