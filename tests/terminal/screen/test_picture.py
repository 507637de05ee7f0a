"""A picture of a terminal shows the same as the terminal."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pyte
import pytest

from tests.terminal.screen.picture import drawn
from tests.terminal.screen.screen_cells import DimScreen, cursor_row, rows_of

NAMESPACE = "{http://www.w3.org/2000/svg}"


def shown(written: str, columns: int = 20) -> DimScreen:
    screen = DimScreen(columns, 3, history=100)
    screen.set_mode(pyte.modes.LNM)
    pyte.Stream(screen).feed(written)
    return screen


def elements(written: str, tag: str) -> list[ET.Element]:
    """Return the drawing inside the frame, without the cursor."""
    picture = ET.fromstring(drawn(rows_of(shown(f"\x1b[?25l{written}")), "title"))  # noqa: S314 - drawn just here
    return picture.findall(f"{NAMESPACE}g/{NAMESPACE}{tag}")


@pytest.mark.parametrize(
    ("written", "attributes"),
    [
        ("a", {"fill": "#e6edf3"}),
        ("\x1b[31ma", {"fill": "#ff7b72"}),
        ("\x1b[38;2;2;34;35ma", {"fill": "#022223"}),
        ("\x1b[1;3;4ma", {"font-weight": "bold", "font-style": "italic", "text-decoration": "underline"}),
        ("\x1b[2ma", {"fill-opacity": "0.6"}),
        ("\x1b[38;5;2;2ma", {"fill": "#00cd00", "fill-opacity": "0.6"}),
        ("\x1b[7ma", {"fill": "#0d1117"}),
    ],
)
def test_letters_look_as_they_did(written: str, attributes: dict[str, str]) -> None:
    (letter,) = elements(written, "text")
    place = {"x": "0", "y": "13.5", "textLength": "8.4", "lengthAdjust": "spacingAndGlyphs"}
    assert letter.attrib == {"fill": "#e6edf3", **place, **attributes}


def test_every_column_begins_where_its_cell_is() -> None:
    words = elements("one two   <three>\n  日本   x", "text")
    assert [(word.text, word.get("x"), word.get("textLength")) for word in words] == [
        ("one two", "0", "58.8"),
        ("<three>", "84", "58.8"),
        ("日本", "16.8", "33.6"),
        ("x", "75.6", "8.4"),
    ]


def test_the_cursor_is_seen() -> None:
    screen = shown("one\ntwo\nthree\nfour")
    rows = rows_of(screen)
    assert cursor_row(screen) == 3
    assert [(y, x) for y, row in enumerate(rows) for x, cell in enumerate(row) if cell.reverse] == [(3, 4)]
