"""What a release says about itself: requirements with hashes, a bill of materials, links."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from release.building import digest
from release.environments import Environment
from release.needs import needed
from release.running import ReleaseError, run, tool

PACKAGE = "chorus-cli"


def resolved(checkout: Path, *options: str) -> str:
    """Return all that the package needs, on any platform, in the versions of constraints.txt."""
    plain = ("--quiet", "--universal", "--no-header", "--no-annotate", "--constraint", "constraints.txt")
    return run("uv pip compile", tool("uv", "pip", "compile", *plain, *options, "pyproject.toml"), checkout)


def hashed_requirements(version: str, files: Iterable[Path], needs: str) -> str:
    """Return requirements that pip checks by their hashes: the release's own ``files``, then its ``needs``."""
    own = " ".join(f"--hash=sha256:{digest(file)}" for file in files)
    return f"{PACKAGE}=={version} {own}\n{needs}"


def write_bill(path: Path, environment: Environment, pyproject: Path, version: str) -> None:
    """Write the bill of materials, CycloneDX in JSON: Chorus, and the packages of an environment."""
    what = ("environment", environment.python, "--pyproject", pyproject, "--mc-type", "application")
    run("cyclonedx-py", tool("cyclonedx_py", *what, "--output-reproducible", "--output-file", path))
    parts = needed(PACKAGE, distributions(path=[str(environment.packages)]))
    check_bill(path.read_text(encoding="utf-8"), version, [each.name for each in parts])


def check_bill(text: str, version: str, names: Iterable[str]) -> None:
    """Raise ``ReleaseError`` unless a bill describes Chorus in a version, and lists the packages ``names``."""
    bill: dict[str, Any] = json.loads(text)
    subject = bill["metadata"].get("component", {})
    if (subject.get("name"), subject.get("version")) != (PACKAGE, version):
        raise ReleaseError(f"The bill of materials does not name {PACKAGE} {version}; see what cyclonedx-py writes.")
    listed = {canonicalize_name(each["name"]) for each in (subject, *bill.get("components", ()))}
    if missing := sorted({canonicalize_name(name) for name in names} - listed):
        raise ReleaseError(f"The bill of materials lacks {missing[0]}; see what cyclonedx-py writes.")


def missing_repository(pyproject: str) -> str | None:
    """Return a sentence if the setting from which the page of the package gets its links is empty."""
    if tomllib.loads(pyproject)["tool"]["chorus"]["repository"]:
        return None
    return "[tool.chorus] in pyproject.toml names no repository: the package page has no links and no pictures."
