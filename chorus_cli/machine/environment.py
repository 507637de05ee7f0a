"""The environment of other programs, such as jobs, editors and clipboard tools: the user's own, without secrets.

The umask of Chorus lets only the user read its files; other programs get the umask that the user had set.
"""

from __future__ import annotations

from collections.abc import Mapping

LOG = "CHORUS_LOG"
"""The environment variable that names the log."""
_UMASK = "CHORUS_UMASK"


def with_umask(environment: Mapping[str, str], mask: int) -> dict[str, str]:
    """Return the environment with ``mask``, the umask that the user had when Chorus was started."""
    return {**environment, _UMASK: f"{mask:o}"}


def umask_of(environment: Mapping[str, str]) -> int:
    """Return the user's umask; -1, which changes no umask, if the environment does not contain it."""
    return int(environment.get(_UMASK, "-1"), 8)


def withheld_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of variables that other programs do not get, because the names or values look like secrets."""
    from chorus_cli.core.text.redaction import (  # noqa: PLC0415 - for a fast start
        has_password,
        is_secret_name,
        is_shaped_like_key,
    )

    found = {name for name, value in environment.items() if is_secret_name(name) or is_shaped_like_key(value)}
    found |= {LOG} if has_password(environment.get(LOG, "")) else set()
    return tuple(sorted(found))


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for another program, without secrets and without the variable that carries the umask."""
    withheld = set(withheld_names(environment))
    return {name: value for name, value in environment.items() if name not in {*withheld, _UMASK}}
