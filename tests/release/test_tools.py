from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.needs import needed
from release.running import ReleaseError
from release.tools import check_pinned, check_tools, pins, tools

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT, CONSTRAINTS = ((ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "constraints.txt"))


def requirements() -> Iterator[Requirement]:
    """Yield what pyproject.toml wants: for the build, for the program, and for each extra."""
    project = tomllib.loads(PYPROJECT)
    extras = project["project"]["optional-dependencies"].values()
    for lines in (project["build-system"]["requires"], project["project"]["dependencies"], *extras):
        yield from map(Requirement, lines)


def test_the_constraints_pin_all_that_the_package_and_its_extras_need() -> None:
    installed = tuple(distributions())
    wanted = {canonicalize_name(each.name) for each in requirements()}
    assert {"httpx", "litellm", "mypy", "twine", "xllamacpp"} <= wanted
    for each in requirements():
        found = needed(each.name, installed, extras=each.extras)
        wanted |= {canonicalize_name(distribution.name) for distribution in found}
    assert {"h11", "h2"} <= wanted
    assert wanted - pins(CONSTRAINTS).keys() == set()


def test_the_tools_are_those_of_the_extra_of_the_build_and_of_the_model_map() -> None:
    extra = {"argparse-manpage", "build", "cyclonedx-bom", "hatchling", "pytimeparse", "shtab", "twine", "uv"}
    assert extra | {"litellm", "tiktoken"} <= {*tools(PYPROJECT)}


def test_tools_in_the_versions_of_the_constraints_are_taken() -> None:
    check_tools(PYPROJECT, CONSTRAINTS, pins(CONSTRAINTS).get)


@pytest.mark.parametrize(
    ("version", "sentence"),
    [("1.0", "hatchling 1.0 is installed, and constraints.txt has "), (None, "hatchling is not installed, and")],
)
def test_another_version_of_a_tool_stops_the_release(version: str | None, sentence: str) -> None:
    here = pins(CONSTRAINTS) | {"hatchling": version}
    with pytest.raises(ReleaseError) as error:
        check_tools(PYPROJECT, CONSTRAINTS, here.get)
    assert sentence in str(error.value)
    assert str(error.value).endswith(": python3 -m pip install -c constraints.txt -e '.[release]'")


RESOLVED = "a==1.0\nb-c==2.0 ; python_full_version < '3.15' \\\n    --hash=sha256:00\nd==1 ; sys_platform == 'win32'\n"


def test_what_this_platform_needs_is_pinned() -> None:
    check_pinned(RESOLVED, "A==1.0\nb.c==2.0\n", {"sys_platform": "linux"})


@pytest.mark.parametrize(
    ("constraints", "platform", "missing"), [("A==1.0", "linux", "b-c==2.0"), ("a==1\nB_C==2", "win32", "d==1")]
)
def test_a_package_without_a_version_in_the_constraints_is_named(constraints: str, platform: str, missing: str) -> None:
    with pytest.raises(ReleaseError, match=rf"^constraints\.txt has no version of .*; add {missing}\.$"):
        check_pinned(RESOLVED, constraints, {"sys_platform": platform})
