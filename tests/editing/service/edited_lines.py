"""What somebody may do to the messages in an editor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from tests.log.service.expected_contexts import ADDED, Line

_ACTS = st.sampled_from(("delete", "reword", "put below", "put below", "put above", "reorder", "add", "move line"))
_ANCIENT = datetime(2020, 1, 1, tzinfo=UTC)


def edited_lines(
    data: st.DataObject, above: Sequence[Line], below: Sequence[Line], new_word: Callable[[], str]
) -> tuple[list[Line], list[Line]]:
    """Delete, reword, move, reorder or add some; return what then stands above the line and what below it."""
    older, context = list(above), list(below)
    laid_out = {line.text for line in (*above, *below)}
    for act in data.draw(st.lists(_ACTS, min_size=1, max_size=3)):
        place = data.draw(st.integers(0, len(context)))
        chosen = context[place : place + 1]
        if act == "add":
            context.insert(place, _added(new_word(), human=data.draw(st.booleans())))
        elif act == "put below" and older:
            context.insert(place, older.pop(data.draw(st.integers(0, len(older) - 1))))
        elif act == "move line":
            together, line = [*older, *context], data.draw(st.integers(0, len(older)))
            older, context = together[:line], together[line:]
        elif act == "reorder":
            context = data.draw(st.permutations(context))
        elif act == "reword":
            context[place : place + 1] = [replace(line, text=new_word()) for line in chosen]
        elif act in {"delete", "put above"}:
            older += chosen if act == "put above" else []
            del context[place : place + 1]
    # New words would be refused above the line.
    return [line for line in older if line.text in laid_out], context


def _added(word: str, *, human: bool) -> Line:
    """Return a line with a time that no other has."""
    said = _ANCIENT + timedelta(seconds=int(word.removeprefix("word")))
    return Line(word, human, said, said, ADDED)
