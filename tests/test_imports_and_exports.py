"""``chorus import`` and ``chorus export`` as a shell sees them: exports and cards of other programs, and a kill."""

from __future__ import annotations

import json
import time
import zipfile
from pathlib import Path

import pytest

from tests.cards.rules.made_cards import card, picture, text_chunk
from tests.imports.rules.exports import chatgpt, chatgpt_node, claude, claude_message, web, web_message
from tests.imports.service.foreign_talk import LATIUM, OFTEN, OSLO, ROME, WHERE, written
from tests.terminal.driver import Home

_SIZES = (
    "SELECT COUNT(message_id) FROM imported_conversations JOIN imported_messages ON id = conversation_id GROUP BY id"
)
_TALKS, _MESSAGES = 40, 400


def test_conversations_move_from_one_home_to_another(home: Home, tmp_path: Path) -> None:
    path = written(tmp_path, ROME, WHERE, LATIUM, OSLO, OFTEN)
    assert "Imported 3 new messages in 2 new threads" in home.run("import", str(path)).output
    assert "In «Latium»" in home.run("search", "latium").output
    folder, other = str(tmp_path / "out"), Home(tmp_path / "other")
    assert home.run("export", "--all", folder).output == (
        f"Exported 2 conversations with 3 messages to {folder}. chorus import reads them back.\n"
    )
    report = json.loads(other.run("import", folder, "--json").output)
    assert (report["new_conversations"], report["new_messages"], report["sources"]) == (2, 3, {"demo": 2})
    assert json.loads(other.run("log", "--json").output)[0]["timestamp"] == "2025-01-01T10:00:00.000000Z"


def test_an_export_that_fails_says_how_much_was_written(home: Home, tmp_path: Path) -> None:
    home.run("import", str(written(tmp_path, ROME, WHERE, LATIUM, OSLO, OFTEN)))
    folder = tmp_path / "out"
    outcome = home.run("export", "--all", "/proc/nope")
    assert (outcome.code, outcome.output) == (1, "")
    assert outcome.errors.endswith("cannot be written: No such file or directory. Nothing was written.\n")
    home.run("export", "--all", str(folder))
    *_, last = sorted(folder.glob("*/*.md"), key=lambda path: path.stat().st_mtime_ns)
    last.unlink()
    last.mkdir()
    outcome = home.run("export", "--all", str(folder))
    assert outcome.errors == (
        f"{last} cannot be written: Is a directory. 1 conversation had been written. Once that is mended, the same "
        "export writes them all.\n"
    )
    last.rmdir()
    assert home.run("export", "--all", str(folder)).output.startswith("Exported 2 conversations")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (
            ("import", __file__),
            1,
            "is of no known format. Known are another Chorus, our own Markdown and JSONL, the log",
        ),
        (("import", __file__, "--timezone", "Mars/Phobos"), 1, "There is no time zone 'Mars/Phobos'."),
        (("import", __file__, "--persona", "nobody"), 1, "There is no persona called 'nobody'."),
        (("import",), 1, "chorus import needs <file…>. Usage: chorus import"),
        (("export",), 1, "Nothing is in context, so nothing was written."),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(
    home: Home, arguments: tuple[str, ...], code: int, told: str
) -> None:
    outcome = home.run(*arguments)
    assert outcome.code == code
    assert told in outcome.errors + outcome.output


def test_a_killed_import_leaves_whole_conversations_and_the_next_one_goes_on(home: Home, tmp_path: Path) -> None:
    path = written(tmp_path, *_many())
    home.run("personas")
    with home.running("import", str(path)) as importing:
        _wait_for_some(home)
        importing.kill()
        importing.wait()
    left = home.sql(_SIZES)
    assert 0 < len(left) < _TALKS
    assert set(left) == {_MESSAGES}
    again = json.loads(home.run("import", str(path), "--json").output)
    assert (again["new_conversations"], again["known_messages"]) == (_TALKS - len(left), _MESSAGES * len(left))
    assert home.sql(_SIZES) == [_MESSAGES] * _TALKS
    assert home.sql("PRAGMA integrity_check") == ["ok"]


def _many() -> list[object]:
    said = [{**WHERE, "key": f"m{number}", "content": "word " * 20} for number in range(_MESSAGES)]
    return [line for each in range(_TALKS) for line in ({**ROME, "key": f"c{each}"}, *said)]


def _wait_for_some(home: Home) -> None:
    for _ in range(3_000):
        if (home.path / "chorus.db").exists() and home.sql("SELECT 1 FROM imported_conversations LIMIT 1"):
            return
        time.sleep(0.01)
    raise AssertionError("nothing came in")


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
    name, text = EXPORTS[program]
    path = folder / name
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("conversations.json", text)
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("program", EXPORTS)
def test_a_user_moves_in_searches_and_moves_out_again(home: Home, tmp_path: Path, program: str) -> None:
    path = export_of(program, tmp_path)
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


def test_no_title_of_an_export_commands_the_terminal(home: Home, tmp_path: Path) -> None:
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
