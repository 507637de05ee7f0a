"""The commands of the README, in its order: a user moves in, meets a character, shows a picture and sees the cost."""

from __future__ import annotations

import json
import re
import shlex
import zipfile
from base64 import b64encode
from pathlib import Path

import pytest

from tests.attached_files import FILES
from tests.cards.rules.made_cards import card, picture, text_chunk
from tests.documents import README
from tests.imports.rules.exports import chatgpt, chatgpt_node
from tests.loopback_providers import recording
from tests.terminal.command import PROGRAM, finished
from tests.terminal.driver import Home

PARTS = ("Moving in", "Cards", "Pictures", "Costs")
HARBOURS = chatgpt(
    chatgpt_node("a", None, "user", "Which harbour is the oldest?"),
    chatgpt_node("b", "a", "assistant", "Byblos, perhaps."),
    title="Harbours",
)


def commands_of_the_readme() -> list[str]:
    """Return the shell's lines in the parts of the story, each without its comment."""
    text = README.read_text(encoding="utf-8")
    blocks = [re.search(rf"^## {part}\n\n```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE) for part in PARTS]
    lines = [line for block in blocks if block for line in block[1].splitlines()]
    return [line.partition("  #")[0].strip() for line in lines]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the README names."""
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps([HARBOURS]))
    (tmp_path / "mira.png").write_bytes(picture(text_chunk("chara", card(2))))
    (tmp_path / "photo.png").write_bytes(FILES["photo.png"])
    return tmp_path


def test_a_user_moves_in_meets_a_character_shows_a_picture_and_sees_the_cost(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(folder / "home")
    with recording() as server:
        server.tokens = (1_000_000, 100_000)
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        lines = [shlex.split(line) for line in commands_of_the_readme()]
        outcomes = [finished([*PROGRAM, *words], home.environment, folder=folder) for _, *words in lines]
    assert {program for program, *_ in lines} == {"chorus"}
    assert [outcome.code for outcome in outcomes] == [0] * 5
    assert [outcome.errors for outcome in outcomes] == ["", "", "", "+ photo.png 68 bytes\n", ""]
    foreseen, imported, made, answered, cost = (outcome.output for outcome in outcomes)
    assert "chatgpt" in foreseen
    assert "2 messages" in imported
    assert "Created Mira from mira.png (by somebody)" in made
    assert answered == "seen.\n"
    assert [part["type"] for part in server.contents()[-1]] == ["image_url", "text"]
    address = f"data:image/png;base64,{b64encode(FILES['photo.png']).decode()}"
    assert server.contents()[-1][0]["image_url"]["url"] == address
    assert "keeps the lighthouse" in json.dumps(server.bodies[-1]["messages"])
    assert [line.split()[0] for line in cost.splitlines()] == ["Cost", "Persona", "mira"]
    assert home.sql("SELECT persona, count(*) FROM messages GROUP BY persona") == [("chorus", 2), ("mira", 3)]
    assert home.run("ask", "/settings set budget 0.01").code == 0
    refused = home.run("ask", "-c", "And this one?")
    assert refused.output == ""
    assert "of your budget of $0.01. Nothing was sent." in refused.errors
    assert "Byblos" in home.run("search", "byblos").output
    assert len(server.bodies) == 1
