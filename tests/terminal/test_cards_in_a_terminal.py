"""A character card from the keyboard of the real program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from chorus_cli.cards.rules.png import card_json
from tests.cards.rules.made_cards import card, picture, text_chunk
from tests.terminal.driver import Home

MIRA = "Mira ❯"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose files have paths that fit a line of the terminal."""
    with TemporaryDirectory() as made:
        yield Path(made)


def test_a_card_makes_a_persona_that_greets_talks_and_comes_out_again(tmp_path: Path, folder: Path) -> None:
    home = Home(tmp_path)
    made = card(2, creator="\x1b]0;owned\x07somebody", first_mes="\x1b[2JWelcome, {{user}}.")
    (tmp_path / "config.jsonc").write_text('{"defaults": {"user_name": "Ada", "model": "chorus/eliza"}}')
    (folder / "a mira.png").write_bytes(picture(text_chunk("chara", made)))
    with home.chat() as terminal:
        terminal.type(f"/persona import {folder}/a mi")
        terminal.await_text("/a mira.png")
        terminal.press("tab")
        terminal.await_text(f"/persona import {folder}/a mira.png")
        terminal.press("enter")
        terminal.await_text("Welcome, Ada.")
        terminal.await_line(MIRA)
        assert "Made Mira of a mira.png by" in terminal.screen_text()
        assert terminal.screen_text().count("Welcome, Ada.") == 1
        terminal.ask("The lens is broken", "lens", MIRA)
        assert "Memory:" not in home.seen()[-1]
        terminal.ask(f"/persona export Mira {tmp_path}/out.png", "Exported Mira to", MIRA)
    with home.chat(MIRA) as terminal:
        terminal.await_text("The lens is broken")
        terminal.ask("/why", "recalled in message", MIRA)
    assert home.sql("SELECT preamble FROM messages WHERE role = 'user'")[0].endswith(
        "The lamp was made in Mira's youth."
    )
    data = made["data"] | {"group_only_greetings": []}
    assert json.loads(card_json((tmp_path / "out.png").read_bytes()) or b"")["data"] == data
