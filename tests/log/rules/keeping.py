"""An act of the tests alone, as somebody might add one: it keeps messages in context whatever their age."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from chorus_cli.log.rules.acts import ACTS
from chorus_cli.log.rules.log_acts import Act, Inclusion


@dataclass(frozen=True, slots=True)
class Keep(Inclusion):
    """Messages kept in context."""

    kind = "keep"

    def describe(self) -> str:
        """Name the act."""
        return f"kept {', '.join(f'#{member}' for member in self.members)}"


@contextmanager
def registered() -> Iterator[None]:
    """Let the journal know the act meanwhile."""
    acts = cast("dict[str, type[Act]]", ACTS)
    acts[Keep.kind] = Keep
    try:
        yield
    finally:
        del acts[Keep.kind]
