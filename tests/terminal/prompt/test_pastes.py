"""Pastes are taken whole or left out with a sentence; attachments are completed, pasted, dropped and taken back."""

from __future__ import annotations

import itertools
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from chorus_cli.core import limits
from chorus_cli.terminal.prompt.keys import Line
from chorus_cli.terminal.prompt.line import PasteParser
from tests.amount import examples
from tests.attached_files import FILES
from tests.loopback_providers import Recorder, recording, remembering
from tests.terminal.driver import PROMPT, Home, Terminal, await_pane
from tests.terminal.small_model import furnish, say, talking

BEGIN, END = "\x1b[200~", "\x1b[201~"
STRAY = re.compile(rf"{re.escape(END)}(?:(?!{re.escape(BEGIN)}).)*{re.escape(END)}", re.DOTALL)
"""A mark of the end that no beginning stands before."""


def pressed(pieces: list[str]) -> tuple[list[KeyPress], list[str]]:
    keys: list[KeyPress] = []
    told: list[str] = []
    parser = PasteParser(keys.append, told.append)
    for piece in pieces:
        parser.feed(piece)
    parser.flush()
    return keys, told


@examples(200)
@given(
    st.lists(st.sampled_from([BEGIN, END, "\x1b", "\x1b[20", "1~", "[201~", "a", "/x\r", "é\n"]), max_size=12),
    st.data(),
)
def test_keys_and_pastes_are_those_of_the_library_however_they_are_cut(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=4))})
    if STRAY.search(text):
        # The library ends the paste with the first mark, also of those that arrive at once.
        cuts = sorted({*cuts, *(match.end() for match in re.finditer(re.escape(END), text))})
    expected: list[KeyPress] = []
    library = Vt100Parser(expected.append)
    pieces = [text[start:end] for start, end in itertools.pairwise(cuts)]
    for piece in pieces:
        library.feed(piece)
    library.flush()
    assert pressed(pieces) == (expected, [])


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (f"{BEGIN}a{END}!evil\r{END}\r", ["a!evil\r", "\r"]),
        (f"{BEGIN}a{END}b{END}c{END}d", ["abc", "d"]),
        (f"{BEGIN}a{END}b\r{BEGIN}c{END}\r", ["a", "b", "\r", "c", "\r"]),
    ],
    ids=["a mark of the end in a paste", "two of them", "two pastes"],
)
def test_of_the_marks_that_arrive_at_once_the_last_one_ends_the_paste(typed: str, expected: list[str]) -> None:
    assert [key.data for key in pressed([typed])[0]] == expected


def test_a_paste_of_a_hundred_megabytes_is_left_out_at_once_and_keys_work_again() -> None:
    kilobyte = "x" * 1024
    began = time.perf_counter()
    keys, told = pressed([BEGIN, *[kilobyte] * 100_000, END, "a"])
    assert time.perf_counter() - began < 10
    assert keys == [KeyPress("a", "a")]
    assert told == [
        (
            "The paste is too long: it has 102,400,000 characters, and the prompt takes at most 1,000,000. "
            "Save it to a file and attach that with @FILE, or pipe it to chorus ask."
        )
    ]


@pytest.mark.parametrize("length", [limits.PASTE.most - 1, limits.PASTE.most])
def test_the_longest_paste_comes_whole(length: int) -> None:
    for pieces in ([BEGIN, "x" * length, END], [BEGIN, "x" * length + END[:-1], END[-1]]):
        assert pressed(pieces) == ([KeyPress(Keys.BracketedPaste, "x" * length)], [])


def test_the_chat_goes_on_after_a_paste_that_is_too_long(home: Home) -> None:
    with home.chat() as chat:
        chat.type("I am ")
        chat.paste("x" * (limits.PASTE.most + 1))
        chat.await_text("The paste is too long")
        chat.type("tired")
        chat.await_line(f"{PROMPT} I am tired")
        chat.press("enter")
        chat.await_text("tired?")
    assert home.said() == ["I am tired"]


ON, OFF = b"\x1b[?2004h", b"\x1b[?2004l"
FOLDED = "The model now gets a summary of the oldest"
ROWS = [f"row {number} of the message" for number in range(1, 21)]


def switches(drawn: bytes) -> list[bytes]:
    found = [(place, switch) for switch in (ON, OFF) for place in range(len(drawn)) if drawn.startswith(switch, place)]
    return [switch for _, switch in sorted(found)]


@pytest.mark.parametrize("end", [Terminal.leave, lambda chat: chat.kill(signal.SIGTERM)], ids=["Ctrl-D", "SIGTERM"])
def test_notices_and_replies_leave_pastes_marked_until_the_end(home: Home, end: Callable[[Terminal], None]) -> None:
    furnish(home, 1000)
    with remembering() as provider, talking(home, provider.address) as chat:
        say(chat, "one", "two", "three", more=230)
        chat.await_text(FOLDED)
        chat.await_line(PROMPT)
        assert switches(chat.drawn) == [ON]
        end(chat)
    assert switches(chat.drawn) == [ON, OFF]


def test_pastes_at_any_moment_are_one_message_each(home: Home, tmux: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "message").write_text("\n".join(ROWS))
    variables = f"LC_ALL=C.UTF-8 CHORUS_HOME={home.path}"
    tmux("send-keys", f"clear; {variables} {sys.executable} -m chorus_cli", "Enter")
    await_pane(tmux, "sees 8 h")
    tmux("load-buffer", str(tmp_path / "message"))
    times = 6
    for _ in range(times):
        tmux("send-keys", "I am here", "Enter")
        tmux("paste-buffer", "-p")
        tmux("send-keys", "Enter")
    tmux("send-keys", "I am done", "Enter")
    await_pane(tmux, "done?")
    assert home.said() == [*(["I am here", "\n".join(ROWS)] * times), "I am done"]


@pytest.fixture(scope="module")
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


@pytest.fixture
def photo(server: Recorder) -> Iterator[Path]:
    """A picture whose path has a blank, and is short enough for a line of the terminal."""
    server.bodies.clear()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "my photo.png"
        path.write_bytes(FILES["photo.png"])
        yield path


def kinds(server: Recorder) -> list[list[str]]:
    return [["text"] if isinstance(each, str) else [part["type"] for part in each] for each in server.contents()]


def test_a_file_is_completed_after_an_at_sign_and_sent(home: Home, photo: Path, server: Recorder) -> None:
    with home.chat(**server.environment()) as chat:
        chat.type(f"look at @{photo.parent}/my")
        chat.await_text("my photo.png", times=1)
        chat.type("\t")
        chat.await_text('my photo.png"')
        chat.ask(" please", "seen.")
    assert kinds(server) == [["image_url", "text"]]


def test_a_file_that_waits_is_shown_below_and_can_be_taken_back(home: Home, photo: Path, server: Recorder) -> None:
    with home.chat(**server.environment()) as chat:
        chat.say(f"/attach {photo}")
        chat.await_text(" to your next message. /attach clear")
        chat.await_bottom_line("+ my photo.png")
        chat.say("/attach clear")
        chat.await_text(" from your next message.")
        chat.until(lambda: "my photo" not in chat.bottom_line(), "a line below without it")
        chat.ask("nothing", "seen.")
        chat.say(f"/attach {photo}")
        chat.await_bottom_line("+ my photo.png")
        chat.say("what is it?")
        chat.until(lambda: len(server.bodies) == 2, "the second question")
        chat.await_line(PROMPT)
        chat.until(lambda: "my photo" not in chat.bottom_line(), "a line below without it")
    assert kinds(server) == [["text"], ["image_url", "text"]]


DROPPED = ("{}/my photo.png", "'{}/my photo.png' ", "{}/my\\ photo.png", "file://{}/my%20photo.png")
NO_PATHS = (
    *("{0}/my photo.png\n{0}/my photo.png", "my photo.png", "some words", "", "'", "~nobody-of-that-name/x.png"),
    "file://[x",
)


@pytest.mark.parametrize("pasted", [*DROPPED, *NO_PATHS])
def test_a_pasted_path_is_found_in_each_way_that_terminals_write_it(tmp_path: Path, pasted: str) -> None:
    path, line = tmp_path / "my photo.png", Line()
    path.touch()
    line.paste(pasted.format(tmp_path))
    assert (line.dropped is not None and line.dropped[1]) == (f"{path}" if pasted in DROPPED else False)


def test_a_path_that_is_dropped_is_attached_by_tab_and_else_is_text(home: Home, photo: Path, server: Recorder) -> None:
    with home.chat(**server.environment()) as chat:
        chat.type("see:")
        chat.paste(f"'{photo}'")
        chat.await_bottom_line("Tab attaches this file")
        chat.type("\t")
        chat.await_text('my photo.png"')
        chat.ask("", "seen.")
        chat.type("see ")
        chat.paste(f'@"{photo}"')
        chat.say("")
        chat.until(lambda: len(server.bodies) == 2, "the second question")
    assert kinds(server) == [["image_url", "text"], ["text"]]


def test_a_file_that_cannot_be_attached_leaves_the_line_at_the_prompt(home: Home, photo: Path) -> None:
    photo.write_bytes(FILES["photo.png"][:30])
    with home.chat() as chat:
        chat.say(f'see @"{photo}"')
        chat.await_text("but is cut short or damaged, so it was not attached.")
        chat.await_text("see @", times=2)
    assert home.said() == []


UP, BACKSPACE = "\x1b[A", "\x7f"


@pytest.mark.parametrize(
    ("before", "after"),
    [("/bg ", ""), ("", f"{BACKSPACE}!"), ("", UP), ("", "/undo")],
    ids=["in the background", "edited", "from the history", "undone"],
)
def test_an_at_sign_not_typed_is_text(home: Home, photo: Path, server: Recorder, before: str, after: str) -> None:
    with home.chat(**server.environment()) as chat:
        chat.type(before)
        chat.paste(f'a stranger wrote @"{photo}" now')
        chat.await_text("a stranger")
        if after in {UP, "/undo"}:
            chat.ask("", "seen.")
            server.bodies.clear()
        chat.type(after)
        if after == "/undo":
            chat.say("")
        # The answer of /undo quotes the message.
        chat.await_text("a stranger", times={UP: 2, "/undo": 3}.get(after, 1))
        chat.say("")
        chat.until(lambda: len(server.bodies) == 1, "the question")
    assert kinds(server) == [["text"]]
    assert f'@"{photo}"' in str(server.contents())


def test_a_file_is_attached_that_is_named_in_typed_arguments(home: Home, photo: Path, server: Recorder) -> None:
    folder = home.path / "commands"
    folder.mkdir(parents=True)
    (folder / "sum.md").write_text("Summarise: $ARGUMENTS")
    with home.chat(**server.environment()) as chat:
        for number, command in enumerate(("/sum", "/bg"), 1):
            chat.type(f'{command} @"{photo}" and ')
            chat.paste("@me")
            chat.say("")
            chat.until(lambda: len(server.bodies) == number, command)  # noqa: B023 - called at once
            chat.await_line(PROMPT)
    assert kinds(server) == [["image_url", "text"], ["image_url", "text"]]
