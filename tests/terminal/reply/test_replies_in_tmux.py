"""Replies in a terminal that many have: tmux obeys none of them, and loses no line when its window changes."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.terminal.reply.shown_turns import HOSTILE
from tests.terminal.tmux import await_pane

_LONGER_THAN_A_FRAME_SECONDS = 0.2  # a frame on its way would be one of the old size


def show_in(tmux: Callable[..., str], path: Path) -> None:
    tmux("send-keys", f"clear; {sys.executable} -m tests.terminal.reply.show_reply {path}; echo en''ded", "Enter")


def test_a_hostile_reply_in_tmux_reaches_neither_clipboard_nor_keyboard(
    tmux: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "reply.md"
    path.write_bytes(HOSTILE.encode())
    show_in(tmux, path)
    pane = await_pane(tmux, "\nended\n")
    assert tmux("list-buffers") == ""
    assert "blocked: 0" in pane
    assert "last words" in pane
    assert "hidden characters in this reply" in pane
    assert pane.rstrip().splitlines()[-1].strip() in {"$", "#"}


OPEN_BLOCKS = [
    "\n"
    + "".join(f"- item n{number}, with more words than a narrow window has room for\n" for number in range(100, 106)),
    "\n```\n" + "".join(f"line_of_code(n{number}) + {'x' * 20} + {'y' * 20}\n" for number in range(200, 216)),
    "```\n\n"
    + "".join(f"> quoted n{number}, and more words than a narrow window has room for\n" for number in range(300, 305)),
    "\n| a | b |\n|---|---|\n" + "".join(f"| row n{number} | {'words ' * 7}|\n" for number in range(400, 405)),
    "\n- item\n\n  ```\n" + "".join(f"  line_of_code(n{number}) + {'z' * 30}\n" for number in range(500, 505)),
    "  ```\n\n`line n600` of code\n\nlast words n601, " + "and so on " * 20,
]
SIZES = [[(50, 15)], [(30, 15), (80, 15), (30, 15)], [(80, 15)], [(45, 20)], [(80, 20), (30, 20)], [(70, 12)]]


@pytest.mark.parametrize("first_size", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_window_that_changes_its_size_shows_every_line_once(
    first_size: int, tmux: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "reply.md"
    os.mkfifo(path)
    show_in(tmux, path)
    with path.open("w") as pipe:
        for text, sizes in zip(OPEN_BLOCKS, [*SIZES[first_size:], *SIZES[:first_size]], strict=True):
            pipe.write(text)
            pipe.flush()
            await_pane(tmux, re.findall("n[0-9]{3}", text)[-1])
            time.sleep(_LONGER_THAN_A_FRAME_SECONDS)
            for columns, lines in sizes:
                tmux("resize-window", "-x", str(columns), "-y", str(lines))
    pane = re.sub(r"\s", "", await_pane(tmux, "\nended\n"))
    numbers = re.findall("n[0-9]{3}", "".join(OPEN_BLOCKS))
    assert {number: pane.count(number) for number in numbers if pane.count(number) != 1} == {}
