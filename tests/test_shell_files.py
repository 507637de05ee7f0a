"""Completion scripts and the manual page: made of the arguments themselves, so that none is missing."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from chorus_cli import __version__
from chorus_cli.subcommands import shell_files
from chorus_cli.subcommands.command_line import SHELLS, parser
from tests.terminal.driver import Home

if TYPE_CHECKING:
    from pathlib import Path

(COMMANDS,) = (
    tuple(action.choices)
    for action in parser()._actions
    if isinstance(action, argparse._SubParsersAction) and action.choices
)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_has_every_subcommand(shell: str) -> None:
    script = shell_files.completion_script(shell)
    assert [command for command in COMMANDS if command not in script] == []
    assert "--since" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("typed", "completed"), [("chorus sea", "search"), ("chorus completion f", "fish"), ("chorus log --si", "--since")]
)
def test_bash_completes_subcommands_options_and_choices(tmp_path: Path, typed: str, completed: str) -> None:
    (tmp_path / "chorus").write_text(shell_files.completion_script("bash"))
    words = typed.split()
    line = f'source "$1"; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _shtab_chorus; echo "${{COMPREPLY[@]}}"'
    found = subprocess.run(
        ["bash", "-c", line, "bash", str(tmp_path / "chorus")], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == [completed]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("chorus import hosti", "hostile.json"),
        ("chorus import hostile.json --dry-run hosti", "hostile.json"),
        ("chorus ask -a odo", "odometer.png"),
        ("chorus export --all ol", "old"),
        ("chorus --persona mi", "mira"),
        ("chorus ask --persona mi", "mira"),
    ],
)
def test_bash_completes_files_folders_and_personas(tmp_path: Path, typed: str, completed: str) -> None:
    script, words = tmp_path / "script", typed.split()
    personas = 'chorus() { printf \'  {\\n    "persona": "mira",\\n    "name": "Mira"\\n\'; }\n'
    script.write_text(shell_files.completion_script("bash") + personas)
    (tmp_path / "old").mkdir()
    for name in ("hostile.json", "odometer.png", "olive.txt"):
        (tmp_path / name).touch()
    line = (
        f'source ./script; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _shtab_chorus; echo "${{COMPREPLY[@]}}"'
    )
    found = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert found.stdout.split() == [completed]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_script_asks_for_the_personas(shell: str) -> None:
    assert "chorus personas --json" in shell_files.completion_script(shell)


def test_the_manual_page_has_every_subcommand() -> None:
    page = shell_files.manual_page()
    assert f"chorus {__version__}" in page
    assert "chorus \\- " in page
    assert [command for command in COMMANDS if f"chorus {command}" not in page] == []


def test_each_shell_has_a_place_where_it_looks() -> None:
    assert set(shell_files.PLACES) == set(SHELLS)


def test_the_script_of_a_shell_is_printed_and_another_shell_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    outcome = home.run("completion", "bash")
    assert (outcome.code, outcome.errors) == (0, "")
    assert outcome.output == shell_files.completion_script("bash")
    assert home.run("completion", "cmd").code == 2
