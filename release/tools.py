"""The tools of a release: constraints.txt says their versions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.running import ReleaseError

ADVICE = "python3 -m pip install -c constraints.txt -e '.[release]'"


def pins(constraints: str) -> dict[str, str]:
    """Return the version of each package by its normalised name, of the lines ``name==version``."""
    found = re.findall(r"^([\w.-]+)==([^\s;\\]+)", constraints, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def tools(pyproject: str) -> tuple[str, ...]:
    """Return the names of the packages that make a release: those of the extra, of the build, and of the model map."""
    project = tomllib.loads(pyproject)
    wanted = [*project["build-system"]["requires"], *project["project"]["optional-dependencies"]["release"]]
    return tuple(sorted({canonicalize_name(Requirement(each).name) for each in wanted} | {"litellm", "tiktoken"}))


def check_tools(pyproject: str, constraints: str, installed: Callable[[str], str | None]) -> None:
    """Raise ``ReleaseError`` for the first tool that is not ``installed`` in the version of the constraints."""
    pinned = pins(constraints)
    for name in tools(pyproject):
        version, wanted = installed(name), pinned.get(name)
        if version != wanted:
            here = f"{name} {version} is installed" if version else f"{name} is not installed"
            raise ReleaseError(f"{here}, and constraints.txt has {wanted or 'none'}: {ADVICE}")


def installed_version(name: str) -> str | None:
    """Return the version of an installed package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def check_pinned(requirements: str, constraints: str, environment: Mapping[str, str] | None = None) -> None:
    """Raise ``ReleaseError`` if a package that this platform needs is not pinned; ``requirements`` names all."""
    pinned = pins(constraints)
    for line in requirements.splitlines():
        if "==" not in line or line.startswith((" ", "#")):
            continue
        wanted = Requirement(line.rstrip(" \\"))
        if canonicalize_name(wanted.name) not in pinned and (not wanted.marker or wanted.marker.evaluate(environment)):
            raise ReleaseError(f"constraints.txt has no version of {wanted.name}; add {wanted.name}{wanted.specifier}.")
