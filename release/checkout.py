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
        if changed := self.git("status", "--porcelain", "-z"):
            example = changed.split("\0")[0].split(maxsplit=1)[1]
            raise ReleaseError(f"{self.path} has uncommitted changes, such as {example}; commit or remove them.")
        if self.git("tag", "--list", tag):
            raise ReleaseError(f"The tag {tag} is there already; choose a higher version.")

    def committed_at(self, commit: str) -> int:
        """Return the time of a commit, in seconds since 1970."""
        return int(self.git("log", "-1", "--format=%ct", commit))

    def cloned(self, folder: Path) -> Checkout:
        """Return a clone in ``folder`` in which the same person commits."""
        run("git clone", ["git", "clone", "--quiet", self.path, folder])
        clone = Checkout(folder)
        for name in ("user.name", "user.email"):
            if value := self.git("config", "--default", "", "--get", name):
                clone.git("config", name, value)
        return clone

    def commit(self, message: str, tag: str = "") -> None:
        """Commit all that has changed, and give the commit a tag."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        if tag:
            self.git("tag", "--annotate", "--message", message, tag)

    def take_over(self, clone: Checkout, tag: str) -> None:
        """Go on to the newest commit of a clone, and take its tag; refused if the checkout has other new commits."""
        self.git("fetch", "--quiet", "--no-tags", clone.path, "HEAD")
        self.git("merge", "--quiet", "--ff-only", "FETCH_HEAD")
        self.git("fetch", "--quiet", clone.path, "tag", tag)
