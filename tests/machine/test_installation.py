"""How packages are added to the installation of Chorus."""

from __future__ import annotations

import shlex
import sys

from chorus_cli.machine.installation import install_command


def test_the_command_names_the_python_of_chorus_and_can_be_pasted_into_a_shell() -> None:
    command = install_command("--no-deps", "chorus-cli[mcp]")
    pip = ["python3", "-m", "pip", "--python", sys.executable, "install"]
    assert shlex.split(command) == [*pip, "--no-deps", "chorus-cli[mcp]"]
    assert command.endswith(" 'chorus-cli[mcp]'")
