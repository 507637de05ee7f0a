"""The documents' pictures are there, load nothing, and tell nothing of the machine that they were taken on."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.documents import DOCUMENTS, ROOT
from tests.terminal.screen import picture as drawing

NAMESPACE = "{http://www.w3.org/2000/svg}"
FRAME = {drawing._TEXT, drawing._QUIET, drawing._GROUND, *drawing._BUTTONS}
READABLE_ON_ANY_GROUND = {drawing._COLOURS[name] for name in ("red", "blue", "magenta")}
PICTURES = sorted((ROOT / "docs").glob("*.svg"))
SHOWN = {
    name
    for document in DOCUMENTS
    for name in re.findall(r'(?:\]\(|src=")(?:docs/)?([^)"/]+\.svg)', document.read_text(encoding="utf-8"))
}


def test_every_picture_that_the_readme_shows_is_there() -> None:
    assert {"repl.svg", "context.svg"} <= SHOWN <= {picture.name for picture in PICTURES}


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_shown_or_named(picture: Path) -> None:
    named = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert picture.name in SHOWN or f"docs/{picture.name}" in named


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_whole_and_loads_nothing(picture: Path) -> None:
    root = ET.fromstring(picture.read_bytes())  # noqa: S314 - a file of the repository
    assert {element.tag for element in root.iter()} == {
        f"{NAMESPACE}{tag}" for tag in ("svg", "title", "g", "rect", "circle", "text")
    }
    values = [value for element in root.iter() for value in (*element.attrib.values(), element.text or "")]
    assert not [value for value in values if re.search(r"https?:|url\(|data:", value)]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_names_no_place_of_a_machine(picture: Path) -> None:
    assert not re.findall(r"/(?:home|root|tmp|var|usr|opt|private|Users|Volumes)/", picture.read_text(encoding="utf-8"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_shows_no_colours_but_those_that_are_readable_on_any_ground(picture: Path) -> None:
    fills = set(re.findall(r'fill="(#[0-9a-f]+)"', picture.read_text(encoding="utf-8")))
    assert fills <= FRAME | READABLE_ON_ANY_GROUND
