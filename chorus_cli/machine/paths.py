"""Where everything is kept on this machine, and with which permissions."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from chorus_cli.core.errors import HomeError
from chorus_cli.core.text.phrases import counted
from chorus_cli.storage.files import make_folder

_ADVICE = "Choose another place with --home DIR or CHORUS_HOME."


class Paths:
    """The folders and what they contain: settings, the state of runs, and in ``data`` everything else."""

    def __init__(self, data: Path, config: Path, state: Path) -> None:
        self.data, self.config, self.state = data, config, state
        self.database = data / "chorus.db"
        self.personas = data / "personas"
        self.attachments = data / "attachments"
        # Copies of the database, with the attachments of the daily ones, each once, and the deleted personas.
        self.backups = data / "backups"
        self.kept_attachments = self.backups / "attachments"
        self.deleted_personas = self.backups / "deleted"
        # The defaults and the user's own commands for every persona.
        self.config_file = config / "config.jsonc"
        self.commands = config / "commands"
        # Texts being edited, texts that the database did not take, and a locked file for each living process.
        self.drafts = state / "drafts"
        self.rescue = state / "rescue"
        self.run = state / "run"
        self.log_file = state / "chorus.log"

    def listing(self) -> tuple[tuple[str, Path], ...]:
        """Return the name and path of each, for ``chorus paths``."""
        return (
            ("database", self.database),
            ("personas", self.personas),
            ("attachments", self.attachments),
            ("backups", self.backups),
            ("config", self.config_file),
            ("commands", self.commands),
            ("drafts", self.drafts),
            ("rescue", self.rescue),
            ("run", self.run),
            ("log", self.log_file),
        )

    @property
    def obstacle(self) -> str:
        """The words for the reason why a log that is there cannot be written, but may be read; empty if it can be."""
        needed = {self.data: os.W_OK | os.X_OK, self.database: os.W_OK}
        refused = [path for path, access in needed.items() if not os.access(path, access)]
        if not refused or not os.access(self.database, os.F_OK):
            return ""
        is_on_read_only_disk = os.statvfs(self.data).f_flag & os.ST_RDONLY
        reason = "a read-only file system" if is_on_read_only_disk else "no permission"
        return f"{refused[0]} cannot be written ({reason})"

    def make(self) -> None:
        """Make the folders, private to the user."""
        for folder in (self.data, self.config, self.state, self.run):
            try:
                make_folder(folder)
            except OSError as error:
                raise HomeError(f"Chorus cannot keep anything in {folder}: {error.strerror}. {_ADVICE}") from error
            if not os.access(folder, os.W_OK | os.X_OK):
                raise HomeError(f"Chorus cannot write in {folder}: permission denied or read-only. {_ADVICE}")


def paths(environment: Mapping[str, str], home: str | None) -> Paths:
    """Return the paths: below ``home`` or ``CHORUS_HOME`` if given, else in the platform's user folders."""
    chosen = home or environment.get("CHORUS_HOME")
    if chosen:
        try:
            folder = Path(chosen).expanduser().absolute()
        except (OSError, RuntimeError) as error:
            raise HomeError(f"The folder {chosen} cannot be found: {error}. {_ADVICE}") from error
        return Paths(data=folder, config=folder, state=folder / "state")
    from platformdirs import PlatformDirs  # noqa: PLC0415 - a start with a folder of its own does not need it

    places = PlatformDirs("chorus", appauthor=False)
    # Without a home directory, the library raises an error or returns a relative path.
    with suppress(RuntimeError):
        found = Paths(places.user_data_path, places.user_config_path, places.user_state_path)
        if found.data.is_absolute():
            return found
    raise HomeError(f"There is no home directory to keep your messages in. {_ADVICE}")


def shipped_personas() -> Path:
    """Return the folder of the shipped personas: in the package, or beside it in a source tree."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "shipped_personas"
    return installed if installed.is_dir() else package.parent / "personas"


_OTHERS = stat.S_IRWXG | stat.S_IRWXO

_FILES = ("chorus.db", "config.jsonc", "schema.json", ".chorus-", ".config.jsonc")
"""Beginnings of the names of files beside the folders, with their journals, locks and previous texts."""

# Folders that may hold thousands of files: while they are private, so are the files.
_LARGE = frozenset({"attachments", "backups", "sessions"})


class _Found(NamedTuple):
    """A file or folder with permissions for others, who can reach it if it ``is_exposed``: by the folders around it."""

    path: Path
    mode: int
    is_exposed: bool


def made_private(paths: Paths) -> str:
    """Take the permissions of other users from all that is kept; return a sentence if they could make use of any."""
    wide = [found for root, is_exposed in _roots(paths) for found in _wide(root, is_exposed=is_exposed)]
    kept = [found for found in wide if not _narrow(found) and found.is_exposed]
    narrowed = [found for found in wide if found not in kept and found.is_exposed]
    told = []
    if narrowed:
        all_of_them = counted(len(narrowed), "file or folder", "files and folders")
        was, them = ("was", "it") if len(narrowed) == 1 else ("were", "them")
        where = f"in {paths.data} {was} open to other users of this machine"
        told.append(f"{all_of_them} {where}; now only you can read {them}.")
    if kept:
        told.append(f"Other users of this machine may read {kept[0].path}, and its permissions cannot be changed.")
    return " ".join(told)


def exposed(paths: Paths) -> list[Path]:
    """Return the files and folders that other users can get at: all that lie in no private folder."""
    wide = (found for root, is_exposed in _roots(paths) for found in _wide(root, is_exposed=is_exposed))
    return sorted(found.path for found in wide if found.is_exposed)


def _roots(paths: Paths) -> Iterator[tuple[Path, bool]]:
    """Yield all that Chorus keeps, and whether it is exposed: whole folders, or its own things in one with others."""
    own = {path.name for path in (paths.personas, paths.attachments, paths.backups, paths.commands, paths.state)}
    if paths.state.parent != paths.data:
        yield paths.state, True
    for folder in dict.fromkeys((paths.data, paths.config)):
        with suppress(OSError):
            entries = list(folder.iterdir())
            kept = [entry for entry in entries if entry.name in own or entry.name.startswith(_FILES)]
            if len(kept) == len(entries):
                yield folder, True
            else:
                yield from ((entry, bool(folder.lstat().st_mode & _OTHERS)) for entry in kept)


def _wide(path: Path, *, is_exposed: bool) -> Iterator[_Found]:
    """Yield what has permissions for others, ``path`` and all below it."""
    with suppress(OSError):
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
            return
        is_wide = bool(found.st_mode & _OTHERS)
        if is_wide:
            yield _Found(path, found.st_mode, is_exposed)
        if stat.S_ISDIR(found.st_mode) and (is_wide or path.name not in _LARGE):
            for entry in path.iterdir():
                yield from _wide(entry, is_exposed=is_exposed and is_wide)


def _narrow(found: _Found) -> bool:
    """Take the permissions of others; return whether that had an effect, which some file systems do not have."""
    try:
        found.path.chmod(stat.S_IMODE(found.mode) & ~_OTHERS)
        return not found.path.lstat().st_mode & _OTHERS
    except OSError:
        return False
