"""Thoughts of models on their way through the real program: shown, exported and taken in again."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.log.service.thinking_talk import parts_of
from tests.loopback_providers import calling
from tests.stores.service.canary_talk import CANARY, holding
from tests.terminal.driver import Home

THOUGHT, SAID = "Two and two?\n\nIt must be four.", "Four of course."
HIDDEN = f"{THOUGHT}\n{CANARY}!"
LINE = r"\[thought for [0-9.]+ s, [0-9]+ tokens"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home in which a model has thought before its reply."""
    home = Home(tmp_path_factory.mktemp("thinking") / "home")
    with calling() as provider, pytest.MonkeyPatch.context() as variables:
        variables.setenv("OPENAI_BASE_URL", provider.address)
        variables.setenv("OPENAI_API_KEY", "sk-invented")
        provider.say(f"<think>{THOUGHT}</think>{SAID}")
        assert home.run("--model", "openai/x", "ask", "What are two and two?").output == f"{SAID}\n"
    home.sql("UPDATE messages SET thought_parts = ? WHERE role = 'assistant'", parts_of(HIDDEN))
    return home


def test_the_log_says_how_long_a_model_thought_and_what_on_request(template: Home) -> None:
    assert re.search(rf"\] Chorus: {LINE}\]\n *{SAID}", template.run("log").output)
    shown = template.run("log", "--thoughts").output
    assert re.search(rf"\] Chorus: {LINE}:\n *Two and two\?\n\n *It must be four\.\]\n *{SAID}", shown), shown
    assert "It must be" not in template.run("log").output
    with template.chat() as chat:
        chat.say("/thread history 1 --thoughts")
        chat.await_text("It must be four.]")
        chat.await_text(SAID)


def test_a_search_finds_them_on_request_only(template: Home) -> None:
    assert template.run("search", "must").code == 1
    found = template.run("search", "must", "--thoughts")
    assert (found.code, found.output.splitlines()[-1]) == (0, "Chorus: Two and two? It «must» be four.")
    assert found.output.splitlines()[0].endswith("  [thought]")
    (result,) = json.loads(template.run("search", "must", "--thoughts", "--json").output)["results"]
    assert result["in_thoughts"]


@pytest.mark.parametrize("ending", ["md", "jsonl"])
def test_they_move_to_another_home(template: Home, tmp_path: Path, ending: str) -> None:
    folder, other = tmp_path / "out", Home(tmp_path / "other")
    assert template.run("export", "--all", str(folder), "--format", ending).code == 0
    assert other.run("import", str(folder)).code == 0
    *_, before = json.loads(template.run("log", "--json").output)
    *_, after = json.loads(other.run("log", "--json").output)
    names = ["thoughts", "thought_seconds", "thought_tokens", *(["thought_parts"] if ending == "jsonl" else [])]
    assert (before["thoughts"], before["thought_parts"]) == (THOUGHT, parts_of(HIDDEN))
    assert [after.get(name) for name in names] == [before[name] for name in names]
    assert re.search(rf"{LINE}\]\n *{SAID}", other.run("log").output)


@pytest.mark.parametrize("is_imported", [False, True])
def test_a_purge_leaves_them_nowhere(template: Home, tmp_path: Path, *, is_imported: bool) -> None:
    home = Home(tmp_path / "purged")
    if is_imported:
        assert template.run("export", "--all", str(tmp_path / "out"), "--format", "jsonl").code == 0
        assert home.run("import", str(tmp_path / "out")).code == 0
    else:
        shutil.copytree(template.path, home.path)
    assert home.run("backup").code == 0
    assert len(holding(home.path)) == 2
    done = home.run("purge", "search", CANARY, "--yes", "--backups")
    assert (done.code, done.output) == (0, "1 message is purged, for good.\nRewrote 1 backup.\n")
    assert holding(home.path) == holding(home.path, "It must be four") == []
