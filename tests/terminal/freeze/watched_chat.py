"""A chat whose event loop is watched, with a provider that says what the test wants."""

from __future__ import annotations

import json
import os
import re
import select
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from chorus_cli.core import limits
from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk
from tests.terminal.driver import PATIENCE_SECONDS, PROMPT, Home, Terminal
from tests.terminal.forked import WATCHED_PROGRAM
from tests.terminal.freeze.watched import Step, steps

END = "and that is the end"
_PIECE = 20_000
_STOPPED = "Stopped"
_CUT = f"The reply was stopped at {limits.REPLY.size}"
_LIMIT = 10**9
_GAUGE = f"/ {_LIMIT:,}"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>])")
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
_LONGEST_BYTES = 1_000  # words that are waited for take less, with a colour for each letter
_BEGUN_SEQUENCE = re.compile(rb"\x1b(?:\[[0-9;?]*)?\Z")
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
        """Have a reply shown for so long and then stopped: return what that took, ``None`` if it ended before.

        It ends by itself, or at the limit of a reply.
        """
        self.terminal.say(name)
        if self.seen(END, seconds, or_else=_CUT):
            self._await_prompt()
            return None
        begun, worked = time.monotonic(), time.clock_gettime(self._clock)
        self.terminal.press("ctrl-c")
        assert self.seen(_STOPPED)
        taken = min(time.monotonic() - begun, time.clock_gettime(self._clock) - worked)
        self._await_prompt()
        return taken

    def begin_thread(self) -> None:
        self.terminal.say("/thread new")
        assert self.seen("Thread #")
        self._await_prompt()

    def seen(self, words: str, seconds: float = PATIENCE_SECONDS, *, or_else: str = "") -> bool:
        """Read what the terminal is sent until it was sent ``words``; the emulator, which is slow, reads nothing."""
        begin, number, deadline = len(self.terminal.drawn), self.terminal._child.child_fd, time.monotonic() + seconds
        awaited = [each.encode() for each in (words, or_else) if each]
        looked_up_to = begin
        while not any(each in self._plain(max(begin, looked_up_to - _LONGEST_BYTES)) for each in awaited):
            looked_up_to = len(self.terminal.drawn)
            if not select.select([number], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return False
            self.terminal.drawn += os.read(number, 65_536)
        return True

    def _plain(self, begin: int) -> bytes:
        """Return what was drawn from there on without colours: each letter may have one of its own in code."""
        return _COLOUR.sub(b"", self.terminal.drawn[begin:])

    def _await_prompt(self) -> None:
        # It may have come with the words that were waited for.
        assert PROMPT in self._tail() or self.seen(PROMPT)

    def long_steps(self) -> list[Step]:
        found = steps(self._file)
        new, self._begin = found[self._begin :], len(found)
        return new

    def obeyed(self) -> list[str]:
        """Return signs on the terminal since the last call that it would obey and that are none of ours."""
        drawn, self.terminal.drawn = self.terminal.drawn, b""
        if begun := _BEGUN_SEQUENCE.search(drawn):
            # Its end has not been read yet.
            drawn, self.terminal.drawn = drawn[: begun.start()], drawn[begun.start() :]
        return _OBEYED.findall(_SEQUENCE.sub("", drawn.decode(errors="replace")))

    def _tail(self) -> str:
        return self.terminal.drawn[-300:].decode(errors="replace")


@contextmanager
def watching(home: Home, replies: dict[str, str]) -> Iterator[WatchedChat]:
    """Open the chat with a watchdog, and wait until it has loaded all that it needs later."""
    folder = home.path / "personas" / "chorus"
    folder.mkdir(parents=True)
    settings = {"name": "Chorus", "system_prompt": "Be brief.", "model": "openai/small", "context_token_limit": _LIMIT}
    (folder / "system.jsonc").write_text(json.dumps(settings))
    file = home.path / "steps"
    file.touch()

    def answer(body: dict[str, Any]) -> tuple[int, Iterator[bytes]]:
        said = str(body["messages"][-1]["content"]).rsplit("\n", 1)[-1]
        return 200, _said(replies.get(said, "Noted."))

    with serving(answer) as address:
        environment = {**home.environment, "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-of-nobody"}
        command = [*WATCHED_PROGRAM, str(file)]
        with closing(Terminal(environment, command=command)) as terminal:
            terminal.await_line(PROMPT)
            terminal.ask("hello", END)
            # The gauge of the context is the last that is loaded.
            terminal.await_text(_GAUGE)
            chat = WatchedChat(terminal, file, replies)
            chat.long_steps()
            chat.obeyed()
            yield chat


def _said(text: str) -> Iterator[bytes]:
    for start in range(0, len(text), _PIECE):
        yield chunk(text[start : start + _PIECE])
    yield chunk(f"\n\n{END}\n")
    yield chunk(finish_reason="stop") + DONE
