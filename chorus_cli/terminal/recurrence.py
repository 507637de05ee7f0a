"""The end of a loop that meets the same error again and again."""

from __future__ import annotations

_MAX_EQUAL_ERRORS = 3


class Recurrence:
    """Counts consecutive errors of one kind, so that a loop that survives errors cannot meet one for ever."""

    def __init__(self) -> None:
        self._kind: type[Exception] | None = None
        self._count = 0

    def begin_anew(self) -> None:
        """Forget the errors so far, because the user has done something."""
        self._kind = None

    def survive(self, error: Exception) -> None:
        """Count an error that is shown and then ignored.

        Raises:
            Exception: ``error`` itself, the third time in a row.
        """
        self._count = self._count + 1 if type(error) is self._kind else 1
        self._kind = type(error)
        if self._count >= _MAX_EQUAL_ERRORS:
            raise error
