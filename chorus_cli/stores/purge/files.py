"""Files beside the log that hold purged texts: attachments, drafts, and texts that could not be stored."""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.attachments.rows import attachments_in, named_attachments
from chorus_cli.core.errors import PurgeError
from chorus_cli.editing.files import rescued_files
from chorus_cli.log.rules.attachments import Kind
from chorus_cli.personas import files as persona_files
from chorus_cli.storage import drafts, migrations
from chorus_cli.storage.files import sync_folder, write_atomically
from chorus_cli.stores.backup import archive, restoring
from chorus_cli.stores.purge.selection import text_of
from chorus_cli.stores.rules.purge_reports import Document

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from chorus_cli.machine.paths import Paths
    from chorus_cli.stores.purge.concerned import Concerned

_COPY = re.compile(f"{archive.TEMPORARY}|{migrations.TEMPORARY_COPY}")
_DOCUMENTS = f"*/{persona_files.DOCUMENTS_FOLDER}"
_PDF_MARK = b"%PDF-"
_UNKNOWN = ""
"""The persona of a file that names none: a search limited to one persona does not reach it."""


class Home(NamedTuple):
    """A home that a purge looks into, or a backup that was unpacked as one.

    ``is_alive`` tells of a run whether it goes on. ``beside`` are folders in which further attachments may be; those
    stay.
    """

    paths: Paths
    is_alive: Callable[[str], bool]
    beside: tuple[Path, ...] = ()

    @property
    def attachments(self) -> tuple[Path, ...]:
        """The folders of attachments."""
        return (self.paths.attachments, *self.beside)


class FileChange(NamedTuple):
    """A file to be replaced by a text, under the name of ``after``; without a text it is to be deleted."""

    path: Path
    after: Path
    text: str | None = None


def change(wanted: FileChange) -> None:
    """Carry out a change, which can be repeated: a file that is gone stays so."""
    path, after, text = wanted
    if not os.path.lexists(path):
        return
    if text is not None:
        write_atomically(after, text)
    if text is None or after != path:
        path.unlink()
        sync_folder(path.parent)


def lonely_attachments(connection: sqlite3.Connection, found: Concerned) -> dict[str, int]:
    """Return the attachments that only purged messages name: their sizes by their SHA-256."""
    among = "IN (SELECT value FROM json_each(?))"
    gone, kept = (
        {
            each.sha256: each.size_bytes
            for (text,) in connection.execute(
                f"SELECT attachments FROM messages WHERE attachments IS NOT NULL AND id {negation} {among}",
                (json.dumps([*found.ids.messages]),),
            )
            for each in attachments_in(text)
        }
        for negation in ("", "NOT")
    )
    return {digest: size for digest, size in gone.items() if digest not in kept}


def unsent_attachments(connection: sqlite3.Connection, home: Home, found: Concerned) -> dict[str, int]:
    """Return the stored attachments that no message names and that repeat purged texts: their sizes."""
    unnamed = _unnamed(connection, home)
    return {path.name: path.stat().st_size for path in unnamed if found.repeats(text_of(path), _UNKNOWN)}


def unsearched_pdfs(connection: sqlite3.Connection, home: Home, found: Concerned) -> int:
    """Return the number of PDFs that stay, in which a search for words does not look; 0 without words."""
    wanted = found.wanted
    if not wanted.words:
        return 0
    rows = connection.execute(
        "SELECT id, attachments FROM messages WHERE attachments IS NOT NULL AND (? = '' OR persona = ?)",
        (wanted.persona, wanted.persona),
    )
    kept = {each for id_, text in rows if id_ not in found.ids.messages for each in attachments_in(text)}
    pdfs = {each.sha256 for each in kept if each.kind is Kind.PDF}
    if not wanted.persona:
        pdfs |= {path.name for path in _unnamed(connection, home) if _is_pdf(path)}
    return len(pdfs)


def documents(home: Home, found: Concerned) -> Iterator[Document]:
    """Yield the documents of personas that repeat purged texts or have the words of the search."""
    for folder in sorted((*home.paths.personas.glob(_DOCUMENTS), *home.paths.deleted_personas.glob(_DOCUMENTS))):
        persona = folder.parent.name
        sent, _ = persona_files.documents(folder.parent.parent, persona)
        for each in sent:
            if found.repeats(each.content, persona):
                yield Document(str(folder / each.name), persona, each.content)


def texts_in_files(home: Home, found: Concerned) -> Iterator[FileChange]:
    """Yield the changes of drafts, and of files of texts that could not be stored: texts that are purged go.

    A draft that a running Chorus has open is left to it.
    """
    for path in sorted(home.paths.drafts.glob("*")):
        if not drafts.is_owned(path, home.is_alive) and found.takes(text_of(path), drafts.persona_of(path)):
            yield FileChange(path, path)
    for path in sorted(rescued_files.files(home.paths.rescue)):
        lines = text_of(path).splitlines()
        kept = [line for line in lines if not _is_purged(line, found)]
        if len(kept) < len(lines):
            yield FileChange(path, path, "".join(f"{line}\n" for line in kept) or None)


def delete_remains(places: Paths) -> None:
    """Delete the copies of the log that killed backups, upgrades and restores have left.

    Raises:
        PurgeError: one cannot be deleted.
    """
    for path in places.backups.glob(".*"):
        if _COPY.fullmatch(path.name):
            _delete(path)
    for folder in places.database.parent.glob(f"{restoring.STAGED}-*"):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise PurgeError(f"{folder} cannot be deleted: {error.strerror or error}.") from error


def _unnamed(connection: sqlite3.Connection, home: Home) -> list[Path]:
    named = named_attachments(connection)
    stored = [path for folder in home.attachments for path in sorted(folder.glob("[0-9a-f][0-9a-f]/*"))]
    return [path for path in stored if path.name not in named]


def _is_pdf(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_PDF_MARK)) == _PDF_MARK
    return False


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise PurgeError(f"{path} cannot be deleted: {error.strerror or error}.") from error


def _is_purged(line: str, found: Concerned) -> bool:
    """Return whether a record of a text that could not be stored is of a purged persona, or repeats purged texts."""
    with suppress(ValueError, TypeError, KeyError):
        record = json.loads(line)
        return found.takes(str(record["content"]), str(record["persona"]))
    return found.repeats(line, _UNKNOWN)
