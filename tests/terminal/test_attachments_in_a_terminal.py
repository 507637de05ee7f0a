"""Attachments from the keyboard: completed, shown below, taken back, pasted, and dropped on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.attached_files import FILES
from tests.loopback_providers import Recorder, recording
from tests.terminal.driver import PROMPT, Home


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
        chat.await_text("goes with your next message")
        chat.await_bottom_line("+ my photo.png")
        chat.say("/attach clear")
        chat.await_text("no longer goes with your next message.")
        chat.until(lambda: "my photo" not in chat.bottom_line(), "a line below without it")
        chat.ask("nothing", "seen.")
        chat.say(f"/attach {photo}")
        chat.await_bottom_line("+ my photo.png")
        chat.say("what is it?")
        chat.until(lambda: len(server.bodies) == 2, "the second question")
        chat.await_line(PROMPT)
        chat.until(lambda: "my photo" not in chat.bottom_line(), "a line below without it")
    assert kinds(server) == [["text"], ["image_url", "text"]]


def test_a_path_that_is_dropped_is_attached_by_tab_and_else_is_text(home: Home, photo: Path, server: Recorder) -> None:
    with home.chat(**server.environment()) as chat:
        chat.type("see ")
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


def test_a_typed_path_of_no_file_is_told_of_and_the_message_is_sent(home: Home, server: Recorder) -> None:
    server.bodies.clear()
    with home.chat(**server.environment()) as chat:
        chat.ask("see @/nope.png", "seen.")
        assert "There is no file /nope.png, so it is not attached." in chat.screen_text()
        chat.type("see ")
        chat.paste("@/gone.png")
        chat.say("")
        chat.until(lambda: len(server.bodies) == 2, "the second question")
        chat.await_line(PROMPT)
        assert "/gone.png, so" not in chat.screen_text()
    assert kinds(server) == [["text"], ["text"]]


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
        chat.await_text("a stranger", times=2 if after in {UP, "/undo"} else 1)
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
