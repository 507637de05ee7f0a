"""Where the documents lead to is there, and what they say can be typed can be."""

from __future__ import annotations

import re
import shlex
import tomllib
from datetime import UTC, datetime
from itertools import dropwhile, groupby
from typing import TYPE_CHECKING

import pytest

from chorus_cli.catalogue import registry
from chorus_cli.core.errors import ChorusError
from chorus_cli.framework.command_line import look_up, resolve
from chorus_cli.subcommands.command_line import parsed
from tests.documents import DOCUMENTS, PACKAGE_PAGE, README, ROOT

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
GUIDES = [README, *(document for document in DOCUMENTS if document.parent == ROOT / "docs")]
LINK = re.compile(r'\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"')
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`(/[^`/][^`]*)`")
VARIABLE = re.compile(r"[A-Z_]+=")
EXAMPLE_OF_ANY_COMMAND = "/x"
named = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
guided = pytest.mark.parametrize("document", GUIDES, ids=lambda document: document.name)


def links(document: Path) -> list[str]:
    """Return what a document links to or shows, but for addresses of the web."""
    found = ["".join(groups) for groups in LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8")))]
    return [target for target in found if not target.startswith("https://")]


def anchors(document: Path) -> set[str]:
    """Return the names by which the headings of a document are linked to."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", document.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def blocks(document: Path, *languages: str) -> list[str]:
    """Return the lines of code of some languages."""
    found = FENCE.findall(document.read_text(encoding="utf-8"))
    return [line for language, code in found if language in languages for line in code.splitlines()]


@named
def test_every_relative_link_and_picture_leads_to_a_file_that_exists(document: Path) -> None:
    for target in links(document):
        path, _, anchor = target.partition("#")
        reached = document.parent / path if path else document
        assert reached.is_file(), target
        assert reached.resolve().is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(reached), target


def test_the_readme_leads_to_every_page() -> None:
    reached = {(ROOT / target.partition("#")[0]).resolve() for target in links(README)}
    assert set(DOCUMENTS) - {README, PACKAGE_PAGE} <= reached


def test_the_page_of_the_package_shows_and_links_nothing_that_is_only_in_the_sources() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert ROOT / project["readme"] == PACKAGE_PAGE
    assert links(PACKAGE_PAGE) == []


@guided
def test_every_command_of_the_chat_that_a_document_names_is_one(document: Path) -> None:
    spans = set(SPAN.findall(FENCE.sub("", document.read_text(encoding="utf-8")))) - {EXAMPLE_OF_ANY_COMMAND}
    for span in spans:
        assert is_command(re.sub(r"[][]", "", span)), span


@guided
def test_every_line_that_a_document_shows_for_the_chat_can_be_typed(document: Path) -> None:
    for line in blocks(document, ""):
        if line.startswith("/"):
            typed = re.sub(r"[][]", "", line.partition("  ")[0])
            assert resolve(registry(), typed, NOW), line


@guided
def test_every_line_that_a_document_shows_for_the_shell_has_arguments_that_are_known(document: Path) -> None:
    for line in blocks(document, "sh"):
        for command in shell_commands(line):
            if command[:1] == ["chorus"]:
                assert parsed(command[1:])


def shell_commands(line: str) -> list[list[str]]:
    """Return the commands of a line in words, without the variables that are set for them."""
    words = ["|" if word == "&&" else word for word in shlex.split(line, comments=True)]
    commands = [list(run) for is_end, run in groupby(words, lambda word: word == "|") if not is_end]
    return [list(dropwhile(VARIABLE.match, command)) for command in commands]


def is_command(words: str) -> bool:
    """Tell whether words can be typed, or name a command whose arguments are left out."""
    for read in (lambda: resolve(registry(), words, NOW), lambda: look_up(registry(), words)):
        try:
            read()
        except ChorusError:
            continue
        return True
    return False
