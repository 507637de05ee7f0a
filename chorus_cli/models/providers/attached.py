"""Attachments in requests: texts are fenced under their names, pictures and PDFs are parts of their own.

The parts stand before the text, as Anthropic and Google recommend. Equal messages give equal parts, so that a request
begins as the one before, byte for byte.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import AttachmentError
from chorus_cli.core.text.fences import fenced
from chorus_cli.core.text.surrogates import cleaned_input
from chorus_cli.log.rules.attachments import ALL_SENT, Attachment, Kind, with_lines
from chorus_cli.models.rules.choice import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from chorus_cli.models.providers.model_map import ModelMap
    from chorus_cli.models.rules.request import PromptMessage

    Load = Callable[[str], bytes]
    """Returns the bytes whose SHA-256 is given, or raises an ``AttachmentError``."""

_EMBEDDED = "chorus/"


class Part(NamedTuple):
    """A picture or a PDF in a message, its bytes in Base64."""

    attachment: Attachment
    data: str

    @property
    def is_picture(self) -> bool:
        """Whether it is a picture, and no PDF."""
        return self.attachment.kind is Kind.PICTURE

    @property
    def address(self) -> str:
        """The bytes as a ``data:`` address."""
        return f"data:{self.attachment.media_type};base64,{self.data}"


class Content(NamedTuple):
    """The content of a message to be sent: its parts, and its text, which may be empty if there are any."""

    parts: tuple[Part, ...]
    text: str


def not_stored(_digest: str) -> bytes:
    """Refuse to load an attachment, where there is no store.

    Raises:
        AttachmentError: always.
    """
    raise AttachmentError("There is no store of attachments here.")


def content_of(message: PromptMessage, load: Load) -> Content:
    """Return the content of a message; for an attachment whose bytes are gone the text has a line with its name."""
    parts: list[Part] = []
    texts: list[str] = []
    missing: list[Attachment] = []
    for attachment in message.attachments:
        try:
            data = load(attachment.sha256)
        except AttachmentError:
            missing.append(attachment)
            continue
        if attachment.kind is Kind.TEXT:
            texts.append(_as_text(attachment, data))
        else:
            parts.append(Part(attachment, b64encode(data).decode("ascii")))
    text = "\n\n".join(filter(None, (*texts, message.content))) if texts else message.content
    return Content(tuple(parts), with_lines(text, missing))


def accepted_kinds(model: str, model_map: ModelMap) -> frozenset[Kind]:
    """Return the kinds of attachments that ``model`` takes: the map decides about pictures and PDFs.

    A model that is not listed is sent all, and its provider may refuse them.
    """
    if model.startswith(_EMBEDDED):
        return frozenset()
    if model.startswith(LOCAL):
        return frozenset({Kind.TEXT})
    lacking = {
        Kind.PICTURE: model_map.sees_pictures(model) is False,
        Kind.PDF: model_map.reads_pdfs(model) is False,
    }
    return ALL_SENT - {kind for kind, is_lacking in lacking.items() if is_lacking}


def _as_text(attachment: Attachment, data: bytes) -> str:
    text, _ = cleaned_input(data.decode("utf-8-sig", "replace"))
    return f"{attachment.name}:\n{fenced(text.rstrip())}"
