"""Pure values and functions: no clock, no files, no SQL, no screen."""

from __future__ import annotations
