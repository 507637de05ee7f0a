"""What is written about Chorus is true."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chorus_cli.catalogue import registry
from chorus_cli.framework.command_line import look_up, resolve
from chorus_cli.personas import files as persona_files
from chorus_cli.settings import files as settings_file
from chorus_cli.settings.rules.table import SCHEMA_KEY, SETTINGS
from tests.documents import DOCUMENTS, README, ROOT, marks, renewed, tables

if TYPE_CHECKING:
    from chorus_cli.framework.registry import Command
    from chorus_cli.services import Services

COMMANDS = list(registry())
NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_the_tables_of_the_readme_are_those_of_the_program(document: Path) -> None:
    """The README leads to them; they stand in the documents that it names."""
    text = document.read_text(encoding="utf-8")
    assert text == renewed(text), "run: python3 -m tests.documents"


@pytest.mark.parametrize("name", tables())
def test_a_table_stands_in_one_document_that_the_readme_leads_to(name: str) -> None:
    (holder,) = (each for each in DOCUMENTS if marks(name)[0] in each.read_text(encoding="utf-8"))
    text = holder.read_text(encoding="utf-8")
    assert text.count(marks(name)[0]) == text.count(marks(name)[1]) == 1
    assert f"]({holder.relative_to(ROOT)})" in README.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.path)
def test_every_command_has_help_and_its_examples_mean_it(command: Command[Services]) -> None:
    assert command.documentation.summary.endswith(".")
    assert look_up(registry(), command.path).help_text
    for example in command.documentation.examples:
        assert resolve(registry(), example, NOW).command.path == command.path


@pytest.mark.parametrize("slug", persona_files.slugs(ROOT / "personas"))
def test_a_shipped_persona_is_understood_whole(slug: str) -> None:
    layer, warnings = settings_file.read_layer(ROOT / "personas" / slug / "system.jsonc")
    assert warnings == ()
    assert set(layer.values) <= {SCHEMA_KEY, *(setting.key for setting in SETTINGS)}
    assert layer.values["system_prompt"]
    documents, unreadable = persona_files.documents(ROOT / "personas", slug)
    assert unreadable == ()
    assert bool(documents) == (slug != "chorus")


def test_three_personas_are_shipped() -> None:
    assert persona_files.slugs(ROOT / "personas") == ("chorus", "frodo", "reviewer")


@pytest.mark.parametrize(
    "name", ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "constraints.txt"]
)
def test_a_file_that_others_rely_on_is_there(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8").strip()


@pytest.mark.parametrize("promise", ["It saves; it does not clear", "Each such save is a paid call"])
def test_the_page_on_sessions_says_what_an_automatic_save_does(promise: str) -> None:
    assert promise in " ".join((ROOT / "docs" / "sessions.md").read_text(encoding="utf-8").split())


def test_every_test_that_security_names_is_written() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8")))
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    written = {name for source in sources for name in re.findall(r"^(?:async )?def (test_\w+)\(", source, re.MULTILINE)}
    assert len(named) > 40
    assert named - written == set()


def test_the_constraints_are_exact_versions_and_name_no_index() -> None:
    lines = Path(ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert all(line.count("==") == 1 for line in lines if line and not line.startswith("#"))


def test_the_versions_of_litellm_that_stole_keys_are_never_installed() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    (versions,) = (each.removeprefix("litellm") for each in wanted if each.startswith("litellm"))
    assert {"!=1.82.7", "!=1.82.8"} <= {*versions.split(",")}
