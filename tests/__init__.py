"""The tests: one module for each module of the package, and stories that drive the real program."""

from __future__ import annotations
