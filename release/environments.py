"""Virtual environments that have nothing but the release, and talks with the program installed there."""

from __future__ import annotations

import os
import time
import venv
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

from release.running import ReleaseError, run, run_within, tool

ELIZA = "chorus/eliza"
SAID, FEELING = "I am unhappy", "unhappy"


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment without pip; the release's pip and uv install into it."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """The folder of its packages."""
        (found,) = self.folder.glob("lib/python3*/site-packages")
        return found

    def program(self, name: str = "chorus") -> Path:
        """Return the path of a command."""
        return self.folder / "bin" / name

    def created(self) -> Environment:
        """Make it for the Python that runs the release."""
        venv.create(self.folder, symlinks=True, with_pip=False)
        return self

    def created_for(self, python: str) -> bool:
        """Make it for a Python such as ``3.13`` with uv; return whether this machine has that Python."""
        try:
            run("uv venv", tool("uv", "venv", "--quiet", "--no-python-downloads", "--python", python, self.folder))
        except ReleaseError:
            return False
        return True

    def pip_install(self, *arguments: str | Path) -> None:
        """Install with pip, without bytecode: the program compiles what it uses."""
        here = ("--python", self.python, "install", "--quiet", "--no-compile")
        run("pip install", tool("pip", *here, *arguments))

    def uv_install(self, *arguments: str | Path) -> None:
        """Install with uv."""
        run("uv pip install", tool("uv", "pip", "install", "--quiet", "--python", self.python, *arguments))


@dataclass(frozen=True, slots=True)
class Program:
    """A ``chorus`` with a home of its own, which sees no key and no setting of the person who makes the release."""

    command: tuple[str | Path, ...]
    home: Path

    def run(self, *arguments: str | Path) -> str:
        """Run a command and return what it wrote to standard output."""
        self.home.mkdir(parents=True, exist_ok=True)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "CHORUS_HOME": str(self.home / "chorus"),
            "LC_ALL": "C.UTF-8",
        }
        return run_within(f"chorus {arguments[0]}", [*self.command, *arguments], environment, self.home)

    def talked(self, version: str, model: str = ELIZA) -> str:
        """Ask a model, read the answer back from the log, and return how long start and answer took."""
        started, found = self._timed("--version")
        if found != f"chorus {version}":
            raise ReleaseError(f"{self.command[-1]} says it is {found!r}, and the release is {version}.")
        answered, answer = self._timed("ask", "--model", model, SAID)
        if not answer or (model == ELIZA and FEELING not in answer):
            raise ReleaseError(f"{self.command[-1]} answered {answer!r} to {SAID!r}, as {model}; ask it to see why.")
        if answer.splitlines()[0] not in self.run("log"):
            raise ReleaseError(f"{self.command[-1]} log lacks the answer {answer!r} of {model}.")
        times = f"{started:.1f} s for the first start, {answered:.1f} s for the answer"
        return f"{model} answered: {shorten(answer, 60)} ({times})"

    def _timed(self, *arguments: str) -> tuple[float, str]:
        began = time.perf_counter()
        written = self.run(*arguments).strip()
        return time.perf_counter() - began, written

    def complete(self) -> None:
        """Print the completion scripts; raise ``ReleaseError`` if the package lacks one."""
        for shell in ("bash", "zsh", "fish"):
            self.run("completion", shell)
