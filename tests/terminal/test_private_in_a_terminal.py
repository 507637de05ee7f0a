"""Private chats of the real program: what they leave behind, and the way into and out of them."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.loopback_providers import recording, slow
from tests.terminal.command import PROGRAM
from tests.terminal.driver import PATIENCE_SECONDS, PROMPT, Home, Terminal
from tests.terminal.editors import editor, replacing

IN_MEMORY = Path("/dev") / "shm"
WORD = "xyzzy-canary-0451"  # A word that is nowhere unless a private chat has left it there
PRIVATE = "private · nothing is kept"
OVER = "Private chat ended"


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
        return [
            str(path) for path in files if word in path.name or (path.is_file() and word.encode() in path.read_bytes())
        ]

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


SLOW = pytest.mark.slow
OTHER_ENDS = (signal.SIGHUP, signal.SIGTERM)


@pytest.fixture
def user(tmp_path: Path) -> Iterator[PrivateUser]:
    with private_user(tmp_path) as made:
        assert made.home.run("ask", "-c", "I am public").code == 0
        yield made


def use_everything(chat: Terminal, user: PrivateUser) -> None:
    """Say the word, remember it, attach a file with it, run a command and set a window."""
    chat.ask(f"I am {WORD}", "seen.")
    (user.temporary / "notes.txt").write_text(f"notes of {WORD}\n")
    chat.ask(f"look at @{user.temporary}/notes.txt please", "+ notes.txt")
    (user.temporary / "notes.txt").unlink()
    chat.ask(f"/remember {WORD}", "This holds until the private chat ends.")
    chat.ask(f"!echo {WORD}", "Your next message will have the result")
    chat.ask(f"/run echo {WORD} behind", "behind")
    chat.ask("/context 24h", "24h")
    chat.ask(f"/settings set user_name {WORD}", "user_name is now")
    chat.ask(f"/search {WORD}", "canary")


@pytest.mark.skipif(not IN_MEMORY.is_dir(), reason="the editor needs a file system in memory")
@pytest.mark.parametrize("end", [None, signal.SIGKILL, *(pytest.param(each, marks=SLOW) for each in OTHER_ENDS)])
def test_a_private_chat_leaves_nothing_however_it_ends(
    user: PrivateUser, tmp_path: Path, end: signal.Signals | None
) -> None:
    before = user.tree()
    tools = tmp_path / "tools"
    tools.mkdir()
    edited = {"EDITOR": editor(tools, replacing(f"I am {WORD}", f"I was {WORD}"), f'echo {WORD} >> "$file"; sleep 60')}
    with recording() as server, user.chat("--private", **server.environment(), **edited) as chat:
        chat.await_bottom_line(PRIVATE)
        use_everything(chat, user)
        chat.ask("/context edit", "1 reworded")
        chat.say("really?")
        chat.until(lambda: "really?" in str(server.bodies[-1]["messages"]), "the last request")
        chat.await_line(PROMPT)
        assert f"I was {WORD}" in str(server.bodies[-1]["messages"])
        assert user.tree() == before, "another Chorus could see it"
        chat.press("up")
        chat.await_line(f"{PROMPT} really?")
        if end is None:
            chat.press("ctrl-c")
            chat.leave()
        elif end is signal.SIGHUP:
            chat.type(f"unsent {WORD}")
            chat.hang_up()
        else:
            chat.press("ctrl-c")
            chat.say(f"/editor {WORD}")
            chat.until(lambda: bool(user.traces()), "a draft in memory")
            assert all(trace.startswith(str(user.runtime)) for trace in user.traces())
            os.kill(chat.pid, end)
            chat.await_end()
    user.await_empty_memory()
    assert user.traces() == []
    assert user.tree() == before


def test_a_private_chat_within_a_chat_ends_where_the_user_left(user: PrivateUser) -> None:
    with slow() as provider, user.chat(**provider.variables) as chat:
        provider.finish("I")
        chat.ask("/bg one goes on", "Thread #2 answers")
        chat.ask("I am happy", "About I: all.")
        before = user.home.said()
        assert len(before) == 3
        begin_private(chat)
        assert chat.screen_text().count("nothing of your log is sent") == 1
        chat.ask(f"I am {WORD}", "About I: all.", times=2)
        chat.ask("/search happy", "Nothing was found.")
        chat.ask("/private", "This chat is private")
        provider.finish("one")
        chat.until(lambda: user.home.replies()[1][1] == "complete", "the end of the reply in the background")
        assert "thread #2 is done" not in chat.screen_text()
        chat.ask("/persona frodo", "You are now talking to Frodo")
        chat.await_prompt("Frodo")
        chat.ask("/private off", OVER)
        # Keys that come before the prompt are dropped: they may be meant for the private chat.
        chat.await_text("in thread #2 is done;")
        chat.await_bottom_line("sees 8 h")
        assert PRIVATE not in chat.bottom_line()
        assert user.home.said() == before
        chat.press("up")
        chat.await_line(f"{PROMPT} /private")
        chat.press("up")
        chat.await_line(f"{PROMPT} I am happy")
        chat.press("ctrl-c")
        chat.ask("I am sad", "About I: all.", times=3)
        chat.leave()
    assert user.home.said() == [*before, "I am sad"]
    inputs = ["/bg one goes on", "I am happy", "I am sad"]
    assert user.home.sql("SELECT content FROM input_history ORDER BY id") == inputs
    assert user.traces() == []


def test_lines_typed_before_the_private_chat_is_there_belong_to_it(user: PrivateUser) -> None:
    """Typed in one go, and while a reply is shown: neither is a draft on the disk meanwhile."""
    with slow() as provider, user.chat(**provider.variables) as chat:
        provider.finish("I")
        chat.type(f"/private\rI am {WORD}\r/quit\r")
        chat.await_text("About I: all.")
        chat.await_text(OVER)
        chat.await_line(PROMPT)
        assert user.traces() == []
        chat.say("mountains")
        chat.await_text("About mountains")
        chat.type(f"/private\rMy name is {WORD}\r")
        chat.await_text(f"waiting: My name is {WORD}")
        assert user.traces() == []
        provider.finish("mountains", "My")
        chat.await_bottom_line(PRIVATE)
        chat.await_text(f"{PROMPT} My name is {WORD}")
        end_private(chat)
    assert user.traces() == []
    assert WORD not in str(user.home.said())


def test_lines_typed_behind_the_end_of_a_private_chat_are_shown_and_not_kept(user: PrivateUser) -> None:
    with user.chat() as chat:
        begin_private(chat)
        chat.type(f"/private off\rI am {WORD}\r")
        chat.await_text(f"Not sent and not kept, because it may be meant for the private chat: I am {WORD}")
        chat.await_line(PROMPT)
    assert user.traces() == []


@pytest.mark.parametrize("end", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=SLOW)])
def test_a_signal_in_a_private_chat_keeps_no_key_typed_there(user: PrivateUser, end: signal.Signals) -> None:
    """Neither the line being typed, nor one that waits for the end of a reply, is a draft of the chat around it."""
    with slow() as provider, user.chat(**provider.variables) as chat:
        begin_private(chat)
        chat.say("mountains")
        chat.await_text("About mountains")
        chat.type(f"I am {WORD}\rand {WORD}")
        chat.await_text(f"waiting: I am {WORD}")
        os.kill(chat.pid, end)
        chat.await_end()
    assert user.traces() == []
    with user.chat() as chat:
        assert WORD not in chat.screen_text()


def test_on_a_new_machine_a_session_is_saved_beside_the_personas_that_the_first_chat_installs(tmp_path: Path) -> None:
    with recording() as server, private_user(tmp_path) as new:
        server.tokens = (200_000, 0)
        with new.chat("--private", **server.environment("openai/gpt-4o-mini")) as chat:
            chat.ask(f"I am {WORD}", "seen.")
            assert not new.home.path.exists()
            chat.ask("/context save a talk", "This writes a file, which is kept.")
            chat.await_text("Saved")
            chat.await_line(PROMPT)
            chat.ask("/cost", "This includes 1 request for summaries or facts (cost $0.03).")
            chat.leave()
        assert len(new.traces()) == 1
        assert [path.name for path in new.home.path.iterdir()] == ["personas"]
        assert {path.stat().st_mode & 0o077 for path in new.home.path.rglob("*")} == {0}
        assert json.loads(new.home.run("cost", "--json").output)["lines"] == []
        assert "a talk" in new.home.run("ask", "/context history").output
        assert "Frodo" in new.home.run("personas").output
