"""The home of every released version opens, talks and is exported as that version exported it.

``python -m release`` adds the home of its version (``release/kept_home.py``).
"""

from __future__ import annotations

import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from release.kept_home import EXPORT, HOME, HOMES, contents
from tests.terminal.driver import Home

ROOT = Path(__file__).resolve().parents[1]
ARCHIVES = sorted((ROOT / HOMES).glob("*.zip"))


@pytest.fixture(params=ARCHIVES, ids=lambda archive: archive.stem)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the folder with the home of a version and what that version exported."""
    with ZipFile(request.param) as archive:
        archive.extractall(tmp_path)
    for path in (tmp_path / HOME, *(tmp_path / HOME).rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return tmp_path


def test_the_first_version_has_a_home() -> None:
    assert "0.1.0" in {archive.stem for archive in ARCHIVES}


def test_a_home_is_exported_as_by_the_version_that_made_it(kept: Path) -> None:
    exported = Home(kept / HOME).run("export", "--all", str(kept / "now"))
    assert (exported.code, exported.errors) == (0, "")
    assert contents(kept / "now") == contents(kept / EXPORT)


def test_a_home_goes_on(kept: Path) -> None:
    home = Home(kept / HOME)
    answer = home.run("ask", "-c", "--persona", "chorus", "--model", "chorus/eliza", "I am unhappy again")
    assert answer.code == 0
    # Some time after the release, the program tells the pause.
    assert re.fullmatch(r"(.+ later, .+\n)?", answer.errors)
    said = home.run("log", "--persona", "chorus").output
    places = [said.rindex(words) for words in ("worries about the harbour", "unhappy again", answer.output.strip())]
    assert places == sorted(places)
    assert home.run("undo").code == 0


def test_a_home_is_whole_and_its_facts_and_settings_are_those_of_its_life(kept: Path) -> None:
    home = Home(kept / HOME)
    assert home.run("doctor").code == 0
    assert "The harbour opens at six" in home.run("memory", "list", "--persona", "chorus").output
    assert "48h" in home.run("context", "--persona", "frodo").output
    assert "before-the-ferry" in home.run("context", "history", "--persona", "chorus").output
    assert "lighthouse" in home.run("search", "lighthouse").output
