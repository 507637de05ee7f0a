"""Which signs the terminal's locale can show."""

from __future__ import annotations

import locale


def knows_unicode() -> bool:
    """Return whether text goes to the terminal as UTF-8."""
    return locale.getpreferredencoding(do_setlocale=False).lower().startswith("utf")
