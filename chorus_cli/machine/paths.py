"""The paths of all files that Chorus keeps on this machine, and their permissions."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from chorus_cli.core.errors import HomeError
from chorus_cli.core.text.phrases import first_few
from chorus_cli.storage.files import make_folder

STAGED = ".restoring"
"""The name of the folder of a decided restore. The folder of an undecided restore has this name with a suffix."""
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
        # For each AGENTS.md, whether the user allows Chorus to send it.
        self.projects = state / "projects.json"
        # The tokens of servers to which the user has signed in.
        self.tokens = state / "tokens.json"

    def beside(self, digest: str) -> Path:
        """Return the SQLite file for this machine's own tables; ``digest`` identifies the log on a server."""
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
        """Why an existing database cannot be written, in words for the user; empty if it can, or if there is none."""
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
    """Return the paths: below ``home``, else below ``CHORUS_HOME``, else in the platform's folders for the user."""
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
"""Beginnings of the names of the files directly in the data and config folders, with their journals and locks."""


def made_private(paths: Paths) -> str:
    """Remove other users' permissions for Chorus's files; return a sentence for the user if there were any."""
    opened = exposed(paths)
    if not opened:
        return ""
    for path in opened:
        with suppress(OSError):
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_OTHERS)
    if left := exposed(paths):
        return f"Other users can read {first_few(left)}, because their permissions cannot be changed. {_ADVICE}"
    was, it = ("was", "it") if len(opened) == 1 else ("were", "them")
    return f"{first_few(opened)} {was} open to other users of this machine; now only you can read {it}."


def exposed(paths: Paths) -> list[Path]:
    """Return the outermost files and folders that other users have permissions for.

    A private folder keeps other users from everything in it. In a folder with other files, only Chorus's own count.
    """
    own = {path.name for path in (paths.personas, paths.attachments, paths.backups, paths.commands, paths.state)}
    # The user may keep one of the folders elsewhere, behind a link.
    data, config, state = (Path(os.path.realpath(each)) for each in (paths.data, paths.config, paths.state))
    found = [] if paths.state.parent == paths.data else [*filter(_is_open, [state])]
    for folder in dict.fromkeys((data, config)):
        # If a folder cannot be listed, the code that needs the folder reports that.
        with suppress(OSError):
            entries = list(folder.iterdir()) if _is_open(folder) else []
            kept = [entry for entry in entries if entry.name in own or entry.name.startswith(_FILES)]
            found += [folder] if entries and len(kept) == len(entries) else filter(_is_open, kept)
    return found


def _is_open(path: Path) -> bool:
    """Return whether other users have permissions for ``path``; ``False`` for links and for other users' files."""
    with suppress(OSError):
        found = path.lstat()
        return found.st_uid == os.geteuid() and bool(found.st_mode & _OTHERS) and not stat.S_ISLNK(found.st_mode)
    return False
