"""Exports and cards of other programs: a dry run, the import, a search, and the way back."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.cards.rules.made_cards import card, picture, text_chunk
from tests.imports.rules.exports import chatgpt, chatgpt_node, claude, claude_message, web, web_message
from tests.terminal.driver import Home

CHATGPT = chatgpt(
    chatgpt_node("a", None, "user", "Which harbour is the oldest?"),
    chatgpt_node("b", "a", "assistant", "I do not know."),
    chatgpt_node("c", "a", "assistant", "Byblos, perhaps."),
    title="\x1b]0;owned\x07Harbours\n\x1b[2J",
)
CLAUDE = claude(
    claude_message("a", None, "human", "Which harbour is the oldest?"),
    claude_message("b", "a", "assistant", "Byblos, perhaps."),
    name="Harbours",
)
WEB = web(
    web_message("a", None, "user", "Which harbour is the oldest?"),
    web_message("b", "a", "assistant", "Byblos, perhaps."),
    title="Harbours",
)
TAVERN = [
    {"user_name": "Ann", "character_name": "Mara", "create_date": "2024-7-12@01h31m37s", "chat_metadata": {}},
    {"name": "Ann", "is_user": True, "send_date": "2024-7-12@01h31m37s", "mes": "Which harbour is the oldest?"},
    {"name": "Mara", "send_date": "July 12, 2024 1:32am", "mes": "Byblos, perhaps."},
]


EXPORTS = {
    "chatgpt": ("export.zip", json.dumps([CHATGPT])),
    "claude.ai": ("export.zip", json.dumps([CLAUDE])),
    "open-webui": ("chats.json", json.dumps([WEB])),
    "sillytavern": ("Harbours.jsonl", "\n".join(map(json.dumps, TAVERN))),
}


def export_of(program: str, folder: Path) -> Path:
    """Write the export of a program into a folder."""
    name, text = EXPORTS[program]
    path = folder / name
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("conversations.json", text)
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("program", EXPORTS)
def test_a_user_moves_in_searches_and_moves_out_again(tmp_path: Path, program: str) -> None:
    home, path = Home(tmp_path / "home"), export_of(program, tmp_path)
    foreseen = home.run("import", str(path), "--dry-run")
    assert (foreseen.code, foreseen.errors) == (0, "")
    assert f"({program})" in foreseen.output
    assert home.said() == []
    report = json.loads(home.run("import", str(path), "--json").output)
    assert (report["sources"], report["new_conversations"]) == ({program: 1}, 1)
    assert "Byblos" in home.run("search", "byblos").output
    assert home.run("ask", "/context undo").code == 0
    assert home.run("search", "byblos").code == 1
    assert json.loads(home.run("import", str(path), "--json").output)["imports_redone"] == 1
    assert "Byblos" in home.run("search", "byblos").output


def test_no_title_of_an_export_commands_the_terminal(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    outcomes = [
        home.run("import", str(export_of("chatgpt", tmp_path))),
        home.run("ask", "/thread 2"),
        home.run("search", "byblos"),
    ]
    assert all("\x1b" not in outcome.output + outcome.errors for outcome in outcomes)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"PK\x03\x04 and no archive", ""),
        (b'[{"mapping": {"a": ', ""),
        (b"[[[[[", ""),
        (b"{}", ""),
        (b"", ""),
        (b"\x00\xff", ""),
        (picture(), ": This picture holds no character card."),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, data: bytes, sentence: str) -> None:
    path = tmp_path / "export"
    path.write_bytes(data)
    outcome = Home(tmp_path / "home").run("import", str(path))
    assert (outcome.code, outcome.output) == (1, "")
    assert len(outcome.errors.strip().splitlines()) == 1
    assert f"{path}{sentence}" in outcome.errors


def test_a_card_makes_a_persona_once(tmp_path: Path) -> None:
    home, path = Home(tmp_path), tmp_path / "mira.png"
    path.write_bytes(picture(text_chunk("ccv3", card(3))))
    assert home.run("import", f"{path}", "--dry-run").output.startswith("Would make Mira of mira.png by somebody")
    assert not (tmp_path / "personas" / "mira").exists()
    made = json.loads(home.run("import", f"{path}", "--json").output)
    assert made["cards"] == [{"persona": "mira", "new": True, "told": made["cards"][0]["told"]}]
    assert home.run("import", f"{path}").output == "Mira was made of mira.png before.\n"
    assert home.sql("SELECT content FROM messages WHERE persona = 'mira'") == ["*Mi looks up.* You are wet, You."]
