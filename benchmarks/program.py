"""The measured program: how it is started, what its prompt looks like, and a model of a provider."""

from __future__ import annotations

import sys

CHORUS = (sys.executable, "-m", "chorus_cli")
SIGN = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}".encode()
A_PROVIDERS_MODEL = "openai/gpt-4o-mini"
CLEAR_LINE = b"\x15"
