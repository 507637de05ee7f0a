"""Whatever is too large, endless or no file is told in one sentence at once: the real program with each of them."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest

from chorus_cli.core import limits
from tests.loopback_server import serving
from tests.models.providers.fault_server import chunk
from tests.terminal.driver import Home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.terminal.command import Outcome

GIGABYTE = 1_000_000_000
PATIENCE_SECONDS = 30.0
"""A sentence needs a second; a loaded machine more. To read a gigabyte, or all of a device, takes longer."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.run("log")
    return home


def chorus_folder(home: Home) -> Path:
    return home.path / "personas" / "chorus"


def documents_folder(home: Home) -> Path:
    folder = chorus_folder(home) / "docs"
    folder.mkdir(exist_ok=True)
    return folder


def sparse(path: Path, size: int, beginning: bytes = b"") -> Path:
    """Make a file of so many bytes that takes no room."""
    path.write_bytes(beginning)
    os.truncate(path, size)
    return path


class Case(NamedTuple):
    """Something that is too large: it is made, then met by a command, which says the words."""

    words: str
    meet: Callable[[Home], Outcome]
    code: int = 1


def piped(size: int) -> Callable[[Home], Outcome]:
    return lambda home: home.run("ask", "read this:", stdin=b"x" * size)


def with_settings(size: int) -> Callable[[Home], Outcome]:
    def meet(home: Home) -> Outcome:
        sparse(chorus_folder(home) / "system.jsonc", size)
        return home.run("ask", "hello")

    return meet


def with_settings_that_are(make: Callable[[Path], None]) -> Callable[[Home], Outcome]:
    def meet(home: Home) -> Outcome:
        path = chorus_folder(home) / "system.jsonc"
        path.unlink()
        make(path)
        return home.run("ask", "hello")

    return meet


def with_documents(*sizes: int) -> Callable[[Home], Outcome]:
    def meet(home: Home) -> Outcome:
        for number, size in enumerate(sizes):
            path = documents_folder(home) / f"{number}.md"
            if size > limits.PERSONA_DOCUMENT.most:
                sparse(path, size)
            else:
                path.write_bytes(b"\n" * size)
        return home.run("ask", "hello")

    return meet


def with_a_pipe_among_documents(home: Home) -> Outcome:
    os.mkfifo(documents_folder(home) / "pipe.md")
    return home.run("ask", "hello")


def with_session(size: int) -> Callable[[Home], Outcome]:
    def meet(home: Home) -> Outcome:
        folder = chorus_folder(home) / "sessions"
        folder.mkdir(exist_ok=True)
        sparse(folder / "2026-01-01_giant.json", size, b'{"session_id": "2026-01-01_giant"')
        return home.run("ask", "/context restore 2026-01-01_giant")

    return meet


def attaching(size: int) -> Callable[[Home], Outcome]:
    return lambda home: home.run("ask", "--attach", str(sparse(home.path / "large.txt", size)), "hello")


def remembering(size: int) -> Callable[[Home], Outcome]:
    return lambda home: home.run("ask", f"/memory import {sparse(home.path / 'large.md', size)}")


def importing(beginning: bytes, name: str, size: int) -> Callable[[Home], Outcome]:
    return lambda home: home.run("import", str(sparse(home.path / name, size, beginning)))


def typed(command: str) -> Callable[[Home], Outcome]:
    return lambda home: home.run("ask", command)


CASES = {
    "standard input": Case("Standard input has more than 20 MB. Nothing was sent", piped(20_000_001)),
    "a message": Case("The message has 8.0 MB; the largest that is taken has 8 MB.", piped(8_000_001)),
    "settings of 100 MB": Case("system.jsonc cannot be read: it has more than 1 MB", with_settings(100_000_000)),
    "settings of a gigabyte": Case("system.jsonc cannot be read: it has more than 1 MB", with_settings(GIGABYTE)),
    "settings that are a pipe": Case("it is not a regular file", with_settings_that_are(os.mkfifo)),
    "settings that never end": Case(
        "it is not a regular file", with_settings_that_are(lambda path: path.symlink_to("/dev/zero"))
    ),
    "a document of a gigabyte": Case("0.md is left out: it has more than 4 MB.", with_documents(GIGABYTE), 0),
    "a document that is a pipe": Case("Hello. I am ELIZA", with_a_pipe_among_documents, 0),
    "documents together": Case(
        "4.md is left out: together the documents have more than 16 MB.", with_documents(*[4_000_000] * 5), 0
    ),
    "a session of a gigabyte": Case("it has more than 256 MB", with_session(GIGABYTE)),
    "an attachment": Case("the largest file that can be attached has 20 MB", attaching(GIGABYTE)),
    "a document for the memory": Case("large.md has over 10 MB.", remembering(GIGABYTE)),
    "a character card": Case("100 MB", importing(b"\x89PNG\r\n\x1a\n", "card.png", GIGABYTE)),
    "a value of a setting": Case(
        "description has 1,001 characters; it may have 1,000.", typed(f"/settings set description {'x' * 1001}")
    ),
    "a name": Case("a name has at most 40 characters", typed(f"/persona create {'x' * 41}")),
    "a memory item": Case("maximum length of 100000 characters", typed(f"/remember {'word ' * 20_001}")),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_too_large_is_told_in_a_sentence_at_once(home: Home, case: Case) -> None:
    began = time.monotonic()
    done = case.meet(home)
    assert time.monotonic() - began < PATIENCE_SECONDS
    told = " ".join((done.output + done.errors).split())
    assert case.words in told
    assert "bug" not in told
    assert done.code == case.code


def test_a_settings_file_is_not_made_too_large(home: Home) -> None:
    path = chorus_folder(home) / "system.jsonc"
    text = path.read_text() + "//" + " " * (limits.SETTINGS_FILE.most - path.stat().st_size - 20)
    path.write_text(text)
    done = home.run("ask", f"/settings set description {'x' * 100}")
    assert "would have more than 1 MB. It is left as it was." in " ".join(done.errors.split())
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
    assert (
        "The reply was stopped at 8,000,000 characters. The part that arrived is kept; chorus ask /retry asks"
        in done.errors
    )
    ((content, status),) = home.replies()
    assert limits.REPLY.most <= len(content) <= limits.REPLY.most + 1_000_000
    assert status == "truncated"
    assert json.loads(done.output)["reply"] == content
    assert sum(served) < 100_000_000
