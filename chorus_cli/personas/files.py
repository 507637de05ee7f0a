"""The folder of a persona: settings, prompt, ``docs/*.md``, ``commands/*.md``, ``sessions/``, and its card, if any.

A file ``.archived`` in the folder marks an archived persona. The limits of the files' sizes are in ``core/limits``.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from chorus_cli.core import limits
from chorus_cli.core.errors import HomeError, PersonaError
from chorus_cli.personas.rules.persona import Document
from chorus_cli.settings.rules.table import Layer
from chorus_cli.storage.file_lock import locked
from chorus_cli.storage.files import RANDOM, read_within, sync_folder, write_atomically
from chorus_cli.storage.permissions import access_advice, is_refused, is_there

SETTINGS_FILE = "system.jsonc"
PROMPT_FILE = "prompt.md"
"""The system prompt, unless the settings have one."""
DOCUMENTS_FOLDER = "docs"
COMMANDS_FOLDER = "commands"
"""The user's own commands in a chat with the persona."""
CARD_FILE = "card.json"
"""The character card that the persona was made from."""
CARD_PICTURE, CARD_ARCHIVE = "card.png", "card.charx"
"""The names under which an imported PNG or CHARX file is kept, because it has more than the card."""
_ARCHIVED = ".archived"
_DRAFT, _SHIPPED = ".persona-", ".personas-"
_MAKING = ".making"
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_MOVED_AT = re.compile(r"-\d{8}-\d{6}-\d{6}\Z")
TEMPORARY, TEMPORARY_SHIPPED = rf"\.persona-({RANDOM}|{_SLUG.pattern})", rf"\.personas-{RANDOM}"
"""Regular expressions for the names of temporary folders: of one new persona, and of all shipped personas."""
LOCKS = frozenset({f"{SETTINGS_FILE}.lock", f"{_MAKING}.lock"})
Fingerprint: TypeAlias = tuple[tuple[str, int, int, int, int], ...]
"""Path, mtime and ctime in nanoseconds, inode and size of each file; path and errno if ``stat`` fails."""


class NewPersona(NamedTuple):
    """The files of a persona to be made: the text of its settings, and other files by their paths in its folder."""

    slug: str
    settings: str
    files: Mapping[str, bytes] = MappingProxyType({})


def slugs(personas: Path, *, archived: bool = False) -> tuple[str, ...]:
    """Return the sorted slugs of personas in use, or of ``archived`` ones; an unreadable folder counts as in use."""
    with _sentence(f"The folder {personas} cannot be read", to_open=personas):
        entries = [*personas.iterdir()] if personas.is_dir() else []
        folders = [entry for entry in entries if _SLUG.fullmatch(entry.name) and entry.is_dir()]
    return tuple(sorted(folder.name for folder in folders if is_there(folder / _ARCHIVED) is archived))


def exists(personas: Path, slug: str) -> bool:
    """Return whether there is a persona of that slug, in use or archived."""
    try:
        return _SLUG.fullmatch(slug) is not None and (personas / slug).is_dir()
    except OSError:
        return False


def create(personas: Path, new: NewPersona, record: Callable[[], bool] = bool) -> bool:
    """Make a persona's folder, whole or not at all, just after a call of ``record``; return the result of that call."""
    folder = personas / new.slug
    failure = f"The folder {folder} cannot be made"
    if len(new.settings.encode()) > limits.SETTINGS_FILE.most:
        raise PersonaError(
            f"The settings of {new.slug} would be larger than {limits.SETTINGS_FILE.size}. Nothing was created."
        )
    if is_there(folder):
        # A rename would silently replace an empty folder.
        raise PersonaError(f"{failure}: File exists.")
    with _sentence(failure):
        draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=personas))
    try:
        with _sentence(failure):
            (draft / DOCUMENTS_FOLDER).mkdir(mode=0o700)
            for name, content in {SETTINGS_FILE: new.settings.encode(), **new.files}.items():
                (draft / name).parent.mkdir(mode=0o700, exist_ok=True)
                write_atomically(draft / name, content)
        recorded = record()
        with _sentence(failure):
            draft.rename(folder)
            sync_folder(personas)
        return recorded
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def sole_maker(personas: Path) -> Iterator[None]:
    """Keep other processes from making personas, and delete unfinished folders that killed processes have left."""
    with _sentence(f"No persona can be made in {personas}"), locked(personas / _MAKING):
        try:
            for draft in personas.glob(f"{_DRAFT}*"):
                shutil.rmtree(draft, ignore_errors=True)
            yield
        finally:
            # The lock's file would stay among the personas, so it is deleted while this process holds the lock.
            with suppress(OSError):
                (personas / f"{_MAKING}.lock").unlink()


def archive(personas: Path, slug: str, now: datetime) -> None:
    """Archive a persona: write a file with the date into its folder."""
    with _sentence(f"{slug} cannot be archived"):
        write_atomically(personas / slug / _ARCHIVED, f"{now:%Y-%m-%d}\n")


def unarchive(personas: Path, slug: str) -> None:
    """Bring a persona back from the archive."""
    with _sentence(f"{slug} cannot be taken out of the archive"):
        (personas / slug / _ARCHIVED).unlink(missing_ok=True)


def move_away(personas: Path, slug: str, deleted: Path, now: datetime) -> Path:
    """Move a persona's folder into ``deleted``, named by slug and time, and return its new path."""
    target = deleted / f"{slug}-{now:%Y%m%d-%H%M%S-%f}"
    with _sentence(f"{personas / slug} cannot be moved to {target}"):
        deleted.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.move(personas / slug, target)
    return target


def was_moved_away(slug: str, deleted: Path) -> bool:
    """Return whether `move_away` has moved a persona of that slug into ``deleted``."""
    return is_there(deleted) and any(slug == slug_of(each) != each.name for each in deleted.glob("*"))


def slug_of(folder: Path) -> str:
    """Return the slug of a persona by its folder, also if `move_away` has moved the folder."""
    return _MOVED_AT.sub("", folder.name)


def documents(personas: Path, slug: str) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """Return a persona's documents, sorted by name, and warnings about documents that are left out."""
    found: list[Document] = []
    room, folder = limits.PERSONA_DOCUMENTS.most, personas / slug / DOCUMENTS_FOLDER
    is_shut = is_refused(folder) and not is_refused(folder.parent)
    warnings = [f"{folder} cannot be read, so the documents are left out. {access_advice(folder)}"] if is_shut else []
    for path in _document_paths(folder):
        try:
            data = read_within(path, limits.PERSONA_DOCUMENT)
            content = data.decode("utf-8-sig").strip()
        except IsADirectoryError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            warnings.append(_left_out(path, error))
            continue
        if (room := room - len(data)) < 0:
            warnings.append(
                f"{path} is left out: together the documents are larger than {limits.PERSONA_DOCUMENTS.size}."
            )
        elif "\0" in content:
            warnings.append(f"{path} is left out: it holds NUL characters, so it is not text.")
        elif content:
            found.append(Document(path.name, content))
    return tuple(found), tuple(warnings)


def links(personas: Path, slug: str) -> tuple[str, ...]:
    """Return a sentence about each prompt or document that is a link to a file outside the persona's folder."""
    folder = personas / slug
    prompt_files = (folder / PROMPT_FILE, *_document_paths(folder / DOCUMENTS_FOLDER))
    # Resolving a link to itself would raise an error; for such a link, ``is_there`` is false.
    found = {path: path.resolve() for path in prompt_files if is_there(path)}
    return tuple(
        f"{path} is a link, so the model is sent the text of {target}. Delete the link if you do not want that."
        for path, target in found.items()
        if not target.is_relative_to(folder.resolve())
    )


def read_prompt(personas: Path, slug: str) -> tuple[Layer, tuple[str, ...]]:
    """Return a persona's ``prompt.md`` as settings, empty without the file, and a warning if it cannot be read."""
    path = personas / slug / PROMPT_FILE
    try:
        prompt = read_within(path, limits.PERSONA_DOCUMENT).decode("utf-8-sig").strip()
        return Layer(str(path), {"system_prompt": prompt} if prompt else {}), ()
    except FileNotFoundError:
        return Layer(str(path)), ()
    except (OSError, UnicodeDecodeError) as error:
        return Layer(str(path), readable=False), (_left_out(path, error),)


def _left_out(path: Path, error: OSError | UnicodeDecodeError) -> str:
    return f"{path} is left out: {error.strerror if isinstance(error, OSError) else 'it is not UTF-8'}."


def fingerprint(personas: Path, slug: str, config_file: Path) -> Fingerprint | None:
    """Return a value that changes with settings, prompt, card and documents; ``None`` if the folder is gone."""
    if not exists(personas, slug):
        return None
    own, folder = personas / slug, personas / slug / DOCUMENTS_FOLDER
    states = []
    files = (config_file, *(own / name for name in (SETTINGS_FILE, PROMPT_FILE, CARD_FILE)), folder)
    for path in (*files, *_document_paths(folder)):
        try:
            found = path.stat()
            states.append((str(path), found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size))
        except OSError as error:
            states.append((str(path), error.errno or 0, 0, 0, 0))
    return tuple(states)


def install(shipped: Path, personas: Path) -> None:
    """Copy the shipped personas to ``personas``, all or none; a folder that exists already is not changed."""
    if personas.exists():
        return
    draft: Path | None = None
    try:
        draft = Path(tempfile.mkdtemp(prefix=_SHIPPED, dir=personas.parent))
        for slug in slugs(shipped):
            shutil.copytree(shipped / slug, draft / slug, copy_function=shutil.copyfile)
        for path in [draft, *draft.rglob("*")]:
            path.chmod(0o700 if path.is_dir() else 0o600)
        draft.rename(personas)
    except OSError as error:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
        if not personas.is_dir():
            # copytree collects an error for each file: source, target and reason.
            reason = error.strerror or "{0}: {2}".format(*error.args[0][0])
            raise HomeError(f"The personas cannot be copied to {personas}: {reason}.") from error


def _document_paths(folder: Path) -> Sequence[Path]:
    """Return the sorted paths of a folder's ``*.md``, without hidden ones; none if the folder cannot be read."""
    try:
        return sorted(path for path in folder.glob("*.md") if not path.name.startswith("."))
    except OSError:
        return ()


@contextmanager
def _sentence(failure: str, to_open: Path | None = None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = access_advice(to_open) if to_open else ""
        raise PersonaError(f"{failure}: {error.strerror or error}. {advice}".rstrip()) from error
