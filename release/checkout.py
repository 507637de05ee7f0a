"""A checkout of the sources, by git."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from release.running import ReleaseError, run


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder with the sources and their history."""

    path: Path

    def git(self, *arguments: str | Path) -> str:
        """Run git here and return its output without the newline at its end."""
        return run(f"git {arguments[0]}", ["git", *arguments], self.path).strip()

    def check_clean(self, tag: str) -> None:
        """Raise ``ReleaseError`` if a file differs from the newest commit, or the tag is there already."""
        if changed := self.git("status", "--porcelain").splitlines():
            example = changed[0].split()[-1]
            raise ReleaseError(f"{self.path} has uncommitted changes, such as {example}; commit or remove them.")
        if self.git("tag", "--list", tag):
            raise ReleaseError(f"The tag {tag} is there already; choose a higher version.")

    def committed_at(self) -> int:
        """Return the time of the newest commit, in seconds since 1970."""
        return int(self.git("log", "-1", "--format=%ct"))

    def cloned(self, folder: Path) -> Checkout:
        """Return a clone in ``folder`` in which the same person commits."""
        run("git clone", ["git", "clone", "--quiet", self.path, folder])
        clone = Checkout(folder)
        for name in ("user.name", "user.email"):
            if value := self.git("config", "--default", "", "--get", name):
                clone.git("config", name, value)
        return clone

    def commit(self, message: str) -> str:
        """Commit all that has changed and return the name of the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def take_over(self, clone: Checkout, commit: str, tag: str) -> None:
        """Go on to the newest commit of a clone, and tag ``commit``."""
        self.git("pull", "--quiet", "--ff-only", clone.path, "HEAD")
        self.git("tag", "--annotate", "--message", f"Chorus {tag.removeprefix('v')}", tag, commit)
