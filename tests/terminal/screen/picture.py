"""Rows of a screen drawn as an SVG that loads nothing and keeps its columns in any font."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from xml.etree import ElementTree as ET

from tests.terminal.screen.screen_cells import Row

_CELL_WIDTH, _ROW_HEIGHT, _BASELINE = 8.4, 18, 13.5
_PADDING, _BAR_HEIGHT = 14, 36
_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
_FONT = {"font-family": _FONTS, "font-size": 14}
_TEXT, _QUIET, _GROUND, _EDGE = "#e6edf3", "#8d96a0", "#0d1117", "#3d444d"
_BUTTONS = ("#ff5f57", "#febc2e", "#28c840")
_NAMES = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
_NORMAL = ("#2d333b", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4")
_BRIGHT = ("#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc")
_COLOURS = {
    "default": _TEXT,
    **dict(zip(_NAMES, _NORMAL, strict=True)),
    **{f"bright{name}": colour for name, colour in zip(_NAMES, _BRIGHT, strict=True)},
}
_PHRASE = re.compile(r"\S+(?: \S+)*")
_SECOND_HALF = "\0"  # stands in the second cell of a wide character, which is empty


def drawn(rows: Sequence[Row], title: str) -> str:
    width = len(rows[0]) * _CELL_WIDTH + 2 * _PADDING
    height = len(rows) * _ROW_HEIGHT + _BAR_HEIGHT + _PADDING
    size = {"width": width, "height": height, "viewBox": f"0 0 {width:g} {height:g}"}
    picture = _element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", **size})
    picture.append(_element("title", {}, title))
    picture.extend(_frame(width, height, title))
    content = _element("g", {"transform": f"translate({_PADDING} {_BAR_HEIGHT})", **_FONT})
    for number, row in enumerate(rows):
        content.extend(_drawn_row(row, number * _ROW_HEIGHT))
    picture.append(content)
    ET.indent(picture, "")
    return ET.tostring(picture, encoding="unicode") + "\n"


def _frame(width: float, height: float, title: str) -> Iterator[ET.Element]:
    place = {"x": 0.5, "y": 0.5, "rx": 8, "width": width - 1, "height": height - 1}
    yield _element("rect", {**place, "fill": _GROUND, "stroke": _EDGE})
    for number, colour in enumerate(_BUTTONS):
        yield _element("circle", {"cx": 22 + 20 * number, "cy": 19, "r": 6, "fill": colour})
    yield _element("text", {"x": width / 2, "y": 23.5, "fill": _QUIET, "text-anchor": "middle", **_FONT}, title)


def _drawn_row(row: Row, top: int) -> Iterator[ET.Element]:
    """Draw each run of cells that look the same: first their background, then their text."""
    start = 0
    for look, run in groupby(row, lambda cell: cell._replace(data="")):
        text = "".join(cell.data or _SECOND_HALF for cell in run)
        colour, ground = _colour(look.fg), _GROUND if look.bg == "default" else _colour(look.bg)
        if look.reverse:
            colour, ground = ground, colour
        if ground != _GROUND:
            place = {"x": start * _CELL_WIDTH, "y": top, "width": len(text) * _CELL_WIDTH, "height": _ROW_HEIGHT}
            yield _element("rect", {**place, "fill": ground, "shape-rendering": "crispEdges"})
        for phrase in _PHRASE.finditer(text):
            yield _phrase(phrase.group(), start + phrase.start(), top, {"fill": colour, **_style(look)})
        start += len(text)


def _phrase(text: str, column: int, top: int, style: Mapping[str, str]) -> ET.Element:
    """Draw words with single blanks between them, exactly as wide as their cells."""
    width = {"textLength": len(text) * _CELL_WIDTH, "lengthAdjust": "spacingAndGlyphs"}
    place = {"x": column * _CELL_WIDTH, "y": top + _BASELINE}
    return _element("text", {**place, **width, **style}, text.replace(_SECOND_HALF, ""))


def _style(look: Any) -> dict[str, str]:
    """Return the text style of a cell; a blinking one there is dim, as ``screen_cells`` has it."""
    lines = [name for name, on in (("underline", look.underscore), ("line-through", look.strikethrough)) if on]
    style = {
        "font-weight": "bold" if look.bold else "",
        "font-style": "italic" if look.italics else "",
        "fill-opacity": "0.6" if look.blink else "",
        "text-decoration": " ".join(lines),
    }
    return {name: value for name, value in style.items() if value}


def _colour(name: str) -> str:
    return _COLOURS.get(name) or f"#{name}"


def _element(tag: str, attributes: Mapping[str, object], text: str | None = None) -> ET.Element:
    values = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in attributes.items()}
    element = ET.Element(tag, values)
    element.text = text
    return element
