"""Personas as folders: copied once, named after their personas, and read again when a file has changed, only then."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.cards import commands as cards
from chorus_cli.core.errors import HomeError, PersonaError, UnknownPersonaError
from chorus_cli.personas.commands import persona
from chorus_cli.personas.files import NewPersona, create, documents, install, links, slugs
from chorus_cli.personas.rules.persona import COMMAND_WORDS, LONGEST_NAME, Document, checked_name, folded, slug_of
from chorus_cli.personas.service.personas import Personas
from tests.amount import examples

UNREADABLE = Path("/proc/self/mem")


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """Two personas as they are shipped, readable by everybody, beside the notes of a file manager."""
    folder = tmp_path / "shipped"
    for name in ("chorus", "reviewer"):
        (folder / name / "docs").mkdir(parents=True)
        (folder / name / "system.jsonc").write_text(f"// {name}\n{{}}\n")
        (folder / name / "docs" / "style.md").write_text("Be brief.")
    (folder / ".DS_Store").touch()
    for path in folder.rglob("*"):
        path.chmod(0o755)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home" / "personas"


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}


def docs_of(personas: Path, **contents: bytes) -> Path:
    """Write documents of the persona ``frodo``."""
    folder = personas / "frodo" / "docs"
    folder.mkdir(parents=True)
    for name, content in contents.items():
        (folder / f"{name}.md").write_bytes(content)
    return folder


def test_the_shipped_personas_are_copied_for_their_owner_only(shipped: Path, home: Path) -> None:
    install(shipped, home)
    assert slugs(home) == ("chorus", "reviewer")
    assert (home / "chorus" / "system.jsonc").read_text() == "// chorus\n{}\n"
    assert (home / "reviewer" / "docs" / "style.md").read_text() == "Be brief."
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    private = {"system.jsonc": 0o600, "docs": 0o700, "docs/style.md": 0o600}
    assert modes(home / "chorus") == private
    assert [path.name for path in home.parent.iterdir()] == ["personas"]


def test_what_the_user_changed_or_deleted_stays_so(shipped: Path, home: Path) -> None:
    install(shipped, home)
    (home / "chorus" / "system.jsonc").write_text("mine")
    (home / "reviewer" / "system.jsonc").unlink()
    (shipped / "newcomer").mkdir()
    install(shipped, home)
    assert (home / "chorus" / "system.jsonc").read_text() == "mine"
    assert not (home / "reviewer" / "system.jsonc").exists()
    assert slugs(home) == ("chorus", "reviewer")


def test_a_folder_that_was_there_first_is_not_touched(shipped: Path, home: Path) -> None:
    home.mkdir()
    install(shipped, home)
    assert list(home.iterdir()) == []


def test_a_copy_that_fails_leaves_nothing_half_made_and_says_why(shipped: Path, home: Path) -> None:
    (shipped / "chorus" / "docs" / "gone.md").symlink_to("nowhere")
    with pytest.raises(HomeError, match=rf"^The personas cannot be copied to {home}: .*gone\.md"):
        install(shipped, home)
    assert list(home.parent.iterdir()) == []


def test_a_home_that_is_not_there_is_a_sentence(shipped: Path, tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="cannot be copied"):
        install(shipped, tmp_path / "missing" / "personas")


def test_a_folder_is_a_persona_by_its_name_but_a_file_is_none(tmp_path: Path) -> None:
    personas = ("2nd-opinion", "a" * 40, "frodo")
    for name in (*personas, "a" * 41, "Frodo", "-frodo", ".trash", "frodo baggins", "frodo\n"):
        (tmp_path / name).mkdir(exist_ok=True)
    (tmp_path / "sam").touch()
    assert slugs(tmp_path) == personas
    assert slugs(tmp_path / "missing") == ()


def test_documents_come_by_name_without_blank_and_hidden_ones(tmp_path: Path) -> None:
    folder = docs_of(tmp_path, b=b"second\n", a=b"\xef\xbb\xbf  first", blank=b" \n\t\n")
    (folder / "notes.txt").write_text("no document")
    (folder / "folder.md").mkdir()
    (folder / "._setting.md").write_bytes(b"\0\5\x16\7\0\2\0\0Mac OS X")
    (folder / ".hidden.md").write_text("a secret")
    assert documents(tmp_path, "frodo") == ((Document("a.md", "first"), Document("b.md", "second")), ())
    assert documents(tmp_path, "sam") == ((), ())


@pytest.mark.parametrize(
    ("content", "reason"), [(b"\xe9t\xe9", "it is not UTF-8"), (b"#\0\0", "it holds NUL characters, so it is not text")]
)
def test_a_document_that_is_no_text_is_left_out_with_a_warning(tmp_path: Path, content: bytes, reason: str) -> None:
    folder = docs_of(tmp_path, good="é".encode(), bad=content)
    found, warnings = documents(tmp_path, "frodo")
    assert found == (Document("good.md", "é"),)
    assert warnings == (f"{folder / 'bad.md'} is left out: {reason}.",)


def test_a_link_that_leads_out_of_the_folder_is_named(tmp_path: Path) -> None:
    documents_folder, key = tmp_path / "ada" / "docs", tmp_path / "key"
    documents_folder.mkdir(parents=True)
    key.write_text("secret")
    (documents_folder / "own.md").write_text("own")
    (documents_folder / "inside.md").symlink_to("own.md")
    (documents_folder / "outside.md").symlink_to(key)
    (documents_folder / "gone.md").symlink_to(tmp_path / "nothing")
    (documents_folder / "loop.md").symlink_to("loop.md")
    (tmp_path / "ada" / "prompt.md").symlink_to(key)
    told = [f"{tmp_path}/ada/{name} is a link, so the model is sent the text of {key}." for name in LINKED]
    assert [each.partition(" Delete")[0] for each in links(tmp_path, "ada")] == told


LINKED = ("prompt.md", "docs/outside.md")


@pytest.mark.skipif(not UNREADABLE.exists(), reason="needs a file that even its owner cannot read")
def test_a_document_that_cannot_be_read_is_left_out_with_a_warning(tmp_path: Path) -> None:
    folder = docs_of(tmp_path, good=b"here")
    (folder / "bad.md").symlink_to(UNREADABLE)
    found, (warning,) = documents(tmp_path, "frodo")
    assert found == (Document("good.md", "here"),)
    assert warning.startswith(f"{folder / 'bad.md'} is left out: ")


def test_it_is_recorded_when_it_lacks_only_its_name(home: Path) -> None:
    found: list[tuple[str, ...]] = []

    def record() -> bool:
        found.append(slugs(home))
        return True

    home.mkdir()
    assert create(home, NewPersona("frodo", "{}", {"docs/ring.md": b"One."}), record)
    assert found == [()]
    assert slugs(home) == ("frodo",)


def test_one_that_could_not_be_recorded_leaves_nothing(home: Path) -> None:
    def fail() -> bool:
        raise LookupError

    home.mkdir()
    with pytest.raises(LookupError):
        create(home, NewPersona("frodo", "{}"), fail)
    assert list(home.iterdir()) == []


def test_a_folder_that_is_there_is_not_replaced_even_if_it_is_empty(home: Path) -> None:
    (home / "frodo").mkdir(parents=True)
    with pytest.raises(PersonaError, match=f"^The folder {home / 'frodo'} cannot be made: File exists"):
        create(home, NewPersona("frodo", "{}"))
    assert [*home.rglob("*")] == [home / "frodo"]


GOOD = {
    "Ada": "ada",
    "  Ada  ": "ada",
    "é": "e",
    "Bób the Builder": "bob-the-builder",
    "O'Hara": "o-hara",
    "3": "3",
    "日本": "persona",
    "x" * LONGEST_NAME: "x" * (LONGEST_NAME - 4),
    "conrad": "conrad",
    "Cön": "con-2",
    "aux.": "aux-2",
    "Néw": "new-2",
}

BAD = {
    "at least one letter or digit": ("", "   ", "-.-", ".."),
    "none of the characters": ("../x", "a/b", "a\\b", "C:", "[x]"),
    "Windows reserves that name": ("CON", "com1"),
    "at most 40 characters, this one has 41": ("x" * 41,),
    "at most 40 characters, this one has 200": ("x" * 200,),
    "no control or invisible characters": ("a\nb", "a\x1b[31m", "a\u202eb"),
    "transcripts use that name for you": ("Human", " hUmAn "),
    "/persona new is a command": ("new", "New York"),
    "/persona delete is a command": ("Delete",),
}


def test_a_name_is_kept_as_it_is_composed() -> None:
    """Two names that look alike are one, whichever way the keyboard composed their letters."""
    assert checked_name("Rene\u0301") == "Ren\u00e9"


@pytest.mark.parametrize(("name", "slug"), GOOD.items())
def test_a_good_name_stays_and_names_its_folder(name: str, slug: str) -> None:
    assert checked_name(name) == name.strip()
    assert slug_of(checked_name(name), ()) == slug


@pytest.mark.parametrize(("name", "reason"), [(name, reason) for reason, names in BAD.items() for name in names])
def test_a_bad_name_is_refused_with_its_reason(name: str, reason: str) -> None:
    with pytest.raises(PersonaError, match=f"^A persona cannot be called .*{reason}"):
        checked_name(name)


def test_no_command_of_the_group_can_be_a_name() -> None:
    assert {*persona.GROUP.words, *cards.GROUP.words} - {""} == COMMAND_WORDS


def test_a_folder_that_is_taken_gets_a_number() -> None:
    assert slug_of("Bób", {"bob"}) == "bob-2"
    assert slug_of("bob!", {"bob", "bob-2", "frodo"}) == "bob-3"


def test_case_blanks_and_composition_do_not_count() -> None:
    assert folded("  Bo\u0301b   The ") == folded("B\u00f3B the")


@given(st.text(), st.sets(st.sampled_from(["a", "persona", "persona-2", "x"])))
def test_every_text_is_a_name_with_a_safe_new_folder_or_refused(text: str, taken: set[str]) -> None:
    with suppress(PersonaError):
        slug = slug_of(checked_name(text), taken)
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", slug)
        assert slug not in taken | COMMAND_WORDS | {"con", "aux", "nul", "prn", "com1"}


LONG_AGO_NS = 1_600_000_000 * 1_000_000_000


def frodo_in(folder: Path) -> Personas:
    """Make Frodo, with settings and two documents that were last changed years ago."""
    persona = folder / "personas" / "frodo"
    (persona / "docs").mkdir(parents=True)
    (folder / "config.jsonc").write_text('{"defaults": {"context_hours": 9}}')
    (persona / "system.jsonc").write_text('{"name": "Frodo"}')
    (persona / "docs" / "ring.md").write_text("One ring.")
    (persona / "docs" / "shire.md").write_text("Home.")
    for path in (folder / "config.jsonc", *persona.rglob("*")):
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    return Personas(folder / "personas", folder / "config.jsonc")


@pytest.fixture
def personas(tmp_path: Path) -> Personas:
    return frodo_in(tmp_path)


def by_rename(path: Path, text: str) -> None:
    """Save as most editors do: a new file takes the place of the old one, here with its times too."""
    draft = path.with_name("draft")
    draft.write_text(text)
    os.utime(draft, ns=(LONG_AGO_NS, LONG_AGO_NS))
    draft.replace(path)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def in_secret(path: Path, text: str) -> None:
    """Write in place and set the time of the change back."""
    time.sleep(0.02)  # longer than a tick of the kernel's clock
    path.write_text(text)
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


def unreadable(path: Path) -> None:
    path.unlink()
    path.symlink_to(UNREADABLE)


SETTINGS = "personas/frodo/system.jsonc"
RING = "personas/frodo/docs/ring.md"

CHANGES: dict[str, Callable[[Path], object]] = {
    "settings in place, as long as before": lambda home: (home / SETTINGS).write_text('{"name": "Bilbo"}'),
    "settings in place, as long and as old as before": lambda home: in_secret(home / SETTINGS, '{"name": "Bilbo"}'),
    "settings by rename, as long and as old as before": lambda home: by_rename(home / SETTINGS, '{"name": "Bilbo"}'),
    "settings broken": lambda home: (home / SETTINGS).write_text("{"),
    "settings gone": lambda home: (home / SETTINGS).unlink(),
    "settings unreadable": lambda home: unreadable(home / SETTINGS),
    "defaults changed": lambda home: (home / "config.jsonc").write_text('{"defaults": {"context_hours": 7}}'),
    "defaults gone": lambda home: (home / "config.jsonc").unlink(),
    "a document appended to": lambda home: append(home / RING, " To rule them all."),
    "a document by rename": lambda home: by_rename(home / RING, "Two rings"),
    "a document gone": lambda home: (home / RING).unlink(),
    "a document unreadable": lambda home: unreadable(home / RING),
    "a document renamed": lambda home: (home / RING).rename(home / "personas/frodo/docs/rings.md"),
    "a document hidden": lambda home: (home / RING).rename(home / "personas/frodo/docs/.ring.md"),
    "a document more": lambda home: (home / "personas/frodo/docs/sam.md").write_text("Gardener."),
    "a prompt": lambda home: (home / "personas/frodo/prompt.md").write_text("Be a hobbit."),
    "the documents gone": lambda home: (home / "personas/frodo/docs").rename(home / "docs"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_noticed_at_once(personas: Personas, change: Callable[[Path], object]) -> None:
    before = personas.load("frodo")
    change(personas.config_file.parent)
    after = personas.load("frodo")
    assert after != before
    assert after == Personas(personas.folder, personas.config_file).load("frodo")


def test_the_prompt_is_a_file_unless_the_settings_have_one(personas: Personas) -> None:
    own, path = (personas.folder / "frodo" / name for name in ("system.jsonc", "prompt.md"))
    personas.config_file.write_text('{"defaults": {"system_prompt": "For all."}}')
    path.write_text("\ufeffYou are Frodo.\n\nWalk on.\n", encoding="utf-8")
    persona = personas.load("frodo")
    assert (persona.settings.system_prompt, persona.warnings) == ("You are Frodo.\n\nWalk on.", ())
    assert persona.sources["system_prompt"] == str(path)
    own.write_text('{"system_prompt": "Mine."}')
    assert personas.load("frodo").settings.system_prompt == "Mine."
    own.write_text("{}")
    path.write_bytes(b"\xff")
    persona = personas.load("frodo")
    assert persona.settings.system_prompt == "For all."
    assert persona.warnings == (f"{path} is left out: it is not UTF-8.",)
    assert persona.unreadable == (str(path),)


def test_files_that_have_not_changed_are_not_read_again(personas: Personas) -> None:
    first = personas.load("frodo")
    (personas.folder / "frodo" / ".archived").touch()
    (personas.folder / "sam").mkdir()
    assert personas.load("sam") is personas.load("sam")
    assert personas.load("frodo") is first
    (personas.folder / "sam" / "system.jsonc").write_text('{"name": "Samwise"}')
    assert personas.load("sam").name == "Samwise"


def test_a_file_that_could_not_be_read_is_tried_again(personas: Personas) -> None:
    unreadable(personas.folder / "frodo" / "docs" / "ring.md")
    first = personas.load("frodo")
    assert first.warnings
    assert personas.load("frodo") is not first


def test_a_file_that_permissions_keep_closed_and_open_again_is_noticed(personas: Personas) -> None:
    path = personas.folder / "frodo" / "system.jsonc"
    first = personas.load("frodo")
    for mode in (0o000, 0o600):
        path.chmod(mode)
        assert personas.load("frodo") == Personas(personas.folder, personas.config_file).load("frodo")
    assert personas.load("frodo") == first


def test_a_persona_whose_folder_is_gone_is_unknown(personas: Personas) -> None:
    personas.load("frodo")
    (personas.folder / "frodo").rename(personas.folder / "away-with-it")
    with pytest.raises(UnknownPersonaError):
        personas.load("frodo")


FILES = st.sampled_from([SETTINGS, RING, "config.jsonc", "personas/frodo/docs/sam.md", "personas/frodo/docs/notes.txt"])
ACTS = st.lists(st.tuples(FILES, st.sampled_from(["write", "rename", "append", "delete", "chmod"])), max_size=12)


def act_on(path: Path, act: str, text: str) -> None:
    if act == "write":
        path.write_text(text)
    elif act == "rename":
        by_rename(path, text)
    elif act == "append":
        append(path, text)
    elif act == "delete":
        path.unlink(missing_ok=True)
    elif path.exists():
        path.chmod(0o640)


@given(ACTS)
@examples(40)
def test_whatever_is_done_to_the_files_a_persona_is_what_they_say(acts: list[tuple[str, str]]) -> None:
    with TemporaryDirectory() as folder:
        personas = frodo_in(Path(folder))
        for number, (name, act) in enumerate(acts, start=1):
            # Each text is longer than the last: two changes within one tick of the file system differ in size.
            act_on(Path(folder) / name, act, f'{{"name": "{"F" * number}"}}' if act != "append" else " " * number)
            fresh = Personas(personas.folder, personas.config_file)
            assert personas.load("frodo") == personas.load("frodo") == fresh.load("frodo")
