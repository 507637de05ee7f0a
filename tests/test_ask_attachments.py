"""``chorus ask`` with files: by its option, by an at sign, and a picture on standard input."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chorus_cli
from tests.amount import is_thorough
from tests.attached_files import FILES, png
from tests.loopback_providers import Recorder, recording
from tests.terminal.command import PROGRAM, finished


@pytest.fixture(scope="module")
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


class Folder:
    """A home, and a current folder with the files."""

    def __init__(self, folder: Path, server: Recorder) -> None:
        self.folder = folder
        self.environment = {**os.environ, **server.environment(), "CHORUS_HOME": str(folder / "home")}
        if is_thorough():
            # Then the program is a new interpreter, which is to find the package from another current folder.
            self.environment["PYTHONPATH"] = str(Path(chorus_cli.__file__).parents[1])
        for name, data in FILES.items():
            (folder / name).write_bytes(data)

    def ask(self, *arguments: str, stdin: bytes = b"", **variables: str) -> tuple[int, str, str]:
        """Run ``chorus ask``; return exit code, output and errors."""
        return self.run("ask", "-c", *arguments, stdin=stdin, **variables)

    def run(self, *arguments: str, stdin: bytes = b"", **variables: str) -> tuple[int, str, str]:
        done = finished([*PROGRAM, *arguments], {**self.environment, **variables}, stdin, self.folder)
        return done.code, done.output, done.errors


@pytest.fixture
def here(tmp_path: Path, server: Recorder) -> Folder:
    server.bodies.clear()
    return Folder(tmp_path, server)


def part(name: str, media_type: str = "image/png") -> dict[str, Any]:
    address = f"data:{media_type};base64,{b64encode(FILES[name]).decode()}"
    return {"type": "image_url", "image_url": {"url": address}}


def words(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def test_files_go_by_the_option_by_an_at_sign_and_by_standard_input(here: Folder, server: Recorder) -> None:
    assert here.ask("-a", "photo.png", "What is it?")[:2] == (0, "seen.\n")
    assert here.ask("Compare", "@photo.png", "with", "@photo.webp")[0] == 0
    assert here.ask("What is it?", stdin=FILES["photo.jpg"])[0] == 0
    assert here.ask("Review", stdin=b"diff @photo.png\n")[0] == 0
    assert server.contents() == [
        [part("photo.png"), words("What is it?")],
        [part("photo.png"), part("photo.webp", "image/webp"), words("Compare @photo.png with @photo.webp")],
        [part("photo.jpg", "image/jpeg"), words("What is it?")],
        "Review\n\ndiff @photo.png\n",
    ]
    # The same pictures are sent again, word for word, so that the provider knows the beginning.
    last = server.bodies[-1]["messages"]
    for body in server.bodies:
        assert last[: len(body["messages"])] == body["messages"]
    stored = [path for path in (here.folder / "home" / "attachments").rglob("*") if path.is_file()]
    assert len(stored) == 3
    code, output, _ = here.run("search", "photo.webp", "--json")
    assert (code, len(json.loads(output)["results"])) == (0, 1)
    assert "[attachment: photo.png 68 bytes]" in here.run("log")[1]


@pytest.mark.parametrize(
    ("arguments", "stdin", "sentence"),
    [
        (("see @broken.png",), b"", "broken.png begins like a PNG file, but is cut short or damaged"),
        (("hi",), png()[:30], "standard input begins like a PNG file, but is cut short or damaged"),
        (("-a", "photo.png"), b"", "There is nothing to ask."),
        (("-a", "photo.png", "/context"), b"", "--attach needs a message, but /context is a command."),
    ],
)
def test_what_cannot_be_attached_is_said_in_one_sentence_and_nothing_is_sent(
    here: Folder, server: Recorder, arguments: tuple[str, ...], stdin: bytes, sentence: str
) -> None:
    (here.folder / "broken.png").write_bytes(png()[:30])
    code, output, errors = here.ask(*arguments, stdin=stdin)
    assert (code in {1, 2}, output, server.bodies) == (True, "", [])
    assert sentence in errors


def test_eliza_answers_the_words_beside_a_text_file(here: Folder) -> None:
    (here.folder / "ring.txt").write_text("My mother is unhappy.")
    code, output, _ = here.ask("I am sad about @ring.txt", CHORUS_MODEL="chorus/eliza")
    assert code == 0
    assert "sad" in output
    assert "mother" not in output


@pytest.mark.parametrize("model", ["openai/gpt-3.5-turbo", "chorus/eliza"])
def test_a_model_that_sees_no_pictures_is_not_asked(here: Folder, server: Recorder, model: str) -> None:
    code, output, errors = here.ask("-a", "photo.png", "What is it?", CHORUS_MODEL=model)
    assert (code, output, server.bodies) == (1, "", [])
    assert f"{model} takes no pictures. Choose another model with /model NAME" in errors
    assert here.run("log")[1] == ""
    assert not [path for path in (here.folder / "home" / "attachments").rglob("*") if path.is_file()]
