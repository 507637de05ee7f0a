"""The real chat with a watchdog on its event loop: ``python -m tests.terminal.freeze.watched FILE``.

Written into FILE, as lines of JSON: every step of the loop that took long, with the place where it was then. A step
ends when the loop listens again, which it does every 250 ms at least. Steps are measured in seconds of this process's
own processor time if the machine was busy: another program's work is no freeze of the chat.
"""

from __future__ import annotations

import json
import os
import selectors
import sys
import threading
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from chorus_cli.__main__ import run as run_chorus
from chorus_cli.terminal import repl

HEARTBEAT_SECONDS = 0.25
NOTEWORTHY_SECONDS = 0.05
_LOOK_SECONDS = 0.02
_SHOWN_FRAMES = 14


class Step(NamedTuple):
    """A step of the loop that took long: its seconds, by the processor if that is less, and the frames it was in."""

    at: float
    seconds: float
    wall_seconds: float
    place: str


def steps(file: Path) -> list[Step]:
    return [Step(**json.loads(line)) for line in file.read_text().splitlines()]


class WatchedSelector(selectors.DefaultSelector):
    """A selector that notes how long the loop was away."""

    file = Path(os.devnull)

    def __init__(self) -> None:
        super().__init__()
        self._since = (time.monotonic(), time.process_time())
        self._is_away = False
        self._place = ""
        self._loop_thread = threading.get_ident()
        threading.Thread(target=self._look, daemon=True).start()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._is_away = False
        self._note()
        asked = HEARTBEAT_SECONDS if timeout is None else max(0.0, min(timeout, HEARTBEAT_SECONDS))
        self._since = (time.monotonic() + asked, time.process_time())
        found = super().select(asked)
        # Until it has Python's lock again, another thread may have held it.
        self._note()
        self._since = (time.monotonic(), time.process_time())
        self._is_away = True
        return found

    def _note(self) -> None:
        wall, worked = time.monotonic() - self._since[0], time.process_time() - self._since[1]
        seconds = min(wall, worked)
        if seconds > NOTEWORTHY_SECONDS:
            step = Step(time.monotonic(), round(seconds, 4), round(wall, 4), self._place)
            with self.file.open("a") as file:
                file.write(json.dumps(step._asdict()) + "\n")
        self._place = ""

    def _look(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            away = time.monotonic() - self._since[0]
            frame = sys._current_frames().get(self._loop_thread)
            if away > NOTEWORTHY_SECONDS and frame is not None and not self._place:
                self._place = _place(frame)


def _place(frame: FrameType) -> str:
    found = traceback.extract_stack(frame)[-_SHOWN_FRAMES:]
    return " > ".join(f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in found)


def run() -> Any:
    """Run the chat; it loads what it needs later as soon as its prompt is drawn."""
    WatchedSelector.file = Path(sys.argv[1])
    selectors.DefaultSelector = WatchedSelector  # type: ignore[misc]
    repl._SETTLING_SECONDS = 0.0
    sys.argv = ["chorus"]
    run_chorus()


if __name__ == "__main__":
    run()
