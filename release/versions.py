"""The version and the changelog of a release."""

from __future__ import annotations

import tomllib
from datetime import date

from packaging.version import InvalidVersion, Version

from release.running import ReleaseError

PLACES = {
    "pyproject.toml": '\nversion = "{}"\n',
    "chorus_cli/__init__.py": '\n__version__ = "{}"\n',
    "docs/package.md": "Chorus {}. ",
    "docs/repl.svg": "Chorus {}. ",
    "docs/toolbar.svg": "Chorus {}. ",
}
"""The files of the checkout that hold the version, each with the text around it."""

CHANGELOG = "CHANGELOG.md"
_NUMBERS = 3
_UNRELEASED = "## Unreleased\n"


def current_version(pyproject: str) -> str:
    """Return the version that ``pyproject.toml`` holds."""
    version: str = tomllib.loads(pyproject)["project"]["version"]
    return version


def check_next(current: str, wanted: str) -> None:
    """Raise ``ReleaseError`` unless ``wanted`` is a version after ``current``, in its usual spelling."""
    try:
        version = Version(wanted)
    except InvalidVersion:
        raise ReleaseError(f"{wanted!r} is no version; write one such as 0.2.0.") from None
    if str(version) != wanted or len(version.release) != _NUMBERS:
        raise ReleaseError(f"{wanted!r} is not written as versions of Chorus are; write one such as 0.2.0 or 0.2.0rc1.")
    if version <= Version(current):
        raise ReleaseError(f"{wanted} is not higher than {current}, which pyproject.toml has; choose a higher version.")


def bumped(path: str, text: str, current: str, wanted: str) -> str:
    """Return the text of one of ``PLACES`` with the version ``wanted``."""
    old, new = PLACES[path].format(current), PLACES[path].format(wanted)
    if text.count(old) != 1:
        raise ReleaseError(f"{path} has {old.strip()!r} {text.count(old)} times, and a release changes it once.")
    return text.replace(old, new)


def check_changelog(changelog: str) -> None:
    """Raise ``ReleaseError`` if the changelog has no text under Unreleased."""
    if not changelog.partition(_UNRELEASED)[2].partition("\n## ")[0].strip():
        raise ReleaseError(f"{CHANGELOG} has nothing under Unreleased; write there what users will notice.")


def dated(changelog: str, version: str, day: date) -> str:
    """Return the changelog with the text of ``Unreleased`` under ``version`` and its day, and ``Unreleased`` empty."""
    before, heading, after = changelog.partition(_UNRELEASED)
    return f"{before}{heading}\n## {version} \N{EN DASH} {day}\n{after}"
