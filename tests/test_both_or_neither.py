"""Settings files and the journal agree after the next start, wherever a change of both was killed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from chorus_cli.settings.files import read_layer
from tests.killed_program import killed_at_each_step
from tests.terminal.driver import Home

SETTINGS = "personas/chorus/system.jsonc"
CARD = {
    "spec": "chara_card_v2",
    "spec_version": "2.0",
    "data": {
        "name": "Gimli",
        "description": "A dwarf.",
        "first_mes": "Well met!",
        "character_book": {"entries": [{"keys": ["axe"], "content": "The axe is old.", "enabled": True}]},
    },
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home whose window was changed and changed back, and in which an earlier Gimli was deleted."""
    home = Home(tmp_path_factory.mktemp("template") / "home")
    (home.path.parent / "gimli.json").write_text(json.dumps(CARD))
    for text in ("hello", "/context 12h", "/context 30h", "/context undo", "/persona new Gimli"):
        assert home.run("ask", "-c", text).code == 0
    assert home.run("ask", "--persona", "gimli", "Old secrets").code == 0
    shutil.move(home.path / "personas" / "gimli", home.path.parent / "old gimli")
    shutil.copy(home.path.parent / "gimli.json", home.path)
    return home


def window_of_the_journal(home: Home) -> object:
    changes, present = {}, None
    for id_, kind, detail in home.sql("SELECT id, kind, detail FROM operations WHERE persona = 'chorus' ORDER BY id"):
        found = json.loads(detail)
        if kind == "window":
            changes[id_] = found["context_hours"]
            present = changes[id_]["after"]
        elif kind in {"undo", "redo"}:
            present = changes[found[f"{kind}es"]["operation"]]["before" if kind == "undo" else "after"]
    return present


def window_of_the_file(home: Home) -> object:
    return read_layer(home.path / SETTINGS)[0].values.get("context_hours")


def start(home: Home) -> None:
    outcome = home.run("log", "-n", "1")
    assert (outcome.code, outcome.errors) == (0, "")


QUICK = ["/context 24h", "/context undo"]
LINES = [*QUICK, "/context add 2h", "/context reset", "/context redo", "/settings set context_hours 5"]
TRIED = [
    *((line, 10) for line in QUICK),
    *(pytest.param(line, 1, marks=pytest.mark.slow) for line in (*LINES, "/settings unset context_hours")),
]
"""Commands, and the steps to the next one that is tried."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("line", "every"), TRIED)
def test_the_journal_has_the_window_of_the_file_wherever_its_change_is_killed(
    template: Home, tmp_path: Path, line: str, every: int
) -> None:
    before = window_of_the_file(template)
    killed = killed_at_each_step(template.path, tmp_path, "ask", "-c", line, since="system.jsonc.lock", every=every)
    after, parted = window_of_the_file(Home(killed.ended)), 0
    assert before != after
    for home in map(Home, [*killed.homes, killed.ended]):
        found = window_of_the_file(home)
        assert found in {before, after}
        parted += found != window_of_the_journal(home)
        start(home)
        assert found == window_of_the_file(home) == window_of_the_journal(home), home
        entries = home.sql("SELECT * FROM operations")
        start(home)
        assert home.sql("SELECT * FROM operations") == entries
    assert parted or every > 1


@pytest.mark.parametrize("text", ['{ "context_hours": 10 }', "{}"])
def test_an_edit_of_the_file_by_hand_is_an_operation_that_can_be_taken_back(
    template: Home, tmp_path: Path, text: str
) -> None:
    home = Home(shutil.copytree(template.path, tmp_path / "home"))
    before = window_of_the_file(home)
    (home.path / SETTINGS).write_text(text)
    start(home)
    window = f"window {before}h → {'10h' if '10' in text else 'default'}"
    assert f" {window}" in home.run("ask", "/context ops").output
    undone = home.run("ask", "/context undo")
    assert (undone.code, undone.errors) == (0, "")
    assert window in undone.output
    assert window_of_the_file(home) == before == window_of_the_journal(home)


def is_made(home: Home) -> bool:
    """Return whether Gimli's folder is there, without secrets of the earlier one."""
    is_there = (home.path / "personas" / "gimli").exists()
    (begun,) = home.sql("SELECT count(*) FROM operations WHERE persona = 'gimli' AND detail LIKE '%begins%'")
    assert is_there <= begun <= 1
    return is_there


MADE = [
    (("import", "HOME/gimli.json"), 25),
    pytest.param(("import", "HOME/gimli.json"), 1, marks=pytest.mark.slow),
    pytest.param(("ask", "/persona new Gimli"), 1, marks=pytest.mark.slow),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("arguments", "every"), MADE)
def test_a_persona_has_its_rows_wherever_its_making_is_killed_and_can_be_made_again(
    template: Home, tmp_path: Path, arguments: tuple[str, ...], every: int
) -> None:
    killed = killed_at_each_step(template.path, tmp_path, *arguments, since=".making.lock", every=every)
    is_card = arguments[0] == "import"
    for home in map(Home, [*killed.homes, killed.ended]):
        start(home)
        (rows,) = home.sql(
            "SELECT (SELECT count(*) FROM messages WHERE persona = 'gimli'), "
            "(SELECT count(*) FROM context_items WHERE persona = 'gimli')"
        )
        whole = (3, 1) if is_card else (2, 0)
        if is_made(home):
            assert rows == whole
            continue
        assert rows in {(2, 0), whole}
        assert home.run(*(each.replace("HOME", str(home.path)) for each in arguments)).code == 0
        listed = json.loads(home.run("personas", "--json").output)
        (gimli,) = (each for each in listed if each["persona"] == "gimli")
        assert gimli["messages"] == int(is_card)
        assert {path.name for path in (home.path / "personas").iterdir()} == {"chorus", "frodo", "reviewer", "gimli"}
    assert is_made(Home(killed.ended))
