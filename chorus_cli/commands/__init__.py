"""What the user can type: a handler answers with a value and draws nothing."""

from __future__ import annotations
