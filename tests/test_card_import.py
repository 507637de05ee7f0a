"""``chorus import`` makes personas of character cards, beside conversations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.cards.rules.made_cards import card, picture, text_chunk
from tests.terminal.driver import Home

if TYPE_CHECKING:
    from pathlib import Path


def test_a_card_makes_a_persona_once(tmp_path: Path) -> None:
    home = Home(tmp_path)
    path = tmp_path / "mira.png"
    path.write_bytes(picture(text_chunk("ccv3", card(3))))
    dry = home.run("import", f"{path}", "--dry-run")
    assert dry.output.startswith("Would make Mira of mira.png by somebody")
    assert not (tmp_path / "personas" / "mira").exists()
    made = json.loads(home.run("import", f"{path}", "--json").output)
    assert made["cards"] == [{"persona": "mira", "new": True, "told": made["cards"][0]["told"]}]
    assert home.run("import", f"{path}").output == "Mira was made of mira.png before.\n"
    assert home.sql("SELECT content FROM messages WHERE persona = 'mira'") == ["*Mi looks up.* You are wet, You."]


def test_a_damaged_card_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "mira.png"
    path.write_bytes(picture())
    refused = Home(tmp_path).run("import", f"{path}")
    assert (refused.code, refused.output) == (1, "")
    assert refused.errors == f"{path}: This picture holds no character card.\n"
