"""The paths of all that Chorus keeps on this machine, and their permissions."""

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
    """The folders of Chorus: ``config`` for settings, ``state`` for the state of runs, ``data`` for everything else."""

    def __init__(self, data: Path, config: Path, state: Path) -> None:
        self.data, self.config, self.state = data, config, state
        self.database = data / "chorus.db"
        self.personas = data / "personas"
        self.attachments = data / "attachments"
        # Copies of the database, one copy of each attachment in the daily copies, and deleted personas.
        self.backups = data / "backups"
        self.kept_attachments = self.backups / "attachments"
        self.deleted_personas = self.backups / "deleted"
        # Default settings and the user's own commands, both for every persona.
        self.config_file = config / "config.jsonc"
        self.commands = config / "commands"
        # Texts in an editor, texts that the database could not store, and a locked file for each process of Chorus.
        self.drafts = state / "drafts"
        self.rescue = state / "rescue"
        self.run = state / "run"
        self.log_file = state / "chorus.log"
        # Which AGENTS.md the user allows to be sent.
        self.projects = state / "projects.json"
        # The tokens of servers to which the user has signed in.
        self.tokens = state / "tokens.json"

    def beside(self, digest: str) -> Path:
        """Return the file for what belongs to this machine alone while the log of that digest is on a server."""
        return self.data / f"beside-{digest}.db"

    def listing(self) -> tuple[tuple[str, Path], ...]:
        """Return the name and the path of each place, for ``chorus paths``."""
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
            ("tokens", self.tokens),
            ("log", self.log_file),
        )

    @property
    def obstacle(self) -> str:
        """Why an existing database cannot be written, in words for the user; empty if it can be written."""
        needed = {self.data: os.W_OK | os.X_OK, self.database: os.W_OK}
        refused = [path for path, access in needed.items() if not os.access(path, access)]
        if not refused or not os.access(self.database, os.F_OK):
            return ""
        is_on_read_only_disk = os.statvfs(self.data).f_flag & os.ST_RDONLY
        reason = "a read-only file system" if is_on_read_only_disk else "no permission"
        return f"{refused[0]} cannot be written ({reason})"

    def make(self) -> None:
        """Make the folders, private to the user; raise a ``HomeError`` if one cannot be made or written."""
        for folder in (self.data, self.config, self.state, self.run):
            try:
                make_folder(folder)
            except OSError as error:
                reason = "it is a file, not a folder" if isinstance(error, FileExistsError) else error.strerror
                raise HomeError(f"Chorus cannot keep anything in {folder}: {reason}. {_ADVICE}") from error
            if not os.access(folder, os.W_OK | os.X_OK):
                raise HomeError(f"Chorus cannot write in {folder}: permission denied or read-only. {_ADVICE}")


def paths(environment: Mapping[str, str], home: str | None) -> Paths:
    """Return the paths: below ``home``, else below ``CHORUS_HOME``, else in the platform's folders for users."""
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

_FILES = ("chorus.db", "beside-", "config.jsonc", "schema.json", ".chorus-", ".config.jsonc")
"""The names of files that Chorus keeps beside its folders, and of their journals and locks, begin with one of these."""

# These folders may hold thousands of files, which nobody else can reach while the folder is private.
_LARGE = frozenset({"attachments", "backups", "sessions"})


class _Found(NamedTuple):
    """A file or folder with permissions for other users; ``is_exposed`` if no private folder keeps them out."""

    path: Path
    mode: int
    is_exposed: bool


def made_private(paths: Paths) -> str:
    """Remove other users' permissions from all that Chorus keeps; return a sentence if they could have used some."""
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
        path = kept[0].path
        told.append(f"Other users of this machine can read {path}, and Chorus cannot change its permissions.")
        told.append(f"Its owner can, with: chmod go= {path}")
    return " ".join(told)


def exposed(paths: Paths) -> list[Path]:
    """Return the files and folders with permissions for other users that no private folder protects."""
    wide = (found for root, is_exposed in _roots(paths) for found in _wide(root, is_exposed=is_exposed))
    return sorted(found.path for found in wide if found.is_exposed)


def _roots(paths: Paths) -> Iterator[tuple[Path, bool]]:
    """Yield the folders of Chorus, or its own entries in a folder with other files, and whether each is exposed."""
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
    """Yield all that has permissions for other users, from ``path`` and below it."""
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
    """Remove other users' permissions; return whether they are gone, because some file systems ignore the change."""
    try:
        found.path.chmod(stat.S_IMODE(found.mode) & ~_OTHERS)
        return not found.path.lstat().st_mode & _OTHERS
    except OSError:
        return False
