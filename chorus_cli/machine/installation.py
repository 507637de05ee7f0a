"""The command that adds packages to the installation of Chorus."""

from __future__ import annotations

import shlex
import sys


def install_command(*packages: str) -> str:
    """Return the command that installs packages beside Chorus, even if there is no pip there, as with uv or pipx."""
    return shlex.join(("python3", "-m", "pip", "--python", sys.executable, "install", *packages))
