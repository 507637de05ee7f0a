"""Finding, copying, keeping and importing messages, at the keyboard of the real program and in the shell."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import unicodedata
from datetime import timedelta
from pathlib import Path

import pytest

from tests.imports.rules.sessions import claude_line
from tests.imports.service.foreign_talk import many
from tests.terminal.command import PROGRAM
from tests.terminal.driver import Home

WHY_UNHAPPY = "That sounds hard. What has made you unhappy?"


def test_what_was_said_is_found_copied_and_exported(home: Home, tmp_path: Path) -> None:
    with home.chat(EDITOR="false") as chat:
        chat.ask("I am unhappy", WHY_UNHAPPY)
        home.say_by_sql("the ring\x1b[2J in 東京都", timedelta(days=3))
        chat.ask("/search ring", "Human: the «ring»␛[2J in 東京都")
        chat.ask("/search 東京 since 2 days ago", "Nothing was found since")
        chat.ask("/copy", "by your terminal, if it allows that (OSC 52)")
        path = tmp_path / "talk.md"
        chat.ask(f"/export {path}", "Exported the context, 2 messages, to")
        chat.say(f"/export {path} all")
        chat.await_text("(y/n)")
        chat.ask("y", "Exported the whole thread, 3 messages")
        assert "the ring" in path.read_text(encoding="utf-8")


def test_the_log_is_indexed_while_the_prompt_waits(home: Home) -> None:
    home.run("ask", "I am unhappy")
    with home.chat() as chat:
        for _ in range(200):
            if home.sql("SELECT value FROM meta WHERE key = 'search_index'"):
                break
            chat.watch(0.05)
        chat.say("/quit")
        assert chat.await_end() == 0
    assert home.sql("SELECT json_extract(value, '$.through') FROM meta WHERE key = 'search_index'") == [2]


def test_the_copied_reply_reaches_the_terminal_byte_for_byte(home: Home) -> None:
    home.run("ask", "I am unhappy")
    ours, terminal = os.openpty()
    subprocess.run([*PROGRAM, "ask", "/copy"], stdout=terminal, env=home.environment, timeout=60, check=True)
    os.close(terminal)
    output = os.read(ours, 65536).decode()
    os.close(ours)
    assert f"\x1b]52;c;{base64.b64encode(WHY_UNHAPPY.encode()).decode()}\x1b\\" in output


def test_chorus_search_prints_what_is_found_as_text_or_as_one_json_value(home: Home) -> None:
    home.run("ask", "I am unhappy about the ring")
    home.run("ask", "--persona", "frodo", "What is the ring?")
    text = home.run("search", "ring")
    assert text.code == 0
    assert "Chorus, thread #1\nHuman: I am unhappy about the «ring»\n" in text.output
    assert text.output.startswith("#3  ")
    assert {sign for sign in text.output if unicodedata.category(sign) in {"Cc", "Cf"}} == {"\n"}
    value = json.loads(home.run("search", "--json", "about the ring", "--since", "1h").output)
    assert [(row["id"], row["persona"], row["excerpt"]) for row in value["results"]] == [
        (1, "chorus", "I am unhappy «about the ring»")
    ]
    assert (value["more"], value["more_is_least"]) == (0, False)
    nothing = home.run("search", "--json", "sword")
    assert (nothing.code, nothing.errors, json.loads(nothing.output)["results"]) == (1, "", [])
    assert json.loads(home.run("search", "--json", "ring", "--persona", "frodo").output)["results"][0]["id"] == 3


@pytest.mark.parametrize(
    ("arguments", "code", "errors"),
    [
        (("sword",), 1, "Nothing was found.\n"),
        (("ring", "--since", "soon"), 1, "'soon'"),
        (("ring", "--persona", "gollum"), 1, "There is no persona called 'gollum'"),
        (('""',), 1, "There is nothing to look for"),
        ((), 1, "chorus search needs <words [since T]>. Usage: chorus search"),
    ],
)
def test_what_is_not_found_has_a_sentence(home: Home, arguments: tuple[str, ...], code: int, errors: str) -> None:
    outcome = home.run("search", *arguments)
    assert (outcome.code, outcome.output) == (code, "")
    assert errors in outcome.errors


def test_copying_without_a_terminal_writes_no_control_sequence(home: Home) -> None:
    home.run("ask", "I am unhappy")
    outcome = home.run("ask", "/copy")
    assert (outcome.code, outcome.output) == (1, "")
    assert "There is no clipboard here" in outcome.errors


@pytest.mark.parametrize(
    ("arguments", "wider"),
    [(("unhap", "rin"), "'unhap*' 'rin*'"), (("about the rin",), """'"about the rin"*'"""), (("nhappy",), "")],
)
def test_beginnings_that_would_be_found_are_quoted(home: Home, arguments: tuple[str, ...], wider: str) -> None:
    home.run("ask", "I am unhappy about the ring")
    hint = f" Only whole words were looked for: {wider} finds words that begin so." if wider else ""
    assert home.run("search", *arguments).errors == f"Nothing was found.{hint}\n"
    if wider:
        assert "«" in home.shell(f"chorus search {wider}").output


def test_ctrl_c_stops_an_import_between_two_conversations(home: Home, tmp_path: Path) -> None:
    path, number = many(tmp_path, 60), 60
    with home.chat() as terminal:
        terminal.say(f"/import {path}")
        terminal.until(lambda: home.sql("SELECT COUNT(*) FROM messages") > [2_000], "two conversations")
        terminal.press("ctrl-c")
        terminal.await_text("It was stopped before the end; the same import goes on from there.")
        left = home.sql("SELECT COUNT(*) FROM messages GROUP BY thread_id")
        assert set(left) == {1_000}
        assert len(left) < number
        terminal.ask("I am here", "here")


def written(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--json",)])
def test_a_file_without_a_message_is_refused(tmp_path: Path, more: tuple[str, ...]) -> None:
    path = written(tmp_path / "s1.jsonl", claude_line("u1", None, "user", "/clear", isMeta=True))
    outcome = Home(tmp_path / "home").run("import", str(path), *more)
    assert (outcome.code, outcome.output) == (1, "")
    assert outcome.errors == (
        f"{path} holds no message that can be imported: conversation without messages (1); "
        "docs/moving.md tells what is taken.\n"
    )
