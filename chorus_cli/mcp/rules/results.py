"""The results of a server's tools as text: for the model, and in a few words for the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.text.code_points import join_surrogates
from chorus_cli.core.text.phrases import counted, cut_to_characters, shortened, size_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence


class Piece(NamedTuple):
    """A part of a result: a ``text``, or else a file of ``size`` bytes with its ``media_type``."""

    text: str = ""
    media_type: str = ""
    size: int = 0


class Result(NamedTuple):
    """A result for the model, of which the log keeps all, in a few words for the user, and whether it is an error."""

    text: str
    outcome: str
    is_error: bool = False


def result_of(pieces: Sequence[Piece], structured: str = "", *, is_error: bool = False) -> Result:
    """Return a result of ``pieces`` and a ``structured`` value as JSON text."""
    told = [each.text or _left_out(each) for each in pieces]
    # A server repeats a structured value as text for clients that do not know it.
    if structured and not any(each.text for each in pieces):
        told.append(structured)
    text = cut_to_characters(join_surrogates("\n\n".join(told)), limits.WHOLE_RESULT.most)
    if is_error:
        return Result(text, f"error: {shortened(text)}" if text.strip() else "error", is_error)
    files = [_kind(each) for each in pieces if not each.text]
    lines = sum(bool(line.strip()) for line in text.splitlines()) - len(files)
    counts = [counted(lines, "line")] if lines > 0 else []
    return Result(text, ", ".join([*counts, *files]) or "no text")


def _kind(piece: Piece) -> str:
    return f"{piece.media_type or 'file'} of {size_in_words(piece.size)}"


def _left_out(piece: Piece) -> str:
    return f"[{_kind(piece)}, which Chorus cannot pass on]" if piece.size else ""
