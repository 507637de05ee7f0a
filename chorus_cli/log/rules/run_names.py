"""The names of runs: the process, a random number and the machine, such as ``4711-9f8e7d6c@laptop``."""

from __future__ import annotations

import re

_HOST_CHARACTERS = 50


def run_name(process_id: int, random: str, host: str) -> str:
    """Return the name of a run; hyphens in ``host`` become points, because file names have a hyphen after a run."""
    short = re.sub(r"[^\w.]", "_", host.partition(".")[0].replace("-", "."), flags=re.ASCII)
    return f"{process_id}-{random}@{short[:_HOST_CHARACTERS]}"


def host_of(run: str) -> str:
    """Return the machine of a run; empty for a run of an older Chorus."""
    return run.partition("@")[2].replace(".", "-")
