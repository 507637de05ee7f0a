"""What a start does not wait for: the libraries that take long to import and that only some errands need."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.terminal.command import finished
from tests.terminal.driver import Home

if TYPE_CHECKING:
    from pathlib import Path

PROVIDERS = {"litellm", "openai", "httpx", "aiohttp", "pydantic"}
LATE = PROVIDERS | {"dateparser", "tiktoken", "rich", "platformdirs", "difflib"}


def loaded_by(statements: str, environment: dict[str, str]) -> set[str]:
    """Return the packages that are loaded after ``statements`` in a fresh interpreter."""
    tell = "import sys; print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    outcome = finished([sys.executable, "-c", f"{statements}\n{tell}"], environment)
    assert outcome.code == 0, outcome.errors
    return set(outcome.errors.split())


@pytest.mark.parametrize(
    ("imported", "late"),
    [
        ("import chorus_cli.cli", LATE | {"prompt_toolkit", "sqlite3"}),
        ("import chorus_cli.app", LATE | {"prompt_toolkit"}),
        ("import chorus_cli.app, chorus_cli.terminal.repl", LATE),
    ],
)
def test_importing_loads_no_library_that_can_wait(imported: str, late: set[str]) -> None:
    assert late & loaded_by(imported, dict(os.environ)) == set()


def test_a_start_loads_nothing_of_the_memory_but_its_acts() -> None:
    tell = "import sys; print(*(name for name in sys.modules if 'chorus_cli' in name and 'memory' in name))"
    outcome = finished([sys.executable, "-c", f"import chorus_cli.cli, chorus_cli.chat; {tell}"], dict(os.environ))
    assert outcome.output.split() == ["chorus_cli.core.log.memory_acts"]


def test_a_question_to_eliza_loads_no_provider_and_draws_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    asked = "import os; from chorus_cli.cli import main; assert main(['ask', 'hello'], os.environ) == 0"
    loaded = loaded_by(asked, home.environment)
    assert loaded & (PROVIDERS | {"dateparser", "rich", "prompt_toolkit"}) == set()
    assert "tiktoken" in loaded
    assert home.said() == ["hello"]
