"""The tests: a module or a few for each module of the package, and stories that drive the real program."""

from __future__ import annotations
