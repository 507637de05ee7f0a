"""Which of its thoughts a model gets back."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Span(Enum):
    """How long a model is sent its own thoughts again."""

    NEVER = "never"
    TURN = "within the turn"
    EVER = "for ever"


class Echo(NamedTuple):
    """Which thoughts a model is sent again: for how long, and those of all replies or of ``calls_only``.

    Thoughts that are ``is_bound`` hold only while everything before them is sent as it was. With ``own_calls_only``
    the model takes no call of another one.
    """

    span: Span = Span.NEVER
    calls_only: bool = True
    is_bound: bool = False
    own_calls_only: bool = False


NO_ECHO = Echo()
