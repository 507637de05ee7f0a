"""Keeps a loop that survives every error from meeting the same one for ever."""

from __future__ import annotations

_MOST = 3


class Recurrence:
    """How often an error of the same kind has come since the user last did something."""

    def __init__(self) -> None:
        self._kind: type[Exception] | None = None
        self._count = 0

    def begin_anew(self) -> None:
        """Forget what has come: the user is there."""
        self._kind = None

    def survive(self, error: Exception) -> None:
        """Count an error that is to be told and then forgotten.

        Raises:
            Exception: ``error`` itself, the third time in a row.
        """
        self._count = self._count + 1 if type(error) is self._kind else 1
        self._kind = type(error)
        if self._count >= _MOST:
            raise error
