"""Shows invisible and misleading characters at the prompt as their code points, and of a very long line both ends."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from prompt_toolkit.layout.controls import SearchBufferControl
from prompt_toolkit.layout.processors import Processor, Transformation
from prompt_toolkit.layout.utils import explode_text_fragments

from chorus_cli.core.text.safe_text import may_hide, revealed

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.layout import Layout
    from prompt_toolkit.layout.processors import TransformationInput

_REVEALED = "class:control-character"
_END_CHARACTERS = 5_000
"""The length of each end: the library draws a line character by character, again with each key."""

_LEFT_OUT = " … "


class Revealing(Processor):
    """Draws such characters as their code points, such as ``<U+202E>``; the text itself is unchanged."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Draw one line."""
        fragments = transformation_input.fragments
        line = transformation_input.document.lines[transformation_input.lineno]
        if len(line) > 2 * _END_CHARACTERS:
            return _both_ends(line)
        if not may_hide(line):
            return Transformation(fragments)
        signs = revealed(line)
        drawn: StyleAndTextTuples = [
            (style if sign == character else f"{style} {_REVEALED}", sign)
            for (style, character, *_), sign in zip(explode_text_fragments(fragments), signs, strict=False)
        ]
        places = [0, *accumulate(map(len, signs))]
        return Transformation(drawn, places.__getitem__, lambda place: bisect_right(places, place) - 1)


def _both_ends(line: str) -> Transformation:
    """Draw the beginning and the end of a line; a cursor between them is drawn after the beginning."""
    signs = [*revealed(line[:_END_CHARACTERS]), _LEFT_OUT, *revealed(line[-_END_CHARACTERS:])]
    places = [0, *accumulate(map(len, signs))]
    hidden = len(line) - len(signs) + 1

    def drawn_at(place: int) -> int:
        return places[place if place <= _END_CHARACTERS else max(_END_CHARACTERS, place - hidden + 1)]

    def source_of(place: int) -> int:
        number = bisect_right(places, place) - 1
        return number if number <= _END_CHARACTERS else number + hidden - 1

    return Transformation([("", "".join(signs))], drawn_at, source_of)


def reveal_searches(layout: Layout) -> None:
    """Reveal characters in search fields too, whose processors are separate."""
    for control in layout.find_all_controls():
        if isinstance(control, SearchBufferControl) and control.input_processors is not None:
            # First, before the processors that add words in front of the line.
            control.input_processors.insert(0, Revealing())
