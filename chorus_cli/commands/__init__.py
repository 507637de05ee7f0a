"""The slash commands: each handler returns a value and draws nothing."""

from __future__ import annotations
