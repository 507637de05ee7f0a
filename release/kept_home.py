"""Makes a home with the program of a version, and keeps it with the export that the same program makes.

Every later version must open it, talk in it, and export the same (``tests/test_homes_of_releases.py``).
"""

from __future__ import annotations

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from release.environments import ELIZA, Program
from release.running import ReleaseError

HOMES = "tests/homes"
HOME, EXPORT = "home", "export"

_LIFE = (
    ("ask", "--model", ELIZA, "I am unhappy"),
    ("ask", "-c", "--model", ELIZA, "My mother worries about the harbour"),
    ("remember", "The harbour opens at six"),
    ("context", "24h"),
    ("context", "save", "before the ferry"),
    ("new",),
    ("ask", "-c", "--model", ELIZA, "I remember the lighthouse"),
    ("undo",),
    ("redo",),
    ("ask", "-c", "--model", ELIZA, "Ships — 船 — come in 🚢\n\n```\nat night\n```"),
    ("retry",),
    ("ask", "--persona", "frodo", "--model", ELIZA, "I am tired of the road"),
    ("set", "--persona", "frodo", "context_hours", "48"),
    ("remember", "--persona", "frodo", "The road goes on"),
    ("ask", "--persona", "reviewer", "--model", ELIZA, "You are not very helpful"),
)
"""A short life: talks with three personas, a window, a session, an undo and a redo, another reply, facts."""

_PASSING = (".lock", ".bak", "-journal")


def keep_home(program: Program, archive: Path) -> None:
    """Live a short life with a program whose home is new, and write its home and its export into ``archive``."""
    for command in _LIFE:
        program.run(*command)
    exported = program.home / EXPORT
    program.run("export", "--all", exported)
    files = {f"{HOME}/{name}": content for name, content in contents(program.home / "chorus").items()}
    files |= {f"{EXPORT}/{name}": content for name, content in contents(exported).items()}
    if told := [name for name, content in files.items() if str(program.home).encode() in content]:
        raise ReleaseError(f"{told[0]} of the kept home names the folder of this machine in which it was made.")
    archive.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(archive, "w", ZIP_DEFLATED) as kept:
        for name in sorted(files):
            kept.writestr(name, files[name])


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by their names in it, without locks, spare copies and the folder ``state``."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in files.items()
        if not name.endswith(_PASSING) and not name.startswith("state/")
    }
