"""What is written about Chorus is true, from tables to pictures, and the list of its sentences has all of them."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections import defaultdict
from datetime import UTC, datetime
from itertools import dropwhile, groupby
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from chorus_cli.catalogue import registry
from chorus_cli.core.errors import ChorusError
from chorus_cli.framework.command_line import look_up, resolve
from chorus_cli.framework.help import page
from chorus_cli.framework.registry import Command
from chorus_cli.personas import files as persona_files
from chorus_cli.services import Services
from chorus_cli.settings import files as settings_file
from chorus_cli.settings.rules.table import SCHEMA_KEY, SETTINGS
from chorus_cli.subcommands.command_line import parsed
from tests.documents import DOCUMENTS, PACKAGE_PAGE, README, ROOT, marks, renewed, tables
from tests.sentences import sentences, texts
from tests.terminal.screen import picture as drawing
from tests.test_original_names import WRITTEN

NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
TEXTS = {document: document.read_text(encoding="utf-8") for document in DOCUMENTS}
GUIDES = [README, *(document for document in DOCUMENTS if document.parent == ROOT / "docs")]
LINK = re.compile(r'\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"')
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`(/[^`/][^`]*)`")
VARIABLE = re.compile(r"[A-Z_]+=")
EXAMPLE_OF_ANY_COMMAND = "/x"
SHIPPED = ("chorus", "frodo", "reviewer")
NAMESPACE = "{http://www.w3.org/2000/svg}"
FRAME = {drawing._TEXT, drawing._QUIET, drawing._GROUND, *drawing._BUTTONS}
READABLE_ON_ANY_GROUND = {drawing._COLOURS[name] for name in ("red", "blue", "magenta")}
PICTURES = sorted((ROOT / "docs").glob("*.svg"))
named = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
guided = pytest.mark.parametrize("document", GUIDES, ids=lambda document: document.name)


def prose(document: Path) -> str:
    """Return the text of a document without its code."""
    return FENCE.sub("", TEXTS[document])


def links(document: Path) -> list[str]:
    """Return what a document links to or shows, but for addresses of the web."""
    found = ["".join(groups) for groups in LINK.findall(prose(document))]
    return [target for target in found if not target.startswith("https://")]


def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def lines(document: Path, language: str) -> list[str]:
    return [line for found, code in FENCE.findall(TEXTS[document]) if found == language for line in code.splitlines()]


@named
def test_the_tables_are_those_of_the_program(document: Path) -> None:
    assert TEXTS[document] == renewed(TEXTS[document]), "run: python3 -m tests.documents"


@pytest.mark.parametrize("name", tables())
def test_a_table_stands_in_one_document_that_the_readme_leads_to(name: str) -> None:
    (holder,) = (each for each in DOCUMENTS if marks(name)[0] in TEXTS[each])
    assert TEXTS[holder].count(marks(name)[0]) == TEXTS[holder].count(marks(name)[1]) == 1
    assert holder == README or str(holder.relative_to(ROOT)) in links(README)


@named
def test_every_relative_link_and_picture_leads_to_a_file_that_exists(document: Path) -> None:
    for target in links(document):
        path, _, anchor = target.partition("#")
        reached = document.parent / path if path else document
        assert reached.is_file(), target
        assert reached.resolve().is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(reached.resolve()), target


def test_the_readme_leads_to_every_page() -> None:
    reached = {(ROOT / target.partition("#")[0]).resolve() for target in links(README)}
    assert set(DOCUMENTS) - {README, PACKAGE_PAGE} <= reached


def test_the_page_of_the_package_and_its_links_are_computed_by_the_build() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dynamic"] == ["readme", "urls"]
    assert f'"{PACKAGE_PAGE.relative_to(ROOT)}"' in (ROOT / "hatch_build.py").read_text(encoding="utf-8")


def test_the_program_has_a_second_name_which_the_readme_tells() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts["chorus"] == scripts["chorus-chat"]
    assert "`chorus-chat`" in TEXTS[README]
    assert "ADDRESS" not in TEXTS[README]


@guided
def test_every_command_of_the_chat_that_a_document_names_is_one(document: Path) -> None:
    for span in set(SPAN.findall(prose(document))) - {EXAMPLE_OF_ANY_COMMAND}:
        assert is_command(re.sub(r"[][]| <[^>]*>", "", span)), span


def is_command(words: str) -> bool:
    """Tell whether words can be typed, or name a command whose arguments are left out."""
    for read in (lambda: resolve(registry(), words, NOW), lambda: look_up(registry(), words)):
        try:
            read()
        except ChorusError:
            continue
        return True
    return False


@guided
def test_every_line_that_a_document_shows_for_the_chat_can_be_typed(document: Path) -> None:
    for line in lines(document, ""):
        if line.startswith("/"):
            typed = re.sub(r"[][]", "", line.partition("  ")[0])
            assert resolve(registry(), typed, NOW), line


@guided
def test_every_line_that_a_document_shows_for_the_shell_has_arguments_that_are_known(document: Path) -> None:
    for line in lines(document, "sh"):
        words = ["|" if word == "&&" else word for word in shlex.split(line, comments=True)]
        for is_end, run in groupby(words, lambda word: word == "|"):
            command = [] if is_end else list(dropwhile(VARIABLE.match, run))
            assert command[:1] != ["chorus"] or parsed(command[1:])


@pytest.mark.parametrize("command", [*registry()], ids=lambda command: command.path)
def test_every_command_has_help_and_its_examples_mean_it(command: Command[Services]) -> None:
    assert command.documentation.summary.endswith(".")
    assert command.listed == "nowhere" or command.usage in page(registry(), command.topic)
    for example in command.documentation.examples:
        assert resolve(registry(), example, NOW).command.path == command.path


@pytest.mark.parametrize("slug", SHIPPED)
def test_a_shipped_persona_is_understood_whole(slug: str) -> None:
    assert persona_files.slugs(ROOT / "personas") == SHIPPED
    layer, warnings = settings_file.read_layer(ROOT / "personas" / slug / "system.jsonc")
    assert warnings == ()
    assert set(layer.values) <= {SCHEMA_KEY, *(setting.key for setting in SETTINGS)}
    prompt, unreadable_prompt = persona_files.read_prompt(ROOT / "personas", slug)
    assert prompt.values["system_prompt"]
    documents, unreadable = persona_files.documents(ROOT / "personas", slug)
    assert (*unreadable_prompt, *unreadable) == ()
    assert bool(documents) == (slug != "chorus")


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md", "LICENSE"])
def test_a_file_that_others_rely_on_is_there(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8").strip()


@pytest.mark.parametrize("promise", ["It saves; it does not clear", "Each such save is a paid call"])
def test_the_page_on_sessions_says_what_an_automatic_save_does(promise: str) -> None:
    assert promise in " ".join(TEXTS[ROOT / "docs" / "sessions.md"].split())


def test_every_test_that_security_names_is_written() -> None:
    names = set(re.findall(r"`(test_\w+)`", TEXTS[ROOT / "SECURITY.md"]))
    assert len(names) > 40
    assert names - WRITTEN == set()


def test_the_constraints_are_exact_versions_and_name_no_index() -> None:
    wanted = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line]
    assert wanted
    assert all(line.count("==") == 1 for line in wanted if not line.startswith("#"))


def test_the_versions_of_litellm_that_stole_keys_are_never_installed() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    (versions,) = (each.removeprefix("litellm") for each in wanted if each.startswith("litellm"))
    assert {"!=1.82.7", "!=1.82.8"} <= {*versions.split(",")}


def test_the_documents_show_every_picture() -> None:
    shown = {target.rpartition("/")[2] for document in DOCUMENTS for target in links(document)}
    assert {"repl.svg", "context.svg"} <= {picture.name for picture in PICTURES} <= shown


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_whole_loads_nothing_names_no_place_and_is_readable_on_any_ground(picture: Path) -> None:
    root = ET.fromstring(picture.read_bytes())  # noqa: S314 - a file of the repository
    tags = {f"{NAMESPACE}{tag}" for tag in ("svg", "title", "g", "rect", "circle", "text")}
    assert {element.tag for element in root.iter()} == tags
    values = [value for element in root.iter() for value in (*element.attrib.values(), element.text or "")]
    assert not [value for value in values if re.search(r"https?:|url\(|data:", value)]
    text = picture.read_text(encoding="utf-8")
    assert not re.findall(r"/(?:home|root|tmp|var|usr|opt|private|Users|Volumes)/", text)
    assert set(re.findall(r'fill="(#[0-9a-f]+)"', text)) <= FRAME | READABLE_ON_ANY_GROUND


def test_the_list_has_what_the_program_says_in_every_way() -> None:
    said = {(each.room, each.text) for each in sentences()}
    assert {
        ("sessions", "No saved sessions."),
        ("framework", "There is no {kind} {quoted(typed)}.{suggestion} {listing}"),
        ("turns", "Start a new conversation; nothing is deleted."),
        ("settings", "How many hours back the model sees the conversation."),
        ("stores", "Overwrite {texts} for good? It cannot be undone."),
        ("machine", "That is a bug in Chorus ({kind}). Its traceback is in {log_file}; please report it."),
    } <= {(room, text.rpartition("\n")[2]) for room, text in said}


def test_code_that_no_user_reads_is_not_on_the_list() -> None:
    code = """
def greeting():
    'A docstring of code.'
    logger.warning("A line for the log.")
    return f"Hello {user.name}."
"""
    assert [text for _, text in texts(ast.parse(code))] == ["Hello {name}."]


def test_each_sentence_is_written_once() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for each in sentences():
        for part in each.wholes:
            places[part].append(f"{each.path}:{each.line}")
    assert {part: found for part, found in places.items() if len(found) > 1} == {}
