"""The outside: providers, the clock, the machine's folders."""

from __future__ import annotations
