"""A terminal chat for language models in which the memory is yours."""

from __future__ import annotations

import gc

__version__ = "0.2.0"
USUAL_THRESHOLDS = gc.get_threshold()
"""Python's own thresholds for collecting garbage, which are raised during a start."""
