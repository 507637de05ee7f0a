"""The results of a server's tools as text: for the model, and in a few words for the user."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.attachments.rules.recognition import recognised
from chorus_cli.core import limits
from chorus_cli.core.errors import AttachmentError
from chorus_cli.core.text.code_points import join_surrogates
from chorus_cli.core.text.phrases import counted, cut_to_characters, shortened
from chorus_cli.log.rules.attachments import Attachment, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chorus_cli.mcp.rules.offers import Part


class Result(NamedTuple):
    """A result: its ``text`` for the model, which the log keeps whole, and its ``outcome``, a few words for the user.

    ``files`` are its pictures and PDF files, each with its bytes.
    """

    text: str
    outcome: str
    is_error: bool = False
    files: tuple[tuple[Attachment, bytes], ...] = ()


def result_of(
    parts: Sequence[Part], structured: str = "", *, server: str = "", tool: str = "", is_error: bool = False
) -> Result:
    """Return a result of its ``parts`` and a ``structured`` value as JSON text, from a ``tool`` of a ``server``."""
    told: list[str] = []
    kept: list[tuple[Attachment, bytes]] = []
    for part in parts:
        if attachment := _attachment(part, server, tool, len(kept) + 1):
            kept.append((attachment, part.data))
        else:
            told.append(part.told)
    # A server repeats a structured value as text for clients that do not know it.
    if structured and not any(each.text for each in parts):
        told.append(structured)
    text = cut_to_characters(join_surrogates("\n\n".join(told)), limits.WHOLE_RESULT.most)
    if is_error:
        return Result(text, f"error: {shortened(text)}" if text.strip() else "error", is_error, tuple(kept))
    files = [each.label for each in parts if each.is_file]
    lines = sum(bool(line.strip()) for line in text.splitlines()) + len(kept) - len(files)
    counts = [counted(lines, "line")] if lines > 0 else []
    return Result(text, ", ".join([*counts, *files]) or "no text", is_error, tuple(kept))


def _attachment(part: Part, server: str, tool: str, number: int) -> Attachment | None:
    """Return the attachment that a part becomes if it is a picture or a PDF file, and not one too many."""
    if not part.data or number > limits.RESULT_FILES.most:
        return None
    try:
        facts = recognised("", part.data)
    except AttachmentError:
        return None
    ending = f"{'' if number == 1 else f'-{number}'}.{facts.media_type.partition('/')[2]}"
    found = Attachment(
        f"{server}.{tool}{ending}", facts.media_type, len(part.data), sha256(part.data).hexdigest(),
        facts.width, facts.height, facts.pages, server=server,
    )  # fmt: skip
    return found if found.kind in {Kind.PICTURE, Kind.PDF} else None
