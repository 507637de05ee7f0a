"""Files that an export of conversations writes: one for each, and a folder of attachments beside them."""

from __future__ import annotations

import json
import re
import unicodedata
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from chorus_cli.attachments.files import attachments
from chorus_cli.core.errors import AttachmentError, OutputError
from chorus_cli.imports.rules.own import json_lines, markdown
from chorus_cli.storage.durable_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from chorus_cli.imports.rules.conversation import ForeignConversation

_LONGEST_TITLE = 50
_HEADER_BYTES = 10_000
_UNFIT = re.compile(r"[^a-z0-9]+")


def name_of(conversation: ForeignConversation, ending: str) -> str:
    """Return the name of a conversation's file: its day, its title, and eight digits that no other one has."""
    day = f"{conversation.created_at:%Y-%m-%d}" if conversation.created_at else "undated"
    ascii_letters = unicodedata.normalize("NFKD", conversation.title).encode("ascii", "ignore").decode().casefold()
    title = _UNFIT.sub("-", ascii_letters).strip("-")[:_LONGEST_TITLE].strip("-")
    digits = sha256(f"{conversation.source}\n{conversation.key}".encode("utf-8", "replace")).hexdigest()[:8]
    return "_".join(filter(None, (day, title, digits))) + f".{ending}"


def files_of_before(folder: Path, ending: str) -> dict[str, Path]:
    """Return the files of an earlier export by their folders and their names without the titles."""
    return {_without_title(path): path for path in sorted(folder.glob(f"*/*_*.{ending}"))}


def write(
    folder: Path, conversation: ForeignConversation, ending: str, before: Mapping[str, Path] | None = None
) -> Path:
    """Write a conversation into the folder of its persona, and return the file.

    It takes the place of an older export of it; ``before`` has those, which may have other titles.

    Raises:
        OutputError: it cannot be written.
    """
    if ending == "jsonl":
        text = "".join(f"{line}\n" for line in json_lines.as_lines(conversation))
    else:
        text = markdown.as_markdown(conversation)
    path = folder / (conversation.persona or "") / name_of(conversation, ending)
    _write(path, text.encode("utf-8", "replace"))
    older = (before or {}).get(_without_title(path))
    if older is not None and older != path:
        _remove_export_of(conversation, older)
    return path


def _without_title(path: Path) -> str:
    day, *_, digits = path.name.split("_")
    return f"{path.parent.name}/{day}_{digits}"


def _remove_export_of(conversation: ForeignConversation, path: Path) -> None:
    """Remove a file, unless it is of another conversation whose digits happen to be the same."""
    with suppress(OSError):
        with path.open("rb") as file:
            beginning = file.read(_HEADER_BYTES)
        if json.dumps(conversation.key, ensure_ascii=False).encode("utf-8", "replace") in beginning:
            path.unlink()


def copy_attachment(folder: Path, stored: Path, digest: str) -> bool:
    """Copy the bytes of an attachment into the export; return whether they were there.

    Raises:
        OutputError: they cannot be written.
    """
    path = folder / markdown.ATTACHMENTS / digest
    if path.exists():
        return True
    try:
        data = attachments.read(stored, digest)
    except AttachmentError:
        return False
    _write(path, data)
    return True


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, data)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}.") from error
