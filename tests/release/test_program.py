"""``python -m release`` as it is typed."""

from __future__ import annotations

import os
import sys

import pytest

from chorus_cli import __version__
from tests.terminal.command import finished


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ("0.0.1", "--dry-run"),
            1,
            f"0.0.1 is not higher than {__version__}, which pyproject.toml has; choose a higher",
        ),
        (("tomorrow",), 1, "'tomorrow' is no version; write one such as 0.2.0."),
        ((), 2, "usage: python -m release [-h] [--dry-run] VERSION"),
    ],
)
def test_what_cannot_be_released_is_refused_before_anything_is_made(
    arguments: tuple[str, ...], code: int, said: str
) -> None:
    refused = finished([sys.executable, "-m", "release", *arguments], {**os.environ})
    assert refused.code == code
    assert refused.errors.startswith(said)
