"""Whatever is too large, endless or no file is told in one sentence at once: the real program with each of them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from chorus_cli.core import limits
from tests.loopback_server import serving
from tests.models.providers.fault_server import chunk
from tests.terminal.driver import Home

GIGABYTE = 1_000_000_000
PATIENCE_SECONDS = 30.0
"""A sentence needs a second; a loaded machine more. To read a gigabyte, or all of a device, takes longer."""
CHORUS = "personas/chorus"
SETTINGS = f"{CHORUS}/system.jsonc"
HELLO = ("ask", "-c", "hello")


@pytest.fixture
def home(home: Home) -> Home:
    home.run("log")
    for folder in ("docs", "sessions"):
        (home.path / CHORUS / folder).mkdir(exist_ok=True)
    return home


class Case(NamedTuple):
    """What a command says about something too large: ``file`` in the home, of so many bytes, or standard input."""

    words: str
    arguments: tuple[str, ...]
    file: str = ""
    size: int = GIGABYTE
    beginning: bytes = b""
    make: Callable[[Path], object] | None = None
    stdin: int = 0
    code: int = 1

    def put_into(self, home: Path) -> None:
        """Make the file; of one that is not made otherwise, all but the beginning takes no room."""
        path = home / self.file
        path.unlink(missing_ok=True)
        if self.make:
            self.make(path)
        else:
            path.write_bytes(self.beginning)
            os.truncate(path, self.size)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def five_documents(path: Path) -> None:
    for number in range(5):
        path.with_name(f"{number}.md").write_bytes(b"\n" * 4_000_000)


CASES = {
    "standard input": Case("Standard input is larger than 20 MB. Nothing was sent", HELLO, stdin=20_000_001),
    "a message": Case("The message is 8.0 MB; Chorus takes at most 8 MB.", HELLO, stdin=8_000_001),
    "settings of 100 MB": Case(
        "system.jsonc cannot be read: it is larger than 1 MB", HELLO, SETTINGS, size=100_000_000
    ),
    "settings of a gigabyte": Case("system.jsonc cannot be read: it is larger than 1 MB", HELLO, SETTINGS),
    "settings that are a pipe": Case("it is not a regular file", HELLO, SETTINGS, make=os.mkfifo),
    "settings that never end": Case("it is not a regular file", HELLO, SETTINGS, make=endless),
    "a document of a gigabyte": Case("0.md is left out: it is larger than 4 MB.", HELLO, f"{CHORUS}/docs/0.md", code=0),
    "a document that is a pipe": Case("Hello. I am ELIZA", HELLO, f"{CHORUS}/docs/pipe.md", make=os.mkfifo, code=0),
    "documents together": Case(
        "4.md is left out: together the documents are larger than 16 MB.",
        HELLO,
        f"{CHORUS}/docs/0.md",
        make=five_documents,
        code=0,
    ),
    "a session of a gigabyte": Case(
        "it is larger than 256 MB",
        ("ask", "/context restore 2026-01-01_giant"),
        f"{CHORUS}/sessions/2026-01-01_giant.json",
        beginning=b'{"session_id": "2026-01-01_giant"',
    ),
    "an attachment": Case(
        "it is larger than 20 MB. Use only", ("ask", "--attach", "HOME/large.txt", "hello"), "large.txt"
    ),
    "a document for the memory": Case(
        "it is larger than 10 MB. Use only", ("ask", "/memory import HOME/large.md"), "large.md"
    ),
    "a character card": Case("100 MB", ("import", "HOME/card.png"), "card.png", beginning=b"\x89PNG\r\n\x1a\n"),
    "a value of a setting": Case(
        "description has 1,001 characters; it may have at most 1,000.",
        ("ask", f"/settings set description {'x' * 1001}"),
    ),
    "a name": Case("a name has at most 40 characters", ("ask", f"/persona create {'x' * 41}")),
    "a memory item": Case("maximum length of 100000 characters", ("ask", f"/remember {'word ' * 20_001}")),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_too_large_is_told_in_a_sentence_at_once(home: Home, case: Case) -> None:
    if case.file:
        case.put_into(home.path)
    arguments = [each.replace("HOME", str(home.path)) for each in case.arguments]
    began = time.monotonic()
    done = home.run(*arguments, stdin=b"x" * case.stdin)
    assert time.monotonic() - began < PATIENCE_SECONDS
    told = " ".join((done.output + done.errors).split())
    assert case.words in told
    assert "bug" not in told
    assert done.code == case.code
    assert home.said() == ["hello"] * (case.code == 0)


def test_a_settings_file_is_not_made_too_large(home: Home) -> None:
    path = home.path / SETTINGS
    text = path.read_text() + "//" + " " * (limits.SETTINGS_FILE.most - path.stat().st_size - 20)
    path.write_text(text)
    done = home.run("ask", f"/settings set description {'x' * 100}")
    assert "would be larger than 1 MB, so Chorus did not change it." in " ".join(done.errors.split())
    assert path.read_text() == text


def test_a_reply_without_an_end_is_stopped_and_kept(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[int] = []

    def endless() -> Iterator[bytes]:
        while True:
            served.append(100_000)
            yield chunk("word " * 20_000)

    with serving(lambda _: (200, endless())) as address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        monkeypatch.setenv("OPENAI_API_KEY", "invented")
        done = home.run("--model", "openai/m", "ask", "--json", "hello")
    assert done.code == 1
    assert "Chorus stopped the reply at 8,000,000 characters. The part that arrived is kept; chorus ask" in done.errors
    ((content, status),) = home.replies()
    assert limits.REPLY.most <= len(content) <= limits.REPLY.most + 1_000_000
    assert status == "truncated"
    assert json.loads(done.output)["reply"] == content
    assert sum(served) < 100_000_000
