"""Completion scripts and the manual page: made of the arguments themselves, so that none is missing."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

import pytest

from chorus_cli import __version__
from chorus_cli.subcommands import shell_files
from chorus_cli.subcommands.command_line import SHELLS, parser
from tests.terminal.driver import Home

(COMMANDS,) = (
    tuple(action.choices)
    for action in parser()._actions
    if isinstance(action, argparse._SubParsersAction) and action.choices
)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_has_every_subcommand_and_asks_for_the_personas(shell: str) -> None:
    script = shell_files.completion_script(shell)
    assert [command for command in COMMANDS if command not in script] == []
    assert "--since" in script
    assert "chorus personas --json" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("chorus sea", "search"),
        ("chorus completion f", "fish"),
        ("chorus log --si", "--since"),
        ("chorus import hosti", "hostile.json"),
        ("chorus import hostile.json --dry-run hosti", "hostile.json"),
        ("chorus ask -a odo", "odometer.png"),
        ("chorus export --all ol", "old"),
        ("chorus --persona mi", "mira"),
        ("chorus ask --persona mi", "mira"),
    ],
)
def test_bash_completes_commands_options_choices_files_folders_and_personas(
    tmp_path: Path, typed: str, completed: str
) -> None:
    personas = 'chorus() { printf \'  {\\n    "persona": "mira",\\n    "name": "Mira"\\n\'; }\n'
    (tmp_path / "script").write_text(shell_files.completion_script("bash") + personas)
    (tmp_path / "old").mkdir()
    for name in ("hostile.json", "odometer.png", "olive.txt"):
        (tmp_path / name).touch()
    words = f"COMP_WORDS=({typed}); COMP_CWORD={len(typed.split()) - 1}"
    line = f'source ./script; {words}; _shtab_chorus; echo "${{COMPREPLY[@]}}"'
    found = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert found.stdout.split() == [completed]


def test_the_manual_page_has_every_subcommand() -> None:
    page = shell_files.manual_page()
    assert f"chorus {__version__}" in page
    assert "chorus \\- " in page
    assert [command for command in COMMANDS if f"chorus {command}" not in page] == []


def test_the_script_of_a_shell_is_printed_and_another_shell_refused(tmp_path: Path) -> None:
    assert set(shell_files.PLACES) == set(SHELLS)
    home = Home(tmp_path)
    outcome = home.run("completion", "bash")
    assert (outcome.code, outcome.errors) == (0, "")
    assert outcome.output == shell_files.completion_script("bash")
    assert home.run("completion", "cmd").code == 2
