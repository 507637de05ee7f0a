"""Exit codes of the process. If signal n ends it, the exit code is 128 + n."""

from __future__ import annotations

DONE = 0
FAILED = 1
WRONG_ARGUMENTS = 2
BUG = 3
