"""The environment of other programs, such as jobs, editors and clipboard tools: the user's own, without secrets.

Chorus makes files for its user only; the files of other programs have the permissions that the user's own mask leaves.
"""

from __future__ import annotations

from collections.abc import Mapping

_UMASK = "CHORUS_UMASK"


def with_umask(environment: Mapping[str, str], mask: int) -> dict[str, str]:
    """Return the environment with the mask of permissions that the user had when Chorus was started."""
    return {**environment, _UMASK: f"{mask:o}"}


def umask_of(environment: Mapping[str, str]) -> int:
    """Return the user's mask of permissions; -1 if it is not in the environment, which means: as it is now."""
    return int(environment.get(_UMASK, "-1"), 8)


def withheld_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables that no other program is given: keys of providers, and all like secrets."""
    from chorus_cli.core.text.redaction import is_secret_name, is_shaped_like_key  # noqa: PLC0415 - not for a start

    return tuple(
        sorted(name for name, value in environment.items() if is_secret_name(name) or is_shaped_like_key(value))
    )


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of another program."""
    withheld = set(withheld_names(environment))
    return {name: value for name, value in environment.items() if name not in {*withheld, _UMASK}}
