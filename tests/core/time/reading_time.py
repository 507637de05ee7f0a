"""A Friday afternoon in Berlin, from which times are read, and a fresh interpreter that reads them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from chorus_cli.core.time.timespan import Span

HOUR = 3600
DAY = 24 * HOUR
BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 20, 15, 30, tzinfo=BERLIN)  # a Friday


def moment_of(span: Span, now: datetime) -> datetime:
    return now.astimezone(UTC) - timedelta(seconds=span.seconds)


def printed(statements: str) -> list[str]:
    """Return the output of a fresh interpreter in which every warning is an error."""
    lines = f"import sys\nfrom datetime import *\nfrom chorus_cli.core.time.timespan import parse\n{statements}"
    command = [sys.executable, "-W", "error", "-c", lines]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.stderr == ""
    return result.stdout.split()
