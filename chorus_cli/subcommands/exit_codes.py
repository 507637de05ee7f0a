"""Exit codes of the process; one ended by signal n exits with 128 + n."""

from __future__ import annotations

DONE = 0
FAILED = 1
WRONG_ARGUMENTS = 2
BUG = 3
