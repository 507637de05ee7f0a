"""Personas as folders: copied once, with warnings about flaws of their files, and named after their personas."""

from __future__ import annotations

import re
import stat
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.cards import commands as cards
from chorus_cli.core.errors import HomeError, PersonaError
from chorus_cli.machine.paths import shipped_personas
from chorus_cli.personas.commands import persona
from chorus_cli.personas.files import create, documents, install, slugs
from chorus_cli.personas.rules.persona import COMMAND_WORDS, LONGEST_NAME, Document, checked_name, folded, slug_of

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
    assert {name: oct(mode) for name, mode in modes(home / "chorus").items()} == {
        "system.jsonc": "0o600",
        "docs": "0o700",
        "docs/style.md": "0o600",
    }
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


def test_the_personas_that_really_ship_can_be_copied(home: Path) -> None:
    install(shipped_personas(), home)
    assert {"chorus", "frodo", "reviewer"} <= set(slugs(home))
    found, warnings = documents(home, "reviewer")
    assert found
    assert warnings == ()


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("frodo", True),
        ("2nd-opinion", True),
        ("a" * 40, True),
        ("a" * 41, False),
        ("Frodo", False),
        ("-frodo", False),
        (".trash", False),
        ("frodo baggins", False),
        ("frodo\n", False),
    ],
)
def test_a_folder_is_a_persona_by_its_name(tmp_path: Path, name: str, counts: bool) -> None:  # noqa: FBT001 - a table
    (tmp_path / name).mkdir()
    assert slugs(tmp_path) == ((name,) if counts else ())


def test_a_file_is_no_persona_and_a_missing_folder_holds_none(tmp_path: Path) -> None:
    (tmp_path / "frodo").touch()
    assert slugs(tmp_path) == ()
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
    ("content", "reason"), [(b"\xe9t\xe9", "it is not UTF-8"), (b"#\0\0", "it holds NUL characters, so it is no text")]
)
def test_a_document_that_is_no_text_is_left_out_with_a_warning(tmp_path: Path, content: bytes, reason: str) -> None:
    folder = docs_of(tmp_path, good="é".encode(), bad=content)
    found, warnings = documents(tmp_path, "frodo")
    assert found == (Document("good.md", "é"),)
    assert warnings == (f"{folder / 'bad.md'} is left out: {reason}.",)


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
    assert create(home, "frodo", "{}", {"docs/ring.md": b"One."}, record)
    assert found == [()]
    assert slugs(home) == ("frodo",)


def test_one_that_could_not_be_recorded_leaves_nothing(home: Path) -> None:
    def fail() -> bool:
        raise LookupError

    home.mkdir()
    with pytest.raises(LookupError):
        create(home, "frodo", "{}", record=fail)
    assert list(home.iterdir()) == []


def test_a_folder_that_is_there_is_not_replaced_even_if_it_is_empty(home: Path) -> None:
    (home / "frodo").mkdir(parents=True)
    with pytest.raises(PersonaError, match=f"^The folder {home / 'frodo'} cannot be made: File exists"):
        create(home, "frodo", "{}")
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
