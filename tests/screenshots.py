"""The pictures of the documents, taken of the real program; ``python -m tests.screenshots`` writes them into docs/."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.documents import ROOT
from tests.guard import isolated_environment
from tests.models.providers.fault_server import DONE, STREAM_HEAD, chunk, serving, usage_chunk
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.screen.picture import drawn
from tests.terminal.screen.screen_cells import DimScreen, Row, cursor_row, rows_of, text_of

DOCS = ROOT / "docs"

_QUESTION = "How do I read a huge log line by line in Python, lazily?"
_NEXT_QUESTION = "And if the log is gzipped?"
_REPLY = '''\
## One line at a time

A file object *is* a lazy iterator: however large the file, one line of it is in memory.

- **`with`** closes the file, also when something fails.
- **Name the encoding**: the default differs from machine to machine.
- Leave `read()` and `readlines()` alone: they load everything.

```python
def errors(log: Path) -> Iterator[str]:
    """Yield the lines that tell of an error, as they are asked for."""
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            if "ERROR" in line:
                yield line.rstrip("\\n")
```

Whoever calls it decides how much is read: `next(errors(log))` stops at the first.
'''
_CLEAR_LINE = "\x15"
_STYLE_GUIDE = "Python 3.11, type hints everywhere, pathlib rather than os.path. Short functions, plain names.\n"
_MINUTES_AGO = (
    *(655, 645, 625, 615, 605, 585),
    *(455, 445, 445, 435, 425, 415, 415, 415, 405, 385),
    *(255, 245, 245, 235, 225, 225, 225, 215, 195, 185, 185, 165, 95, 85, 85, 75, 65, 65, 65, 55, 35),
)
"""How long ago something was said; what is older than 480 minutes has left the window."""


async def write_pictures() -> None:
    """Talk to the program, and write down what it looks like meanwhile."""
    pieces = [chunk(line) for line in _REPLY.splitlines(keepends=True)]
    answer = (STREAM_HEAD, *pieces, chunk(finish_reason="stop"), usage_chunk(2400, 190), DONE)
    with tempfile.TemporaryDirectory() as folder:
        async with serving(*answer) as server:
            await asyncio.to_thread(_take, Home(Path(folder) / "home"), server.address)


def _take(home: Home, address: str) -> None:
    """Open the chat for each picture or two, as large as suits them."""
    _furnish(home)
    with _chat(home, address, 94, 12) as (terminal, screen):
        terminal.type("/context ")
        terminal.await_text("24 hours ago")
        terminal.await_text(" / 16,000 (")
        _write("toolbar", _all(terminal, screen))
        terminal.type(_CLEAR_LINE)
        terminal.say("/quit")
        terminal.await_end()
    with _chat(home, address, 94, 30) as (terminal, screen):
        terminal.ask(_QUESTION, "stops at the first.")
        terminal.type(_NEXT_QUESTION)
        terminal.await_line(f"{PROMPT} {_NEXT_QUESTION}")
        _write("repl", _all(terminal, screen))
        terminal.type(_CLEAR_LINE)
        terminal.say("/quit")
        terminal.await_end()
    with _chat(home, address, 80, 24) as (terminal, screen):
        _write("help", _answer(terminal, screen, "/help"))
    # What is taken back is left out of the context, and /context says so.
    _say(home, "/undo")
    with _chat(home, address, 62, 30) as (terminal, screen):
        _write("context", _answer(terminal, screen, "/context"))


def _furnish(home: Home) -> None:
    """Put in what the pictures show: a limit that can be filled, a document, and a day's talk."""
    _say(home, "/settings set context_token_limit 16000")
    guide = home.path / "personas" / "chorus" / "docs" / "style.md"
    guide.parent.mkdir(exist_ok=True)
    guide.write_text(_STYLE_GUIDE * 60, encoding="utf-8")
    for minutes in _MINUTES_AGO:
        home.say_by_sql("What was said. " * 10, timedelta(minutes=minutes))
        home.say_by_sql("What was replied. " * 40, timedelta(minutes=minutes), role="assistant")
    home.say_by_sql("Which Python do we write for?", timedelta(minutes=25))
    home.say_by_sql("3.11, as the style guide says.", timedelta(minutes=25), role="assistant")
    # What has left the window is only counted when somebody looks that far back.
    _say(home, "/context 24h?")


def _say(home: Home, command: str) -> None:
    done = home.run("ask", "-c", command)
    assert done.code == 0, done.errors


@contextmanager
def _chat(home: Home, address: str, columns: int, lines: int) -> Iterator[tuple[Terminal, DimScreen]]:
    screen = DimScreen(columns, lines, history=1000)
    server = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-of-nobody"}
    looks = {"COLORTERM": "truecolor"}
    with closing(Terminal({**home.environment, **server, **looks}, screen)) as terminal:
        terminal.await_line(PROMPT)
        # The notices and the last exchange come after the first prompt.
        terminal.watch(1)
        yield terminal, screen


def _all(terminal: Terminal, screen: DimScreen) -> list[Row]:
    """Return what stands on the screen and above it, once that has come to rest."""
    # What appears by itself, such as a number that is computed in the background, is there after a second.
    terminal.watch(1)
    return rows_of(screen)


def _answer(terminal: Terminal, screen: DimScreen, command: str) -> list[Row]:
    """Say a command, and return it with its answer and with the next prompt, but nothing that is below that."""
    terminal.say(command)
    terminal.await_text(f"{PROMPT} {command}")
    terminal.await_line(PROMPT)
    rows = _all(terminal, screen)
    start = max(number for number, row in enumerate(rows) if text_of(row) == f"{PROMPT} {command}")
    return rows[start : cursor_row(screen) + 1]


def _write(name: str, rows: list[Row]) -> None:
    (DOCS / f"{name}.svg").write_text(drawn(rows, "chorus"), encoding="utf-8")


def _zone(now: datetime) -> str:
    """Return a time zone in which it is half past two: the pictures show the same hours whenever they are taken."""
    ahead = now - now.replace(hour=14, minute=30, second=0)
    return f"UTC{'-' if ahead < timedelta() else '+'}{abs(ahead)}"


def _surroundings() -> dict[str, str]:
    """Return an environment in which nothing of whoever takes the pictures is left."""
    isolated = isolated_environment(dict(os.environ)) | {"TZ": _zone(datetime.now(UTC).replace(microsecond=0))}
    return {name: value for name, value in isolated.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}


if __name__ == "__main__":
    hooks = _surroundings()
    os.environ.clear()
    os.environ.update(hooks)
    DOCS.mkdir(exist_ok=True)
    asyncio.run(write_pictures())
