"""How fast Chorus is: each figure beside a reference that is measured in the same run."""

from __future__ import annotations
