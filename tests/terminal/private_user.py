"""A user of private chats, and a search of the machine for what they said there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.terminal.command import PROGRAM
from tests.terminal.driver import PATIENCE_SECONDS, PROMPT, Home, Terminal

IN_MEMORY = Path("/dev") / "shm"
WORD = "xyzzy-canary-0451"  # A word that is nowhere unless a private chat has left it there
PRIVATE = "private · nothing is kept"
OVER = "The private chat is over"


@dataclass(frozen=True)
class PrivateUser:
    """A home, a temporary folder, and a runtime folder in memory, which all may be searched."""

    home: Home
    temporary: Path
    runtime: Path

    def environment(self) -> dict[str, str]:
        return {"TMPDIR": str(self.temporary), "XDG_RUNTIME_DIR": str(self.runtime)}

    @contextmanager
    def chat(self, *options: str, **variables: str) -> Iterator[Terminal]:
        terminal = Terminal({**self.home.environment, **self.environment(), **variables}, command=[*PROGRAM, *options])
        try:
            terminal.await_line(PROMPT)
            yield terminal
        finally:
            terminal.close()

    def traces(self, word: str = WORD) -> list[str]:
        files = [path for place in (self.home.path, self.temporary, self.runtime) for path in place.rglob("*")]
        return [str(path) for path in files if word in path.name or (path.is_file() and holds(path, word))]

    def await_empty_memory(self) -> None:
        """Wait until nothing is left in the runtime folder: after a SIGKILL another process clears it up."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while left := list(self.runtime.iterdir()):
            assert time.monotonic() < deadline, f"{left} were not deleted."
            time.sleep(0.01)

    def tree(self) -> Mapping[str, tuple[int, int]]:
        """Return size and time of the last change of each file and folder of the home."""
        found = {str(path): path.lstat() for path in (self.home.path, *self.home.path.rglob("*"))}
        return {path: (status.st_size, status.st_mtime_ns) for path, status in found.items()}


def holds(path: Path, word: str) -> bool:
    return word.encode() in path.read_bytes()


@contextmanager
def private_user(folder: Path) -> Iterator[PrivateUser]:
    """Make the folders; that in memory is a folder on the disk where there is no such file system."""
    temporary = folder / "temporary"
    temporary.mkdir()
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else folder) as runtime:
        yield PrivateUser(Home(folder / "home"), temporary, Path(runtime))


def begin_private(chat: Terminal) -> None:
    chat.say("/private")
    chat.await_bottom_line(PRIVATE)
    chat.await_line(PROMPT)


def end_private(chat: Terminal) -> None:
    chat.press("ctrl-d")
    chat.await_text(OVER)
    chat.until(lambda: PRIVATE not in chat.bottom_line(), "the ordinary chat")
    chat.await_line(PROMPT)
