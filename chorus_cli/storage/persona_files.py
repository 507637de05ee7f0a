"""Personas as folders: ``system.jsonc``, ``docs/*.md`` and, later, ``sessions/``."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.core.errors import HomeError
from chorus_cli.core.persona import Document

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS_FILE = "system.jsonc"
DOCUMENTS_FOLDER = "docs"
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


def slugs(personas: Path) -> tuple[str, ...]:
    """Return the folders that are personas, by name."""
    if not personas.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in personas.iterdir() if _SLUG.fullmatch(entry.name) and entry.is_dir()))


def settings_path(personas: Path, slug: str) -> Path:
    """Return where a persona's settings stand."""
    return personas / slug / SETTINGS_FILE


def documents(personas: Path, slug: str) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """Return a persona's documents by name, without the blank ones, and a warning for each that cannot be read."""
    found: list[Document] = []
    warnings: list[str] = []
    for path in _document_paths(personas / slug / DOCUMENTS_FOLDER):
        try:
            content = path.read_text(encoding="utf-8-sig").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            warnings.append(f"{path} is left out: {reason}.")
            continue
        if content:
            found.append(Document(path.name, content))
    return tuple(found), tuple(warnings)


def install(shipped: Path, personas: Path) -> None:
    """Copy the shipped personas on the first run; a folder that is there already is never touched.

    The copy is made beside its place and moved in whole, so that a start that is cut off leaves nothing half-made.
    """
    if personas.exists():
        return
    draft: Path | None = None
    try:
        draft = Path(tempfile.mkdtemp(prefix=".personas-", dir=personas.parent))
        for slug in slugs(shipped):
            shutil.copytree(shipped / slug, draft / slug, copy_function=_copy_private)
        for folder in [draft, *(path for path in draft.rglob("*") if path.is_dir())]:
            folder.chmod(0o700)
        draft.rename(personas)
    except OSError as error:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
        if not personas.is_dir():
            # copytree collects what went wrong: the source, the target and the reason of each file.
            reason = error.strerror or "{0}: {2}".format(*error.args[0][0])
            raise HomeError(f"The personas cannot be copied to {personas}: {reason}.") from error


def _document_paths(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from sorted(path for path in folder.glob("*.md") if path.is_file())


def _copy_private(source: str, target: str) -> str:
    shutil.copyfile(source, target)
    Path(target).chmod(0o600)
    return target
