"""The content of a message of ChatGPT: its text, its files, and the model's thoughts, by the type of the content."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.json import values
from chorus_cli.imports.rules.conversation import ForeignFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chorus_cli.core.json.values import Record

_CONTEXTS = {"user_editable_context", "model_editable_context"}
_QUOTES = {"tether_quote", "tether_browsing_display", "tether_browsing_code"}
_FILE_ID = re.compile(r"file[-_][\w-]{2,100}", re.ASCII)
_POINTERS = {
    "image_asset_pointer": "image",
    "audio_asset_pointer": "audio",
    "video_container_asset_pointer": "video",
}


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a message. ``is_context`` marks the profile and the memory that the program adds by itself."""

    text: str = ""
    files: tuple[ForeignFile, ...] = ()
    thoughts: str = ""
    is_recap: bool = False
    is_context: bool = False


def content_of(message: Record) -> Content:
    """Read the content of a message; an unknown type is read for its text."""
    content = values.record(message.get("content"))
    match content.get("content_type"):
        case "thoughts":
            return Content(thoughts=_thoughts(content) or "…")
        case "reasoning_recap":
            return Content(is_recap=True)
        case str(kind) if kind in _CONTEXTS:
            return Content(is_context=True, text=_plain(content))
        case "code" if _is_for_user(message):
            return Content(_fenced(content), _attached(message))
        case str(kind) if kind in _QUOTES:
            return Content(_quoted(content))
    pointers = list(_pointers(content))
    return Content(_plain(content), tuple(_with_names(pointers, message)))


def _is_for_user(message: Record) -> bool:
    return values.line(message.get("recipient")) in {"", "all"}


def _plain(content: Record) -> str:
    """Return the texts among the parts, or the one text that the content has under another name."""
    parts = [_part(part) for part in values.items(content.get("parts"))]
    joined = "\n".join(filter(None, parts))
    names = ("text", "result", "content", "user_profile", "user_instructions")
    return joined or next((found for name in names if (found := values.text(content.get(name)))), "")


def _part(part: object) -> str:
    if isinstance(part, str):
        return values.text(part)
    return values.text(values.record(part).get("text"))


def _fenced(content: Record) -> str:
    code = values.text(content.get("text")) or _plain(content)
    language = values.line(content.get("language"))
    return f"```{'' if language == 'unknown' else language}\n{code}\n```" if code.strip() else ""


def _quoted(content: Record) -> str:
    heading = [values.line(content.get(name)) for name in ("title", "url", "domain")]
    body = [values.text(content.get(name)) for name in ("text", "summary", "result")]
    return "\n".join(dict.fromkeys(filter(None, heading + body)))


def _thoughts(content: Record) -> str:
    each = (
        "\n".join(filter(None, (values.text(thought.get("summary")), values.text(thought.get("content")))))
        for thought in values.records(content.get("thoughts"))
    )
    return "\n\n".join(filter(None, each))


def _pointers(content: Record) -> Iterator[ForeignFile]:
    for part in values.records(content.get("parts")):
        yield from _pointer(part)
        # A spoken message holds the pointers to its sound and its picture in one part.
        for name in ("audio_asset_pointer", "video_container_asset_pointer"):
            yield from _pointer(values.record(part.get(name)))


def _pointer(part: Record) -> Iterator[ForeignFile]:
    address = values.line(part.get("asset_pointer"))
    if not address:
        return
    entry = _id(address.rpartition("://")[2].partition("#")[0].partition("?")[0])
    kind = part.get("content_type")
    name = _POINTERS.get(kind, "file") if isinstance(kind, str) else "file"
    yield ForeignFile(f"{name} {entry}".strip(), entry=entry)


def _id(written: str) -> str:
    """Return the id of a file; any other text might name a file of the user's that lies beside the export."""
    return written if _FILE_ID.fullmatch(written) else ""


def _with_names(pointers: list[ForeignFile], message: Record) -> Iterator[ForeignFile]:
    """Yield the files of a message: the attachments by their names, then pointers that no attachment names."""
    attached = _attached(message)
    yield from attached
    known = {file.entry for file in attached if file.entry}
    yield from (file for file in pointers if file.entry not in known)


def _attached(message: Record) -> tuple[ForeignFile, ...]:
    listed = values.records(values.record(message.get("metadata")).get("attachments"))
    return tuple(
        ForeignFile(
            values.line(file.get("name")) or "file",
            values.line(file.get("mime_type") or file.get("mimeType")),
            _id(values.identifier(file.get("id"))),
        )
        for file in listed
    )
