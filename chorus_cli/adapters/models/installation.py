"""Where litellm is installed, found without importing it: its data is of use without its code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from chorus_cli.core.errors import ModelError


def installation_folder() -> Path:
    """Return the folder of the installed litellm without importing it.

    Raises:
        ModelError: it is not installed.
    """
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        raise ModelError(
            "litellm is not installed, and every model but chorus/eliza needs it. Install it with: pip install litellm."
        )
    return Path(spec.origin).parent
