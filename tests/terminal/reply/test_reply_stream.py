"""A turn on its way to the screen: painted on a terminal, plain anywhere else, and whole however it ends."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import re
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

from chorus_cli.core.errors import ModelError, OutputError
from chorus_cli.log.rules.messages import Status
from chorus_cli.machine.shell import marked_processes
from chorus_cli.models.rules.events import Fence, Notice, ReasoningDelta, TextDelta, TurnDone, TurnEvent
from chorus_cli.terminal.reply import stream
from chorus_cli.terminal.reply.stream import show_events
from chorus_cli.terminal.screen.output import Screen
from tests.terminal.driver import await_pane
from tests.terminal.screen.terminal_file import (
    ASKING,
    DONE,
    HOSTILE,
    XTERM,
    TerminalFile,
    begun,
    on_terminal,
    seen,
    shown,
    stopped,
    turn,
)

_PATIENCE_SECONDS = 3.0  # it takes a third of a second, but other tests may be at work

pytestmark = pytest.mark.usefixtures("_usual_size")


async def test_a_reply_is_painted_as_markdown() -> None:
    file = await shown(
        TextDelta("# He"), 0.1, TextDelta("ad\n\nsome *te"), TextDelta("xt* &am"), TextDelta("p; more"), DONE
    )
    assert file.window.text() == [" " * 38 + "Head", "", "some text & more"]
    assert "\x1b[3mtext" in file.written


@pytest.mark.parametrize(("environment", "is_magenta"), [({}, True), ({"NO_COLOR": "1"}, False)])
async def test_no_color_leaves_colours_out(environment: dict[str, str], *, is_magenta: bool) -> None:
    file = await shown(TextDelta("*some* `text`"), DONE, environment=XTERM | environment)
    assert ("\x1b[35mtext" in file.written, "\x1b[3msome" in file.written) == (is_magenta, True)


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


async def test_only_a_terminal_gets_the_fence_of_a_block_that_goes_on() -> None:
    code = (Fence("```\n"), TextDelta("x *= 1\n```\n"), DONE)
    stream, (file, screen) = io.StringIO(), on_terminal()
    piped = Screen(stream, XTERM)
    await show_events(turn(*code), piped, piped)
    assert stream.getvalue() == "x *= 1\n```\n"
    await show_events(turn(*code), screen, screen)
    assert "x *= 1" in file.window.text()


async def test_a_notice_stands_above_what_is_still_open() -> None:
    file, screen = on_terminal()
    steps = (TextDelta("One\n\ntwo"), lambda: "two" in file.written, Notice("Trying again."), TextDelta(" three"), DONE)
    await begun(screen, *steps)
    assert file.window.text() == ["One", "", "Trying again.", "", "two three"]


async def test_a_reply_stands_apart_from_notices_and_below_the_name_of_its_speaker() -> None:
    file, screen = on_terminal()
    screen.notice("Before.")
    said = TextDelta("# H\n\nOne.\n\n")
    await begun(screen, said, lambda: "One." in file.written, Notice("After."), Notice("More."), DONE)
    screen.gap()
    steps = (ASKING, Notice("Asked again."), ReasoningDelta("hm"), TextDelta("Yes."), TextDelta(" No."), DONE)
    await show_events(turn(*steps), screen, screen, speaker="Mira")
    rows = [row.strip() for row in file.window.text()]
    assert rows == ["Before.", "", "H", "", "One.", "", "After.", "More.", "", "Asked again.", "", "Mira", "Yes. No."]


async def test_nothing_is_painted_over_while_the_window_changes_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    file, screen = on_terminal()
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
    assert file.window.text() == ["One *two", "", "The line is dead."]


@pytest.mark.parametrize("seconds", [0.0, 0.3])
async def test_a_reply_that_is_stopped_keeps_what_has_arrived_and_a_sane_screen(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    # On a busy machine the drawing may take longer than a user would wait, and then the rest comes as text.
    monkeypatch.setattr(stream, "_LAST_DRAWING_SECONDS", 60.0)
    monkeypatch.setattr(stream, "_LAST_WAIT_SECONDS", 60.0)
    import_module("chorus_cli.terminal.markdown.stream")
    file, screen = on_terminal()
    showing = begun(screen, TextDelta("# Head\n\n```python\nx = '"), TextDelta("1"), 60.0, TextDelta("never"))
    await asyncio.sleep(seconds)
    await asyncio.sleep(0)
    await stopped(showing)
    screen.line("❯")
    assert file.window.text() == [" " * 38 + "Head", "", f"── python {'─' * 30}", "x = '1", "─" * 40, "❯"]
    assert file.written.count("\x1b[?2026h") == file.written.count("\x1b[?2026l")
    assert file.written.count("\x1b[?7l") == file.written.count("\x1b[?7h")


async def test_other_work_goes_on_while_a_long_reply_comes_at_once() -> None:
    file, screen = on_terminal()
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await begun(screen, TextDelta("word and " * 30_000), DONE)
    counting.cancel()
    assert turns > 20
    assert "\n".join(file.window.text()).count("word") == 30_000


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
async def test_code_is_lexed_by_a_process_that_lives_as_long_as_the_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that can be killed: a lexer in a thread would hold up the event loop."""

    def is_lexed_apart() -> bool:
        return bool(marked_processes("CHORUS_LEXES=apart", "-", 0))

    monkeypatch.setenv("CHORUS_LEXES", "apart")
    screen = Screen(TerminalFile(), XTERM)
    showing = begun(screen, TextDelta("```python\nx = 1\n"), 60.0)
    await seen(is_lexed_apart)
    await stopped(showing)
    await seen(lambda: not is_lexed_apart())


class BegunFile(TerminalFile):
    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def write(self, text: str) -> int:
        self._loop.call_soon_threadsafe(self.begun.set)
        return super().write(text)


@pytest.mark.parametrize("hostile", ["*_[", "![", "word and ", "| a |\n|---|\n"])
async def test_a_megabyte_that_is_stopped_gives_way_and_tells_what_is_not_shown(hostile: str) -> None:
    file = BegunFile()
    screen = Screen(file, XTERM)
    text = (hostile * 1_000_000)[:1_000_000]
    showing = begun(screen, TextDelta(text), DONE)
    await file.begun.wait()
    began = time.monotonic()
    await stopped(showing)
    assert time.monotonic() - began < _PATIENCE_SECONDS
    assert "The end of what arrived is not shown here. It is kept" in file.written


async def test_an_output_that_takes_no_more_ends_the_turn() -> None:
    file = TerminalFile()
    file.failure = OSError(errno.ENOSPC, "No space left")
    screen = Screen(file, XTERM)
    with pytest.raises(OutputError, match="No space left"):
        await begun(screen, TextDelta("One"), 1.0, TextDelta("two"), 60.0)


async def test_a_hostile_reply_is_defused_and_told_of() -> None:
    file = await shown(*(TextDelta(HOSTILE[start : start + 5_000]) for start in range(0, len(HOSTILE), 5_000)), DONE)
    text = "\n".join(file.window.text())
    assert '2 hidden characters in this reply (decoded: "hi")' in text
    assert "last words" in text
    assert "bank.example (http://evil.example)" in text
    assert "[/foo] [red]" in text
    assert "]52;" not in file.written.replace("␛]52;", "")
    assert text.count("megabyte") == 12_000


_LONGER_THAN_A_FRAME_SECONDS = 0.2  # a line that is not gone would be painted anew


async def test_thoughts_take_one_dim_line_until_the_reply_comes() -> None:
    file, screen = on_terminal()
    thoughts = [ReasoningDelta("Let me see.\n\nThe use"), ReasoningDelta("r asks\x1b[2J for " + "more " * 100 + "tea.")]
    spoken = asyncio.Event()
    showing = begun(screen, *thoughts, spoken, TextDelta("Tea *it* is."), DONE)
    await seen(lambda: file.window.text() != [])
    (line,) = file.window.text()
    assert line.startswith("thinking … more more ")
    assert line.endswith(" more tea.")
    assert "\x1b[2mthinking" in file.written
    spoken.set()
    await showing
    assert file.window.text() == ["Tea it is."]
    assert screen.guard.blocked == 0


async def test_thoughts_are_repainted_four_times_a_second_and_nothing_moves_without_one() -> None:
    file, screen = on_terminal()
    thoughts = [step for number in range(100) for step in (ReasoningDelta(f" word{number}"), 0.01)]
    showing = begun(screen, *thoughts, 60.0)
    began = time.monotonic()
    await seen(lambda: file.window.text() != [])
    await seen(lambda: file.window.text()[0].endswith(" word98 word99"))
    assert file.written.count("thinking") <= 1 + (time.monotonic() - began) / 0.25
    assert file.window.text()[0].split()[2].startswith("word")
    written = file.written
    await asyncio.sleep(1.2)
    assert file.written == written
    await stopped(showing)


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
    file, screen = on_terminal()
    comes = asyncio.Event()
    showing = begun(screen, ASKING, comes, something, 60.0)
    await seen(lambda: WAITING in "".join(file.window.text()))
    comes.set()
    await seen(lambda: "".join(file.window.text()).startswith(line))
    written = file.written.count(WAITING)
    await asyncio.sleep(_LONGER_THAN_A_FRAME_SECONDS)
    assert file.written.count(WAITING) == written
    await stopped(showing)


@pytest.mark.parametrize("end", ["a failure", "Ctrl-C"])
async def test_who_is_waited_for_is_gone_when_nothing_comes(end: str) -> None:
    file, screen = on_terminal()
    over = asyncio.Event()
    showing = begun(screen, ASKING, over, TurnDone(1, Status.FAILED, error=ModelError("The line is dead.")))
    await seen(lambda: WAITING in "".join(file.window.text()))
    if end == "Ctrl-C":
        showing.cancel()
    over.set()
    with suppress(asyncio.CancelledError):
        await showing
    assert file.window.text() == (
        [] if end == "Ctrl-C" else ["The line is dead. Your message is kept; /retry asks again."]
    )


async def test_a_quick_answer_is_not_waited_for() -> None:
    file = await shown(ASKING, 0.1, TextDelta("Tea."), DONE)
    assert "waiting" not in file.written


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
def test_a_window_that_changes_its_size_loses_no_line(
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
    assert [number for number in numbers if number not in pane] == []
