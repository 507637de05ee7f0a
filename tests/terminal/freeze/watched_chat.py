"""A chat whose event loop is watched, with a provider that says what the test wants."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from tests.adapters.models.fault_server import DONE, chunk
from tests.loopback_server import serving
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.freeze.watched import Step, steps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

END = "and that is the end"
_PIECE = 20_000
_ENDED = b"Stopped"
_LOADED_SECONDS = 3.0
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>])")
_OBEYED = re.compile("[\x00-\x06\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class WatchedChat:
    """``replies`` are said by the provider when the user says their names."""

    def __init__(self, terminal: Terminal, file: Path, replies: dict[str, str]) -> None:
        self.terminal = terminal
        self.replies = replies
        self._file = file
        self._begin = 0
        self._clock = (~terminal.pid << 3) | 2
        """Linux's number for the processor time of another process."""

    def shown(self, name: str, seconds: float) -> float | None:
        """Have a reply shown for so long and then stopped: return what that took, ``None`` if it came to its end."""
        self.terminal.say(name)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.terminal.watch(0.05)
            if self.terminal.screen_text().endswith(END) or END in self._tail():
                self.terminal.await_line(PROMPT)
                return None
        taken = self._stopped()
        self.terminal.await_line(PROMPT)
        return taken

    def _stopped(self) -> float:
        """Stop a reply, and return the seconds to the sentence about that; the screen is updated only then."""
        begun, worked = time.monotonic(), time.clock_gettime(self._clock)
        self.terminal.press("ctrl-c")
        arrived = b""
        while _ENDED not in arrived:
            arrived += os.read(self.terminal._child.child_fd, 65_536)
        taken = min(time.monotonic() - begun, time.clock_gettime(self._clock) - worked)
        self.terminal.drawn += arrived
        self.terminal._stream.feed(arrived)
        return taken

    def long_steps(self) -> list[Step]:
        """Return the long steps of the loop since the last call."""
        found = steps(self._file)
        new, self._begin = found[self._begin :], len(found)
        return new

    def obeyed(self) -> list[str]:
        """Return signs on the terminal since the last call that it would obey and that are none of ours."""
        drawn, self.terminal.drawn = self.terminal.drawn, b""
        return _OBEYED.findall(_SEQUENCE.sub("", drawn.decode(errors="replace")))

    def _tail(self) -> str:
        return self.terminal.drawn[-2_000:].decode(errors="replace")


@contextmanager
def watching(home: Home, replies: dict[str, str]) -> Iterator[WatchedChat]:
    """Open the chat with a watchdog, and wait until it has loaded all that it needs later."""
    folder = home.path / "personas" / "chorus"
    folder.mkdir(parents=True)
    settings = {"name": "Chorus", "system_prompt": "Be brief.", "model": "openai/small", "context_token_limit": 10**9}
    (folder / "system.jsonc").write_text(json.dumps(settings))
    file = home.path / "steps"
    file.touch()

    def answer(body: dict[str, Any]) -> tuple[int, Iterator[bytes]]:
        said = str(body["messages"][-1]["content"]).rsplit("\n", 1)[-1]
        return 200, _said(replies.get(said, "Noted."))

    with serving(answer) as address:
        environment = {**home.environment, "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-of-nobody"}
        command = [sys.executable, "-m", "tests.terminal.freeze.watched", str(file)]
        with closing(Terminal(environment, command=command)) as terminal:
            terminal.await_line(PROMPT)
            terminal.ask("hello", END)
            terminal.watch(_LOADED_SECONDS)
            chat = WatchedChat(terminal, file, replies)
            chat.long_steps()
            chat.obeyed()
            yield chat


def _said(text: str) -> Iterator[bytes]:
    for start in range(0, len(text), _PIECE):
        yield chunk(text[start : start + _PIECE])
    yield chunk(f"\n\n{END}\n")
    yield chunk(finish_reason="stop") + DONE
