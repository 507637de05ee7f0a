"""Where packages are installed, found without importing them: their data is of use without their code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from chorus_cli.core.errors import ModelError


def package_folder(name: str) -> Path | None:
    """Return the folder of an installed package without importing it; ``None`` if it is not installed."""
    spec = importlib.util.find_spec(name)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def installation_folder() -> Path:
    """Return the folder of the installed litellm without importing it.

    Raises:
        ModelError: it is not installed.
    """
    folder = package_folder("litellm")
    if folder is None:
        raise ModelError(
            "litellm is not installed, and every model but chorus/eliza needs it. Install it with: pip install litellm."
        )
    return folder
