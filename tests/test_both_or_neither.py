"""Settings files and the journal agree after the next start, wherever a change of both was killed."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from chorus_cli.settings.files import read_layer
from tests.killed_program import killed_at_each_step
from tests.terminal.driver import Home

if TYPE_CHECKING:
    from pathlib import Path

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
CUT_OFF = "was cut off"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home whose window was changed and changed back, and in which an earlier Gimli was deleted."""
    home = Home(tmp_path_factory.mktemp("template") / "home")
    (home.path.parent / "gimli.json").write_text(json.dumps(CARD))
    for text in ("hello", "/context 12h", "/context 30h", "/context undo", "/persona new Gimli"):
        assert home.run("ask", text).code == 0
    assert home.run("ask", "--persona", "gimli", "Old secrets").code == 0
    shutil.move(home.path / "personas" / "gimli", home.path.parent / "old gimli")
    shutil.copy(home.path.parent / "gimli.json", home.path)
    return home


def window_of_the_journal(home: Home) -> object:
    """Return the window that the operations lead to."""
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


def settled(home: Home) -> str:
    """Start Chorus again, and return the sentence about a change that was cut off; empty if there is none."""
    outcome = home.run("log", "-n", "1")
    assert outcome.code == 0, outcome
    assert home.sql("SELECT * FROM intents") == []
    assert outcome.errors.count("\n") == (CUT_OFF in outcome.errors), outcome.errors
    assert home.run("log", "-n", "1").errors == ""
    return outcome.errors


QUICK = ["/context 24h", "/context undo"]
LINES = [*QUICK, "/context add 2h", "/context reset", "/context redo", "/settings set context_hours 5"]
TRIED = [
    *((line, 10) for line in QUICK),
    *(pytest.param(line, 1, marks=pytest.mark.slow) for line in (*LINES, "/settings unset context_hours")),
]
"""Commands, and the steps to the next one that is tried."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("line", "every"), TRIED)
def test_a_window_is_in_the_file_and_in_the_journal_or_in_neither_wherever_it_is_killed(
    template: Home, tmp_path: Path, line: str, every: int
) -> None:
    before = window_of_the_file(template)
    killed = killed_at_each_step(template.path, tmp_path, "ask", line, since="system.jsonc.lock", every=every)
    after, told = window_of_the_file(Home(killed.ended)), []
    assert before != after
    for home in map(Home, killed.homes):
        told.append(settled(home))
        found = window_of_the_file(home)
        assert found == window_of_the_journal(home), home
        assert found in {before, after}
        assert ("nothing of it was done" in told[-1]) <= (found == before)
        assert ("the file has it, and so has the journal" in told[-1]) <= (found == after)
    assert settled(Home(killed.ended)) == ""
    assert len([*filter(None, told)]) > (10 if every == 1 else 1)


def is_made(home: Home) -> bool:
    """Return whether Gimli's folder is there, without secrets of the earlier one."""
    is_there = (home.path / "personas" / "gimli").exists()
    begun = home.sql("SELECT count(*) FROM operations WHERE persona = 'gimli' AND detail LIKE '%begins%'")
    assert begun == [int(is_there)]
    return is_there


MADE = [
    (("import", "HOME/gimli.json"), 25),
    pytest.param(("import", "HOME/gimli.json"), 1, marks=pytest.mark.slow),
    pytest.param(("ask", "/persona new Gimli"), 1, marks=pytest.mark.slow),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("arguments", "every"), MADE)
def test_a_persona_is_made_with_its_rows_or_not_at_all_wherever_that_is_killed(
    template: Home, tmp_path: Path, arguments: tuple[str, ...], every: int
) -> None:
    killed = killed_at_each_step(template.path, tmp_path, *arguments, since=".making.lock", every=every)
    for home in map(Home, killed.homes):
        told = settled(home)
        assert is_made(home) <= (not told), told
        names = {path.name for path in (home.path / "personas").iterdir()}
        assert names <= {"chorus", "frodo", "reviewer", "gimli"} or not told, names
        rows = home.sql(
            "SELECT (SELECT count(*) FROM messages WHERE persona = 'gimli'), "
            "(SELECT count(*) FROM context_items WHERE persona = 'gimli')"
        )
        assert rows == [(3, 1) if is_made(home) and arguments[0] == "import" else (2, 0)]
    assert is_made(Home(killed.ended))
